package accounts

import (
	"fmt"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/cli/frame"
)

const reportNames = "ends|waits|sizes|capacity|efficiency|timeline|bands|waste|reconcile|sources"

// ReportCommand returns roost report: reports about the pool.
func ReportCommand() *frame.Command {
	return &frame.Command{
		Name: "report", Group: frame.GroupSee, Summary: "reports from the accounts of the pool",
		Synopsis:    reportNames,
		MinOperands: 1, MaxOperands: 1,
		Run: printReport,
		Description: "Prints a report from the accounts of the pool: ends by cause, waiting times, sizes of jobs, " +
			"what the machines had and gave, what was asked for and not used, what each band held by day, " +
			"how the accounts compare with the negotiator's ledger, and how far each schedd's feed is read.",
		Examples: []frame.Example{
			{Line: "roost report ends --since 7d", Description: "why your attempts ended within the last week"},
			{Line: "roost report capacity --month 2026-03 --csv", Description: "what the machines gave in March"},
		},
		Flags: append(rangeFlags("30d"),
			&ucli.BoolFlag{Name: "detail", Usage: "a line for each user, or for each hour"}),
	}
}

func printReport(c *frame.Invocation) error {
	name := c.Args[0]
	q, err := newQuery(c, name)
	if err != nil {
		return err
	}
	switch detail := c.Flag("detail"); {
	case detail && (name == query.Timeline || name == query.Bands):
		q.Step = query.StepHour
	case detail:
		q.By = []string{"owner"}
	}
	switch name {
	case query.Ends:
		return printAnswer(c, q, []column[accounting.EndLine]{
			{"owner", false, func(l *accounting.EndLine) string { return l.Owner }},
			{"cause", false, func(l *accounting.EndLine) string { return l.Cause.String() }},
			{"count", true, func(l *accounting.EndLine) string { return count(l.Count) }},
			{"core_hours", true, func(l *accounting.EndLine) string { return hours(l.HeldCPU) }},
			{"lost_core_hours", true, func(l *accounting.EndLine) string { return hours(l.LostCPU) }},
			{"saved_core_hours", true, func(l *accounting.EndLine) string { return hours(l.SavedCPU) }},
		})
	case query.Waits:
		return printAnswer(c, q, []column[accounting.WaitLine]{
			{"band", false, func(l *accounting.WaitLine) string { return l.Band.String() }},
			{"queue", false, func(l *accounting.WaitLine) string { return l.Queue }},
			{"bucket", true, func(l *accounting.WaitLine) string { return fmt.Sprint(l.Bucket) }},
			{"count", true, func(l *accounting.WaitLine) string { return count(l.Count) }},
			{"mean_wait", true, func(l *accounting.WaitLine) string { return clock(l.WaitSum / max(l.Count, 1)) }},
		})
	case query.Sizes:
		return printAnswer(c, q, []column[accounting.SizeLine]{
			{"cores", true, func(l *accounting.SizeLine) string { return fmt.Sprint(1 << min(l.Bucket, 30)) }},
			{"band", false, func(l *accounting.SizeLine) string { return l.Band.String() }},
			{"count", true, func(l *accounting.SizeLine) string { return count(l.Count) }},
			{"wall_hours", true, func(l *accounting.SizeLine) string { return hours(l.Wall) }},
			{"core_hours", true, func(l *accounting.SizeLine) string { return hours(l.HeldCPU) }},
			{"mean_wait", true, func(l *accounting.SizeLine) string { return clock(l.WaitSum / max(l.Waits, 1)) }},
		})
	case query.Capacity:
		return printAnswer(c, q, capacityColumns())
	case query.Efficiency:
		return printAnswer(c, q, []column[efficiencyLine]{
			{"owner", false, func(l *efficiencyLine) string { return l.Owner }},
			{"attempts", true, func(l *efficiencyLine) string { return count(l.Attempts) }},
			{"core_hours", true, func(l *efficiencyLine) string { return hours(l.HeldCPU) }},
			{"used_percent", true, func(l *efficiencyLine) string { return percent(l.UsedCPU, l.HeldCPU) }},
			{"memory_percent", true, func(l *efficiencyLine) string { return percent(l.PeakMem, l.HeldMem) }},
			{"wasted_core_hours", true, func(l *efficiencyLine) string { return hours(l.WastedCPU) }},
		})
	case query.Timeline, query.Bands:
		return printAnswer(c, q, pointColumns())
	case query.Waste:
		return printAnswer(c, q, wasteColumns())
	case query.Reconcile:
		return printAnswer(c, q, reconcileColumns())
	case query.Sources:
		return printAnswer(c, q, []column[query.SourceLine]{
			{"host", false, func(l *query.SourceLine) string { return l.Host }},
			{"next", true, func(l *query.SourceLine) string { return fmt.Sprint(l.Next) }},
			{"complete", false, func(l *query.SourceLine) string { return utc(l.Complete) }},
			{"lag_seconds", true, func(l *query.SourceLine) string { return sourceLag(l, c.Now()) }},
			{"skew_seconds", true, func(l *query.SourceLine) string { return seconds(l.Skew) }},
			{"gaps", true, func(l *query.SourceLine) string { return fmt.Sprint(l.Gaps) }},
			{"refused", true, func(l *query.SourceLine) string { return count(l.Refused) }},
			{"error", false, func(l *query.SourceLine) string { return l.Error }},
		})
	}
	return frame.UsageErrorf("there is no report %q; there is %s", name, reportNames)
}

type efficiencyLine = accounting.EfficiencyLine

func capacityColumns() []column[accounting.CapacityLine] {
	part := func(head string, amount func(*accounting.CapacityLine) int64) column[accounting.CapacityLine] {
		return column[accounting.CapacityLine]{head, true, func(l *accounting.CapacityLine) string {
			return hours(amount(l))
		}}
	}
	return []column[accounting.CapacityLine]{
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

// sourceLag returns how far the accounts are behind a source, in seconds; empty: nothing
// of it is complete yet.
func sourceLag(l *query.SourceLine, now time.Time) string {
	if l.Complete == 0 {
		return ""
	}
	return seconds(max(int64(accounting.MillisOf(now)-l.Complete), 0))
}

// printAnswer asks and prints.
func printAnswer[T any](c *frame.Invocation, q *query.Query, columns []column[T]) error {
	var lines []T
	if err := ask(c, q, func(l *T) error { lines = append(lines, *l); return nil }); err != nil {
		return err
	}
	return printLines(c, strings.TrimSuffix(q.Report, "s"), columns, lines)
}
