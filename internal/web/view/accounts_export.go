package view

import (
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

// ExportFormats are the formats of exports that are one file. Those of several files, or
// in another order than they are read, are the command's.
func ExportFormats() []string { return []string{"csv", "jsonl", "xdmod"} }

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
	if table != "" && (format == "xdmod" || !slices.Contains(ExportTables(), table)) {
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
	kinds := map[string]string{"csv": "text/csv; charset=utf-8", "jsonl": "application/jsonl",
		"xdmod": "text/plain; charset=utf-8"}
	names := map[string]string{"csv": "roost.csv", "jsonl": "roost.jsonl", "xdmod": "roost-xdmod.txt"}
	begin := func() {
		h := c.Writer.Header()
		h.Set("Content-Type", kinds[format])
		h.Set("Content-Disposition", `attachment; filename="`+names[format]+`"`)
	}
	return c.Stream(begin, func(write func([]byte) error) error {
		to := pieceWriter(write)
		if format == "xdmod" {
			return sacct.WriteXDMoD(to, c.QueryValue("cluster"), attemptsOf(c, q))
		}
		return exportTable(c, q, to, format, table)
	})
}

// pieceWriter sends what is written.
type pieceWriter func([]byte) error

func (w pieceWriter) Write(b []byte) (int, error) {
	if err := w(b); err != nil {
		return 0, err
	}
	return len(b), nil
}

func exportTable(c *route.Call, q query.Query, to io.Writer, format, table string) error {
	switch table {
	case "segments":
		return writeExport(to, format, export.Segments(), export.SegmentsOf(attemptsOf(c, q)))
	case "jobs":
		q.Report = query.Jobs
		return writeExport(to, format, export.Jobs(), recordsOf(c, q, func(l *accounting.JobEntry) (accounting.JobEntry,
			error) {
			return *l, nil
		}))
	case "machines":
		q = query.Query{Report: query.Machines, From: q.From, To: q.To, Limit: q.Limit}
		return writeExport(to, format, export.Machines(), machinesOf(c, q))
	}
	return writeExport(to, format, export.Attempts(), attemptsOf(c, q))
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
