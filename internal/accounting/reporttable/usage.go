package reporttable

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/query"
)

// Usage returns the columns of usage by owner, group, project, band or queue.
func Usage(by []string) (columns []Column[query.UsageLine]) {
	names := []Column[query.UsageLine]{
		{"owner", false, func(l *query.UsageLine) string { return l.Owner }},
		{"group", false, func(l *query.UsageLine) string { return l.Group }},
		{"project", false, func(l *query.UsageLine) string { return l.Project }},
		{"band", false, func(l *query.UsageLine) string { return l.Band }},
		{"queue", false, func(l *query.UsageLine) string { return l.Queue }},
	}
	for _, col := range names {
		if slices.Contains(by, col.Head) {
			columns = append(columns, col)
		}
	}
	return append(columns,
		Column[query.UsageLine]{"core_hours", true, func(l *query.UsageLine) string { return hours(l.HeldCPU) }},
		Column[query.UsageLine]{"cpu_hours", true, func(l *query.UsageLine) string { return hours(l.UsedCPU) }},
		Column[query.UsageLine]{"used_percent", true, func(l *query.UsageLine) string {
			return Percent(l.UsedCPU, l.HeldCPU)
		}},
		Column[query.UsageLine]{"gpu_hours", true, func(l *query.UsageLine) string { return hours(l.HeldGPU) }},
		Column[query.UsageLine]{"lost_core_hours", true, func(l *query.UsageLine) string { return hours(l.LostCPU) }},
		Column[query.UsageLine]{"ended", true, func(l *query.UsageLine) string { return count(l.Ended) }},
		Column[query.UsageLine]{"failed", true, func(l *query.UsageLine) string { return count(l.Failed) }},
		Column[query.UsageLine]{"mean_wait", true, func(l *query.UsageLine) string {
			if l.Waits == 0 {
				return ""
			}
			return clock(l.WaitSum / l.Waits)
		}})
}

// Points returns the columns of the reports timeline and bands.
func Points() []Column[query.PointLine] {
	type line = query.PointLine
	return []Column[line]{
		{"begin", false, func(l *line) string { return utc(l.At) }},
		{"band", false, func(l *line) string { return l.Band }},
		{"core_hours", true, func(l *line) string { return hours(l.HeldCPU) }},
		{"cpu_hours", true, func(l *line) string { return hours(l.UsedCPU) }},
		{"gpu_hours", true, func(l *line) string { return hours(l.HeldGPU) }},
		{"lost_core_hours", true, func(l *line) string { return hours(l.LostCPU) }},
		{"started", true, func(l *line) string { return count(l.Started) }},
		{"ended", true, func(l *line) string { return count(l.Ended) }},
		{"mean_wait", true, func(l *line) string { return clock(l.WaitSum / max(l.Waits, 1)) }},
	}
}

// Waste returns the columns of the report waste.
func Waste() []Column[query.WasteLine] {
	type line = query.WasteLine
	return []Column[line]{
		{"owner", false, func(l *line) string { return l.Owner }},
		{"name", false, func(l *line) string { return l.Name }},
		{"attempts", true, func(l *line) string { return count(l.Attempts) }},
		{"idle_core_hours", true, func(l *line) string { return hours(l.Idle) }},
		{"core_hours", true, func(l *line) string { return hours(l.HeldCPU) }},
		{"used_percent", true, func(l *line) string { return Percent(l.UsedCPU, l.HeldCPU) }},
		{"memory", true, func(l *line) string { return fmt.Sprint(roost.Bytes(l.Memory)) }},
		{"peak", true, func(l *line) string { return fmt.Sprint(roost.Bytes(l.Peak)) }},
		{"memory_percent", true, func(l *line) string { return Percent(l.PeakMem, l.HeldMem) }},
	}
}

// Reconcile returns the columns of the report reconcile.
func Reconcile() []Column[query.ReconcileLine] {
	hours := func(head string, value func(*query.ReconcileLine) float64) Column[query.ReconcileLine] {
		return Column[query.ReconcileLine]{head, true, func(l *query.ReconcileLine) string {
			return strconv.FormatFloat(value(l), 'f', 3, 64)
		}}
	}
	return []Column[query.ReconcileLine]{
		{"begin", false, func(l *query.ReconcileLine) string { return utc(accounting.Millis(l.Begin)) }},
		{"end", false, func(l *query.ReconcileLine) string { return utc(accounting.Millis(l.End)) }},
		{"user", false, func(l *query.ReconcileLine) string { return l.User }},
		{"group", false, func(l *query.ReconcileLine) string { return l.Group }},
		hours("ledger_core_hours", func(l *query.ReconcileLine) float64 { return l.LedgerHours }),
		hours("held_core_hours", func(l *query.ReconcileLine) float64 { return l.HeldHours }),
		hours("differing_core_hours", func(l *query.ReconcileLine) float64 { return l.Different }),
		{"difference_percent", true, func(l *query.ReconcileLine) string {
			return strconv.FormatFloat(100*l.Difference, 'f', 1, 64)
		}},
		{"warns", false, func(l *query.ReconcileLine) string {
			if l.Warns {
				return "yes"
			}
			return ""
		}},
	}
}

// Statements returns the columns of the rows of statements.
func Statements() []Column[query.StatementRow] {
	type row = query.StatementRow
	return []Column[row]{
		{"payer", false, func(r *row) string { return r.Payer }},
		{"what", false, func(r *row) string { return r.What }},
		{"user", false, func(r *row) string { return r.User }},
		{"queue", false, func(r *row) string { return r.Queue }},
		{"band", false, func(r *row) string { return r.Band }},
		{"core_hours", true, (*row).Hours},
		{"amount", true, func(r *row) string { return r.Amount.String() }},
	}
}
