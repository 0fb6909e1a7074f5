package accounts

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// printTaskUsage prints what a task used over time, or the tasks of a job together.
func printTaskUsage(c *frame.Invocation, id string) error {
	row, err := findRow(c, id)
	if err != nil {
		return err
	}
	owner := query.Self
	if c.Flag("all") {
		owner = ""
	}
	q, err := query.WindowsOf(row.GetId(), row.GetTaskNumber(), row.GetState() != "", owner)
	if err != nil {
		return err
	}
	var stored []query.WindowLine
	missing := ask(c, &q, func(l *query.WindowLine) error { stored = append(stored, *l); return nil })
	if errors.Is(missing, roost.NotFound) { // the accounts do not know it yet, or it is another user's
		missing = nil
	}
	u := document.TaskUsageOf(row, stored)
	if missing != nil {
		u.Missing = missing.Error()
	}
	u.Fold(c.CountFlag("limit"))
	if c.WantsJSON() {
		return frame.PrintDocument(c.Stdout, u)
	}
	if u.Missing != "" {
		fmt.Fprintln(c.Stderr, "the accounts cannot be read: "+u.Missing)
	}
	columns := taskUsageColumns()
	if u.Request.GPUs == 0 {
		columns = columns[:len(columns)-2]
	}
	return printLines(c, "window", columns, u.Windows)
}

// findRow returns the row of a job or task with its windows.
func findRow(c *frame.Invocation, id string) (*scheddapi.JobStatus, error) {
	found, missing, err := c.QueryPool("", &scheddapi.QueryRequest{
		Selection: &scheddapi.Selection{Selectors: []string{id}}, History: true,
		Tasks: frame.NamesOnlyTasks([]string{id}), Windows: true, Limit: 2,
	})
	switch {
	case err != nil:
		return nil, err
	case len(found) == 0 && len(missing) > 0:
		return nil, frame.UnreachableError(missing)
	case len(found) == 0:
		return nil, frame.KindErrorf(roost.NotFound, "%s: there is no such job", id)
	case len(found) > 1:
		return nil, frame.WithHint(frame.UsageErrorf("%s names several jobs, and one is wanted", id),
			"list them with: roost jobs '"+id+"'")
	}
	return found[0], nil
}

func taskUsageColumns() []column[document.UsageWindow] {
	type line = document.UsageWindow
	cores := func(n float64) string { return strconv.FormatFloat(n, 'f', 2, 64) }
	return []column[line]{
		{"begin", false, func(l *line) string { return strings.TrimSuffix(l.Begin, "Z") }},
		{"attempt", true, func(l *line) string {
			if l.Attempt == 0 {
				return ""
			}
			return strconv.FormatUint(uint64(l.Attempt), 10)
		}},
		{"cores", true, func(l *line) string { return cores(l.CPUs) }},
		{"cores_max", true, func(l *line) string { return cores(l.CPUsMax) }},
		{"memory", true, func(l *line) string { return bytesText(l.Memory) }},
		{"cache", true, func(l *line) string { return bytesText(l.Cache) }},
		{"read", true, func(l *line) string { return bytesText(l.Read) }},
		{"written", true, func(l *line) string { return bytesText(l.Written) }},
		{"gpus", true, func(l *line) string { return cores(l.GPUs) }},
		{"gpu_memory", true, func(l *line) string { return bytesText(l.GPUMemory) }},
	}
}

func bytesText(n int64) string { return roost.Bytes(n).String() }
