package view

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/export"
	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/accounting/sacct"
	"github.com/roost-batch/roost/internal/web/route"
)

// exportPatience bounds an export: a year of a large pool takes minutes.
const exportPatience = time.Hour

// ExportFormats are the formats of exports. PBS is one log of all days, SWF has the jobs
// that were submitted in the time, which are read in its order, and of a Borg trace each
// table is a request of its own.
func ExportFormats() []string { return []string{"csv", "jsonl", "xdmod", "pbs", "swf", borgFormat} }

// ExportTables are the tables of an export as CSV or JSON Lines.
func ExportTables() []string { return []string{"attempts", "segments", "jobs", "machines"} }

// Export sends records of the accounts in a format of roost sacct --export, as they are
// read.
func Export(c *route.Call) error {
	format, table := c.PathValue("format"), c.QueryValue("table")
	if !slices.Contains(ExportFormats(), format) {
		return fmt.Errorf("export %.40q: %w: there is %s; roost sacct --export has more", format, roost.NotFound,
			strings.Join(ExportFormats(), ", "))
	}
	isTable := format == "csv" || format == "jsonl"
	if table != "" && format != borgFormat && (!isTable || !slices.Contains(ExportTables(), table)) {
		return fmt.Errorf("table %.40q: %w: csv and jsonl have %s", table, roost.Invalid,
			strings.Join(ExportTables(), ", "))
	}
	q, err := reportQuery(c, query.Attempts, time.Now())
	if err != nil {
		return err
	}
	if c.QueryValue("limit") == "" {
		q.Limit = query.MaxLimit
	}
	records, err := exportRecordsOf(c)
	if err != nil {
		return err
	}
	kinds := map[string]string{"csv": "text/csv; charset=utf-8", "jsonl": "application/jsonl",
		borgFormat: "application/gzip"}
	names := map[string]string{"csv": "roost.csv", "jsonl": "roost.jsonl", "swf": "roost.swf",
		borgFormat: table + ".csv.gz"}
	var trace *export.BorgTrace
	if format == borgFormat {
		if err := records.traceTable(table); err != nil {
			return err
		}
		if trace, err = records.openTrace(q); err != nil {
			return err
		}
	}
	begin := func() {
		h := c.Writer.Header()
		h.Set("Content-Type", cmp.Or(kinds[format], "text/plain; charset=utf-8"))
		h.Set("Content-Disposition", `attachment; filename="`+cmp.Or(names[format], "roost-"+format+".txt")+`"`)
	}
	return c.Stream(begin, func(write func([]byte) error) error {
		if trace != nil {
			return records.writeTrace(trace, pieceWriter(write), q, table)
		}
		return records.write(pieceWriter(write), q, format, table)
	})
}

// exportRecords reads the records of an export, with pseudonyms if it asks for them.
type exportRecords struct {
	c          *route.Call
	pseudonyms *export.Pseudonyms // nil: with the names
	key        []byte             // of a trace; empty: none was sent
}

// PseudonymKeyHeader has the key of pseudonyms. It is no parameter, because addresses are
// logged.
const PseudonymKeyHeader = "Roost-Pseudonym-Key"

// exportRecordsOf reads whether pseudonyms are asked for. Without a key they are those of
// no other export.
func exportRecordsOf(c *route.Call) (r exportRecords, err error) {
	r.c = c
	key := c.Request.Header.Get(PseudonymKeyHeader)
	switch c.QueryValue("pseudonyms") {
	case "":
		if c.PathValue("format") == borgFormat {
			r.key = []byte(key)
			return r, nil
		}
		if key != "" {
			return r, fmt.Errorf("%s: %w: it is for pseudonyms=1", PseudonymKeyHeader, roost.Invalid)
		}
		return r, nil
	case "1":
	default:
		return r, fmt.Errorf("pseudonyms: %w: it is 1, or not there", roost.Invalid)
	}
	if key == "" {
		key = rand.Text()
	}
	r.pseudonyms, err = export.NewPseudonyms([]byte(key))
	return r, err
}

