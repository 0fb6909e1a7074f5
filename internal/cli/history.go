package cli

import (
	"fmt"
	"slices"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// defaultHistoryLines is how many jobs are listed unless more are asked for.
const defaultHistoryLines = 50

func historyCommand() *command {
	return &command{
		name: "history", group: groupSee, summary: "list jobs that have ended", synopsis: "[JOB…]", maxOperands: -1,
		run: listHistory,
		description: "Lists your jobs that have ended, the newest first, with how they ended, from wherever in " +
			"the pool they were submitted. " + selectors,
		examples: []commandExample{
			{"roost history --since 1d", "what ended within the last day"},
			{"roost history --state failed --limit 10", "the last ten jobs with tasks that failed"},
		},
		flags: append(selectionFlags(),
			&ucli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "jobs of all users"},
			hereFlag(),
			&ucli.StringFlag{Name: "since",
				Usage: "only what ended since: a `TIME` ago as in 90m or 2d, or a date as in 2026-03-01"},
			&ucli.IntFlag{Name: "limit", Aliases: []string{"n"}, Usage: "at most `N` jobs; 0 for all",
				Value: defaultHistoryLines},
			&ucli.BoolFlag{Name: "json", Usage: "print a line of JSON for each job; roost-json(7) describes it"},
		),
	}
}

func listHistory(c *invocation) error {
	sel, err := c.selection()
	if err != nil {
		return err
	}
	since, err := c.parseSince()
	if err != nil {
		return err
	}
	sel.Mine = !c.flag("all") && len(sel.Selectors) == 0
	found, missing, err := c.queryJobList(&wire.QueryRequest{Selection: sel, History: true})
	if err != nil {
		return err
	}
	found = slices.DeleteFunc(found, func(s *wire.JobStatus) bool {
		return !isFinal(s) || !since.IsZero() && timeOfNanos(s.GetEnded()).Before(since)
	})
	if n := c.countFlag("limit"); n > 0 && len(found) > n {
		found = found[:n]
	}
	c.printUnreachable(missing)
	if c.wantsJSON() {
		for _, s := range found {
			if err := printLine(c.stdout, jsonDocument{"job": jobRecordOf(s, false)}); err != nil {
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

// parseSince reads the time from which on jobs are listed.
func (c *invocation) parseSince() (time.Time, error) {
	text := c.stringFlag("since")
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
	return time.Time{}, usageErrorf("--since: %q is neither a length of time, as 90m or 2d, nor a date, as 2026-03-01",
		text)
}

func (c *invocation) historyTable(found []*wire.JobStatus) *textTable {
	t := &textTable{columns: []tableColumn{
		{head: "ID"}, {head: "NAME", minWidth: 8}, {head: "OWNER", minWidth: 6}, {head: "STATE"}, {head: "TASKS",
			rightAligned: true, dropPriority: 2}, {head: "FAILED", rightAligned: true, dropPriority: 1},
		{head: "ENDED"}, {head: "TIME", rightAligned: true, dropPriority: 3},
		{head: "NODE", minWidth: 6, dropPriority: 4}, {head: "ENDING", minWidth: 12},
	}}
	for _, s := range found {
		state, owner, tasks, failed := stateOf(s), "", "", ""
		if c.flag("all") {
			owner = printableText(s.GetOwner())
		}
		if s.GetTasks() > 1 || s.GetArray() {
			tasks = fmt.Sprint(s.GetTasks())
		}
		if n := s.GetCounts()["failed"]; n > 0 && tasks != "" {
			failed = fmt.Sprint(n)
		}
		how := endText(s.GetExit())
		if how == "" {
			how = printableText(s.GetReason())
		}
		t.addRow(tableCell{s.GetId(), ""}, tableCell{printableText(s.GetName()), ""}, tableCell{owner, ""},
			tableCell{state, stateColour(state)}, tableCell{tasks, ""}, tableCell{failed, red},
			tableCell{c.agoText(s.GetEnded()), ""}, tableCell{c.runTimeText(s), ""}, tableCell{s.GetNode(), ""},
			tableCell{how, dim})
	}
	t.dropEmptyColumns("OWNER", "TASKS", "FAILED", "NODE", "ENDING")
	return t
}
