package reporttable

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/query"
)

// Ends returns the columns of the report ends.
func Ends() []Column[accounting.EndLine] {
	return []Column[accounting.EndLine]{
		{"owner", false, func(l *accounting.EndLine) string { return l.Owner }},
		{"cause", false, func(l *accounting.EndLine) string { return l.Cause.String() }},
		{"count", true, func(l *accounting.EndLine) string { return count(l.Count) }},
		{"core_hours", true, func(l *accounting.EndLine) string { return hours(l.HeldCPU) }},
		{"lost_core_hours", true, func(l *accounting.EndLine) string { return hours(l.LostCPU) }},
		{"saved_core_hours", true, func(l *accounting.EndLine) string { return hours(l.SavedCPU) }},
	}
}

// Waits returns the columns of the report waits.
func Waits() []Column[accounting.WaitLine] {
	return []Column[accounting.WaitLine]{
		{"band", false, func(l *accounting.WaitLine) string { return l.Band.String() }},
		{"queue", false, func(l *accounting.WaitLine) string { return l.Queue }},
		{"bucket", true, func(l *accounting.WaitLine) string { return fmt.Sprint(l.Bucket) }},
		{"count", true, func(l *accounting.WaitLine) string { return count(l.Count) }},
		{"mean_wait", true, func(l *accounting.WaitLine) string { return clock(l.WaitSum / max(l.Count, 1)) }},
	}
}

// Sizes returns the columns of the report sizes.
func Sizes() []Column[accounting.SizeLine] {
	return []Column[accounting.SizeLine]{
		{"cores", true, func(l *accounting.SizeLine) string { return fmt.Sprint(1 << min(l.Bucket, 30)) }},
		{"band", false, func(l *accounting.SizeLine) string { return l.Band.String() }},
		{"count", true, func(l *accounting.SizeLine) string { return count(l.Count) }},
		{"wall_hours", true, func(l *accounting.SizeLine) string { return hours(l.Wall) }},
		{"core_hours", true, func(l *accounting.SizeLine) string { return hours(l.HeldCPU) }},
		{"mean_wait", true, func(l *accounting.SizeLine) string { return clock(l.WaitSum / max(l.Waits, 1)) }},
	}
}

// Efficiency returns the columns of the report efficiency.
func Efficiency() []Column[accounting.EfficiencyLine] {
	return []Column[accounting.EfficiencyLine]{
		{"owner", false, func(l *accounting.EfficiencyLine) string { return l.Owner }},
		{"attempts", true, func(l *accounting.EfficiencyLine) string { return count(l.Attempts) }},
		{"core_hours", true, func(l *accounting.EfficiencyLine) string { return hours(l.HeldCPU) }},
		{"used_percent", true, func(l *accounting.EfficiencyLine) string { return Percent(l.UsedCPU, l.HeldCPU) }},
		{"memory_percent", true, func(l *accounting.EfficiencyLine) string { return Percent(l.PeakMem, l.HeldMem) }},
		{"wasted_core_hours", true, func(l *accounting.EfficiencyLine) string { return hours(l.WastedCPU) }},
	}
}

// Sources returns the columns of the report sources, as of a time.
func Sources(now time.Time) []Column[query.SourceLine] {
	return []Column[query.SourceLine]{
		{"host", false, func(l *query.SourceLine) string { return l.Host }},
		{"next", true, func(l *query.SourceLine) string { return fmt.Sprint(l.Next) }},
		{"complete", false, func(l *query.SourceLine) string { return utc(l.Complete) }},
		{"lag_seconds", true, func(l *query.SourceLine) string { return sourceLag(l, now) }},
		{"skew_seconds", true, func(l *query.SourceLine) string { return seconds(l.Skew) }},
		{"gaps", true, func(l *query.SourceLine) string { return fmt.Sprint(l.Gaps) }},
		{"refused", true, func(l *query.SourceLine) string { return count(l.Refused) }},
		{"error", false, func(l *query.SourceLine) string { return l.Error }},
	}
}

// sourceLag returns how far the accounts are behind a source, in seconds; empty: nothing
// of it is complete yet.
func sourceLag(l *query.SourceLine, now time.Time) string {
	if l.Complete == 0 {
		return ""
	}
	return seconds(max(int64(accounting.MillisOf(now)-l.Complete), 0))
}

// Capacity returns the columns of the report capacity.
func Capacity() []Column[accounting.CapacityLine] {
	part := func(head string, amount func(*accounting.CapacityLine) int64) Column[accounting.CapacityLine] {
		return Column[accounting.CapacityLine]{head, true, func(l *accounting.CapacityLine) string {
			return hours(amount(l))
		}}
	}
	return []Column[accounting.CapacityLine]{
		{"class", false, func(l *accounting.CapacityLine) string { return l.Class }},
		{"hour", false, func(l *accounting.CapacityLine) string { return utc(l.Hour) }},
		part("core_hours", func(l *accounting.CapacityLine) int64 { return l.Total }),
		part("held", func(l *accounting.CapacityLine) int64 { return l.Held }),
		part("idle", func(l *accounting.CapacityLine) int64 { return l.Idle }),
		part("owner", func(l *accounting.CapacityLine) int64 { return l.Owner }),
		part("drained", func(l *accounting.CapacityLine) int64 { return l.Drained }),
		part("used", func(l *accounting.CapacityLine) int64 { return l.Used }),
		part("gpu_hours", func(l *accounting.CapacityLine) int64 { return l.TotalGPU }),
		part("gpu_held", func(l *accounting.CapacityLine) int64 { return l.HeldGPU }),
	}
}