func (r exportRecords) attempts(q query.Query) iter.Seq2[accounting.AttemptRecord, error] {
	return r.pseudonyms.Attempts(attemptsOf(r.c, q))
}

func (r exportRecords) jobs(q query.Query) iter.Seq2[accounting.JobEntry, error] {
	q.Report = query.Jobs
	return r.pseudonyms.Jobs(recordsOf(r.c, q, func(l *accounting.JobEntry) (accounting.JobEntry, error) {
		return *l, nil
	}))
}

func (r exportRecords) machines(q query.Query) iter.Seq2[accounting.MachineEvent, error] {
	return r.pseudonyms.Machines(machinesOf(r.c, query.Query{Report: query.Machines, From: q.From, To: q.To,
		Limit: q.Limit}))
}

// write writes the records of a query in a format.
func (r exportRecords) write(to io.Writer, q query.Query, format, table string) (err error) {
	cluster := r.c.QueryValue("cluster")
	switch format {
	case "xdmod":
		return sacct.WriteXDMoD(to, cluster, r.attempts(q))
	case "pbs":
		started := q
		started.Time = query.ByStart
		_, err = export.WritePBS(to, export.PBSRecords{Jobs: r.jobs(q), Started: r.attempts(started),
			Ended: r.attempts(q)}, time.UTC)
		return err
	case "swf":
		q.Time = query.BySubmit
		_, err = export.WriteSWF(to, r.attempts(q), export.SWFOptions{Computer: cluster,
			Window: accounting.TimeRange{From: q.From, To: q.To}})
		return err
	}
	return r.writeTable(q, to, format, table)
}

// pieceWriter sends what is written.
type pieceWriter func([]byte) error

func (w pieceWriter) Write(b []byte) (int, error) {
	if err := w(b); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (r exportRecords) writeTable(q query.Query, to io.Writer, format, table string) error {
	switch table {
	case "segments":
		return writeExport(to, format, export.Segments(), export.SegmentsOf(r.attempts(q)))
	case "jobs":
		return writeExport(to, format, export.Jobs(), r.jobs(q))
	case "machines":
		return writeExport(to, format, export.Machines(), r.machines(q))
	}
	return writeExport(to, format, export.Attempts(), r.attempts(q))
}

func writeExport[T any](to io.Writer, format string, t *export.Table[T], rows iter.Seq2[T, error]) (err error) {
	if format == "csv" {
		_, err = t.WriteCSV(to, rows)
	} else {
		_, err = t.WriteJSONLines(to, rows)
	}
	return err
}

// attemptsOf are the attempts of an answer of the accountant.
func attemptsOf(c *route.Call, q query.Query) iter.Seq2[accounting.AttemptRecord, error] {
	return recordsOf(c, q, func(l *query.AttemptLine) (accounting.AttemptRecord, error) {
		if l.Missing != "" {
			return accounting.AttemptRecord{}, fmt.Errorf("%w: %s", roost.Unavailable, l.Missing)
		}
		return accounting.AttemptRecord{AttemptEntry: l.Attempt, Job: &l.Job}, nil
	})
}

// machinesOf are the changes of machines of an answer of the accountant.
func machinesOf(c *route.Call, q query.Query) iter.Seq2[accounting.MachineEvent, error] {
	return recordsOf(c, q, func(l *accounting.MachineEvent) (accounting.MachineEvent, error) { return *l, nil })
}

// recordsOf are the records of an answer of the accountant as they come.
func recordsOf[L, R any](c *route.Call, q query.Query, of func(*L) (R, error)) iter.Seq2[R, error] {
	return func(yield func(R, error) bool) {
		err := eachAccountsLine(c, q, exportPatience, func(l *L) error {
			r, err := of(l)
			if err == nil && !yield(r, nil) {
				return errEnough
			}
			return err
		})
		if err != nil && !errors.Is(err, errEnough) {
			var none R
			yield(none, err)
		}
	}
}
