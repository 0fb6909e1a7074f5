package cli

import (
	"fmt"
	"slices"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// historyLines is how many jobs are listed unless more are asked for.
const historyLines = 50

func historyCommand() *command {
	return &command{
		name: "history", group: groupSee, brief: "list jobs that have ended", args: "[JOB…]", most: -1, do: listHistory,
		about: "Lists your jobs that have ended, the newest first, with how they ended, from wherever in the pool they were submitted. " + selectors,
		examples: []example{
			{"roost history --since 1d", "what ended within the last day"},
			{"roost history --state failed --limit 10", "the last ten jobs with tasks that failed"},
		},
		flags: append(selectionFlags(),
			&ucli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "jobs of all users"},
			hereFlag(),
			&ucli.StringFlag{Name: "since", Usage: "only what ended since: a `TIME` ago as in 90m or 2d, or a date as in 2026-03-01"},
			&ucli.IntFlag{Name: "limit", Aliases: []string{"n"}, Usage: "at most `N` jobs; 0 for all", Value: historyLines},
			&ucli.BoolFlag{Name: "json", Usage: "print a line of JSON for each job; roost-json(7) describes it"},
		),
	}
}

func listHistory(c *call) error {
	sel, err := c.selection()
	if err != nil {
		return err
	}
	since, err := c.since()
	if err != nil {
		return err
	}
	sel.Mine = !c.flag("all") && len(sel.Selectors) == 0
	found, missing, err := c.listed(&wire.QueryRequest{Selection: sel, History: true})
	if err != nil {
		return err
	}
	found = slices.DeleteFunc(found, func(s *wire.JobStatus) bool {
		return !final(s) || !since.IsZero() && instant(s.GetEnded()).Before(since)
	})
	if n := c.count("limit"); n > 0 && len(found) > n {
		found = found[:n]
	}
	c.tellSilent(missing)
	if c.json() {
		for _, s := range found {
			if err := printLine(c.stdout, document{"job": recordOf(s, false)}); err != nil {
				return err
			}
		}
		return nil
	}
	if len(found) == 0 {
		fmt.Fprintln(c.stderr, "no jobs match")
		return nil
	}
	c.historyTable(found).print(c.stdout, c.out)
	return nil
}

// since reads the time from which on jobs are listed.
func (c *call) since() (time.Time, error) {
	text := c.text("since")
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := roost.ParseDuration(text); err == nil {
		return c.now().Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usage("--since: %q is neither a length of time, as 90m or 2d, nor a date, as 2026-03-01", text)
}

func (c *call) historyTable(found []*wire.JobStatus) *table {
	t := &table{columns: []column{
		{head: "ID"}, {head: "NAME", least: 8}, {head: "OWNER", least: 6}, {head: "STATE"}, {head: "TASKS", right: true, spare: 2}, {head: "FAILED", right: true, spare: 1},
		{head: "ENDED"}, {head: "TIME", right: true, spare: 3}, {head: "NODE", least: 6, spare: 4}, {head: "ENDING", least: 12},
	}}
	for _, s := range found {
		state, owner, tasks, failed := stateOf(s), "", "", ""
		if c.flag("all") {
			owner = printable(s.GetOwner())
		}
		if s.GetTasks() > 1 || s.GetArray() {
			tasks = fmt.Sprint(s.GetTasks())
		}
		if n := s.GetCounts()["failed"]; n > 0 && tasks != "" {
			failed = fmt.Sprint(n)
		}
		how := ending(s.GetExit())
		if how == "" {
			how = printable(s.GetReason())
		}
		t.add(cell{s.GetId(), ""}, cell{printable(s.GetName()), ""}, cell{owner, ""}, cell{state, stateColour(state)}, cell{tasks, ""}, cell{failed, red},
			cell{c.ago(s.GetEnded()), ""}, cell{c.taken(s), ""}, cell{s.GetNode(), ""}, cell{how, dim})
	}
	t.drop("OWNER", "TASKS", "FAILED", "NODE", "ENDING")
	return t
}
