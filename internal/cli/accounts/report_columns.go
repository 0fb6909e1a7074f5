package accounts

import (
	"fmt"
	"strconv"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/query"
)

// pointColumns are the columns of the reports timeline and bands.
func pointColumns() []column[query.PointLine] {
	type line = query.PointLine
	return []column[line]{
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

// wasteColumns are the columns of the report waste.
func wasteColumns() []column[query.WasteLine] {
	type line = query.WasteLine
	return []column[line]{
		{"owner", false, func(l *line) string { return l.Owner }},
		{"name", false, func(l *line) string { return l.Name }},
		{"attempts", true, func(l *line) string { return count(l.Attempts) }},
		{"idle_core_hours", true, func(l *line) string { return hours(l.Idle) }},
		{"core_hours", true, func(l *line) string { return hours(l.HeldCPU) }},
		{"used_percent", true, func(l *line) string { return percent(l.UsedCPU, l.HeldCPU) }},
		{"memory", true, func(l *line) string { return fmt.Sprint(roost.Bytes(l.Memory)) }},
		{"peak", true, func(l *line) string { return fmt.Sprint(roost.Bytes(l.Peak)) }},
		{"memory_percent", true, func(l *line) string { return percent(l.PeakMem, l.HeldMem) }},
	}
}

// reconcileColumns are the columns of the report reconcile.
func reconcileColumns() []column[query.ReconcileLine] {
	hours := func(head string, value func(*query.ReconcileLine) float64) column[query.ReconcileLine] {
		return column[query.ReconcileLine]{head, true, func(l *query.ReconcileLine) string {
			return strconv.FormatFloat(value(l), 'f', 3, 64)
		}}
	}
	return []column[query.ReconcileLine]{
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
