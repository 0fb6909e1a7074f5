package jobs

import (
	"fmt"
	"slices"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// maxRunCounts bounds how many schedules have their runs counted: each costs a call.
const maxRunCounts = 100

// CronCommand returns roost cron: list jobs with a schedule.
func CronCommand() *frame.Command {
	return &frame.Command{
		Name: "cron", Group: frame.GroupSee, Summary: "list schedules and their next runs", Synopsis: "[JOB…]",
		MaxOperands: -1, Run: listSchedules,
		Description: "Lists your jobs that have a schedule, the one that runs next first: when its next run is, how " +
			"many runs were made and how many were left out, and what became of its last instant. " + selectors,
		Examples: []frame.Example{
			{Line: "roost cron", Description: "your schedules, and when each of them runs next"},
			{Line: "roost cron --from 2027-03-28 @nightly", Description: "when it runs as clocks change"},
			{Line: "roost cron --all --json", Description: "everybody's, with the next five instants of each"},
		},
		Flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "schedules of all users"},
			hereFlag(),
			&ucli.StringFlag{Name: "from", Usage: "tell the runs that are next after this `TIME`, as 2027-03-28 or " +
				"2027-03-28T00:30:00Z"},
			&ucli.BoolFlag{Name: "json", Usage: "print a line of JSON for each schedule; roost-json(7) describes it"},
		},
	}
}

// scheduledJob is a job with a schedule, and what became of its instants.
type scheduledJob struct {
	*scheddapi.JobStatus
	schedule      *document.Schedule
	runs, skipped int
	last          *scheddapi.JobEvent // of the last instant; nil: there was none, or it was not asked for
}

// firstInstant returns the time after which the next runs are told.
func firstInstant(c *frame.Invocation) (time.Time, error) {
	text := c.StringFlag("from")
	if text == "" {
		return c.Now(), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04", time.DateOnly} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at, nil
		}
	}
	return time.Time{}, frame.UsageErrorf("--from: %q is no time: write it as 2027-03-28 or 2027-03-28T00:30:00Z", text)
}

func listSchedules(c *frame.Invocation) error {
	from, err := firstInstant(c)
	if err != nil {
		return err
	}
	sel := &scheddapi.Selection{Selectors: c.Args, Constraint: "Schedule =!= undefined"}
	sel.Mine = !c.Flag("all") && len(sel.Selectors) == 0
	found, missing, err := queryJobList(c, &scheddapi.QueryRequest{Selection: sel, Ads: true})
	if err != nil {
		return err
	}
	c.PrintUnreachable(missing)
	list := make([]scheduledJob, 0, len(found))
	for _, s := range found {
		if schedule := document.ScheduleOf(s.GetAd(), s.GetOwner(), from); schedule != nil {
			list = append(list, scheduledJob{JobStatus: s, schedule: schedule})
		}
	}
	slices.SortStableFunc(list, func(a, b scheduledJob) int { return a.nextTime().Compare(b.nextTime()) })
	for i := range list[:min(len(list), maxRunCounts)] {
		if err := list[i].countRuns(c); err != nil {
			return err
		}
	}
	if c.WantsJSON() {
		for _, s := range list {
			if err := frame.PrintLine(c.Stdout, s.document()); err != nil {
				return err
			}
		}
		return nil
	}
	if len(list) == 0 {
		fmt.Fprintln(c.Stderr, "no job has a schedule; roost-job(5), SCHEDULES, says how to write one")
		return nil
	}
	scheduleTable(c, list).Print(c.Stdout, c.OutScreen)
	if len(list) > maxRunCounts {
		fmt.Fprintf(c.Stderr, "the runs of the first %d schedules are counted: name others to see theirs\n",
			maxRunCounts)
	}
	return nil
}

// nextTime returns the next instant. A schedule without one comes last.
func (s *scheduledJob) nextTime() time.Time {
	if len(s.schedule.Next) > 0 {
		if t, err := time.Parse(time.RFC3339, s.schedule.Next[0]); err == nil {
			return t
		}
	}
	return time.Unix(1<<40, 0)
}

// countRuns reads what became of the instants so far.
func (s *scheduledJob) countRuns(c *frame.Invocation) error {
	events, _, err := Events(c, s.GetId(), 0)
	for _, e := range events {
		switch e.GetWhat() {
		case "ticked":
			s.runs++
		case "skipped":
			s.skipped++
		default:
			continue
		}
		if s.last == nil || e.GetTime() >= s.last.GetTime() {
			s.last = e
		}
	}
	return err
}

// document returns the JSON of a schedule.
func (s *scheduledJob) document() frame.JSONDocument {
	d := frame.JSONDocument{"job": document.JobOf(s.JobStatus, false), "schedule": s.schedule, "runs": s.runs,
		"skipped": s.skipped}
	if s.last != nil {
		d["last"] = document.EventOf(s.last)
	}
	return d
}

func scheduleTable(c *frame.Invocation, list []scheduledJob) *frame.TextTable {
	t := &frame.TextTable{Columns: []frame.TableColumn{
		{Head: "ID"}, {Head: "NAME", MinWidth: 8}, {Head: "OWNER", MinWidth: 6}, {Head: "SCHEDULE", MinWidth: 9},
		{Head: "NEXT"}, {Head: "RUNS", RightAligned: true}, {Head: "SKIPPED", RightAligned: true, DropPriority: 1},
		{Head: "LAST", MinWidth: 12},
	}}
	for _, s := range list {
		owner, next, last := "", "", ""
		if c.Flag("all") {
			owner = document.PrintableText(s.GetOwner())
		}
		switch {
		case s.GetCounts()["held"] > 0:
			next = "held"
		case len(s.schedule.Next) > 0:
			next = s.schedule.Next[0]
		}
		if s.last != nil {
			last = document.PrintableText(s.last.GetText())
		}
		t.AddRow(frame.TableCell{Text: s.GetId()}, frame.TableCell{Text: document.PrintableText(s.GetName())},
			frame.TableCell{Text: owner}, frame.TableCell{Text: document.PrintableText(s.schedule.Cron)},
			frame.TableCell{Text: next}, frame.TableCell{Text: fmt.Sprint(s.runs)},
			frame.TableCell{Text: fmt.Sprint(s.skipped)}, frame.TableCell{Text: last})
	}
	t.DropEmptyColumns("OWNER")
	return t
}
