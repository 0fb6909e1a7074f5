package view

import (
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/export"
	"github.com/roost-batch/roost/internal/accounting/query"
)

// borgFormat is the format of the tables of the Borg traces. A request is for one of
// them, and those with one key belong together.
const borgFormat = "borg"

// TraceTables are the tables of a Borg trace.
func TraceTables() []string {
	return []string{"collection_events", "instance_events", "instance_usage", "machine_events", "machine_attributes"}
}

// traceTable checks the request for a table of a trace.
func (r exportRecords) traceTable(table string) error {
	switch {
	case !slices.Contains(TraceTables(), table):
		return fmt.Errorf("table %.40q: %w: borg has %s", table, roost.Invalid, strings.Join(TraceTables(), ", "))
	case r.pseudonyms != nil:
		return fmt.Errorf("pseudonyms: %w: borg has them anyway", roost.Invalid)
	case len(r.key) == 0:
		return fmt.Errorf("%s: %w: each table is a request of its own, and they have the same names by this key: send "+
			"one of 16 bytes or more", PseudonymKeyHeader, roost.Invalid)
	}
	return nil
}

// openTrace returns the trace of a query. Amounts in it are shares of the largest
// machine.
func (r exportRecords) openTrace(q query.Query) (*export.BorgTrace, error) {
	o := export.BorgOptions{Key: r.key, Window: accounting.TimeRange{From: q.From, To: q.To}}
	for m, err := range r.machines(q) {
		if err != nil {
			return nil, err
		}
		o.CPU, o.Memory = max(o.CPU, m.Capacity.CPU), max(o.Memory, m.Capacity.Memory)
	}
	if o.CPU == 0 {
		return nil, fmt.Errorf("accounts: %w: they have no machine in that time, and amounts of a trace are shares of "+
			"the largest one", roost.NotFound)
	}
	return export.NewBorgTrace(o)
}

// writeTrace writes a table of a trace.
func (r exportRecords) writeTrace(trace *export.BorgTrace, to io.Writer, q query.Query, table string) (err error) {
	attempts := q
	attempts.Time = query.BySubmit
	switch table {
	case "collection_events":
		return trace.WriteEvents(to, io.Discard, r.jobs(q), r.attempts(attempts))
	case "instance_events":
		return trace.WriteEvents(io.Discard, to, r.jobs(q), r.attempts(attempts))
	case "instance_usage":
		_, err = trace.WriteUsage(to, r.usageWindows(q))
	case "machine_events":
		_, err = trace.WriteMachineEvents(to, r.machines(q))
	default:
		_, err = trace.WriteMachineAttributes(to, r.machines(q))
	}
	return err
}

// usageWindows are the windows of attempts as they come.
func (r exportRecords) usageWindows(q query.Query) iter.Seq2[export.UsageWindow, error] {
	q.Report = query.Hours
	var hours []accounting.UsageHour // of the last attempt
	attempts := recordsOf(r.c, q, func(l *query.HoursLine) (accounting.AttemptRecord, error) {
		hours = l.Hours
		return accounting.AttemptRecord{AttemptEntry: l.Attempt, Job: &l.Job}, nil
	})
	return export.UsageOf(attempts, func(accounting.AttemptKey) iter.Seq2[accounting.UsageHour, error] {
		return func(yield func(accounting.UsageHour, error) bool) {
			for _, h := range hours {
				if !yield(h, nil) {
					return
				}
			}
		}
	})
}
