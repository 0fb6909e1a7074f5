package accounts

import (
	"iter"
	"slices"
	"strings"

	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/export"
	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/cli/frame"
)

// exportTables are the tables that are written as CSV or as JSON Lines.
func exportTables() []string { return []string{"attempts", "segments", "jobs", "usage", "machines"} }

// exportTable writes the table that the flags name. Jobs and usage are those of the jobs
// that were submitted in the time.
func exportTable(c *frame.Invocation, q *query.Query, format string,
	attempts iter.Seq2[accounting.AttemptRecord, error], names *export.Pseudonyms) error {
	table, other := c.StringFlag("table"), *q
	if !slices.Contains(exportTables(), table) {
		return frame.UsageErrorf("--table: %q is none of %s", table, strings.Join(exportTables(), ", "))
	}
	if q.Job != 0 && table != "attempts" && table != "segments" {
		return frame.UsageErrorf("--table %s is of a time, not of a job", table)
	}
	switch table {
	case "segments":
		return writeTable(c, format, export.Segments(), export.SegmentsOf(attempts))
	case "jobs":
		other.Report = query.Jobs
		return writeTable(c, format, export.Jobs(), names.Jobs(jobRecords(c, &other)))
	case "usage":
		other.Report = query.Hours
		return writeTable(c, format, export.Usage(), usageWindows(c, &other))
	case "machines":
		other.Report = query.Machines
		return writeTable(c, format, export.Machines(), names.Machines(machineEvents(c, &other)))
	}
	return writeTable(c, format, export.Attempts(), attempts)
}

func writeTable[T any](c *frame.Invocation, format string, t *export.Table[T], rows iter.Seq2[T, error]) (err error) {
	if format == "csv" {
		_, err = t.WriteCSV(c.Stdout, rows)
	} else {
		_, err = t.WriteJSONLines(c.Stdout, rows)
	}
	return err
}
