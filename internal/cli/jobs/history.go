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

// defaultHistoryLines is how many jobs are listed unless more are asked for.
const defaultHistoryLines = 50

// HistoryCommand returns roost history: list jobs that have ended.
func HistoryCommand() *frame.Command {
	return &frame.Command{
		Name: "history", Group: frame.GroupSee, Summary: "list jobs that have ended", Synopsis: "[JOB…]",
		MaxOperands: -1,
		Run:         listHistory,
		Description: "Lists your jobs that have ended, the newest first, with how they ended, from wherever in " +
			"the pool they were submitted. " + selectors,
		Examples: []frame.Example{
			{Line: "roost history --since 1d", Description: "what ended within the last day"},
			{Line: "roost history --state failed --limit 10", Description: "the last ten jobs with tasks that failed"},
		},
		Flags: append(selectionFlags(),
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

func listHistory(c *frame.Invocation) error {
	sel, err := selection(c)
	if err != nil {
		return err
	}
	since, err := c.TimeFlag("since", time.Time{})
	if err != nil {
		return err
	}
	sel.Mine = !c.Flag("all") && len(sel.Selectors) == 0
	found, missing, err := queryJobList(c, &scheddapi.QueryRequest{Selection: sel, History: true})
	if err != nil {
		return err
	}
	found = slices.DeleteFunc(found, func(s *scheddapi.JobStatus) bool {
		return !document.IsFinal(s) || !since.IsZero() && document.TimeOfNanos(s.GetEnded()).Before(since)
	})
	if n := c.CountFlag("limit"); n > 0 && len(found) > n {
		found = found[:n]
	}
	c.PrintUnreachable(missing)
	if c.WantsJSON() {
		for _, s := range found {
			if err := frame.PrintLine(c.Stdout, frame.JSONDocument{"job": document.JobOf(s, false)}); err != nil {
				return err
			}
		}
		return nil
	}
	if len(found) == 0 {
		fmt.Fprintln(c.Stderr, "no jobs match")
		return nil
	}
	historyTable(c, found).Print(c.Stdout, c.OutScreen)
	return nil
}

func historyTable(c *frame.Invocation, found []*scheddapi.JobStatus) *frame.TextTable {
	t := &frame.TextTable{Columns: []frame.TableColumn{
		{Head: "ID"}, {Head: "NAME", MinWidth: 8}, {Head: "OWNER", MinWidth: 6}, {Head: "STATE"}, {Head: "TASKS",
			RightAligned: true, DropPriority: 2}, {Head: "FAILED", RightAligned: true, DropPriority: 1},
		{Head: "ENDED"}, {Head: "TIME", RightAligned: true, DropPriority: 3},
		{Head: "NODE", MinWidth: 6, DropPriority: 4}, {Head: "POOL", DropPriority: 5}, {Head: "ENDING", MinWidth: 12},
	}}
	for _, s := range found {
		state, owner, tasks, failed := document.StateOf(s), "", "", ""
		if c.Flag("all") {
			owner = document.PrintableText(s.GetOwner())
		}
		if s.GetTasks() > 1 || s.GetArray() {
			tasks = fmt.Sprint(s.GetTasks())
		}
		if n := s.GetCounts()["failed"]; n > 0 && tasks != "" {
			failed = fmt.Sprint(n)
		}
		how := document.EndText(s.GetExit())
		if how == "" {
			how = document.PrintableText(s.GetReason())
		}
		t.AddRow(frame.TableCell{Text: s.GetId()}, frame.TableCell{Text: document.PrintableText(s.GetName())},
			frame.TableCell{Text: owner},
			frame.TableCell{Text: state, Colour: frame.StateColour(state)}, frame.TableCell{Text: tasks},
			frame.TableCell{Text: failed, Colour: frame.Red},
			frame.TableCell{Text: c.AgoText(s.GetEnded())}, frame.TableCell{Text: c.RunTimeText(s)},
			frame.TableCell{Text: s.GetNode()}, frame.TableCell{Text: document.PoolOfNode(s.GetNode())},
			frame.TableCell{Text: how, Colour: frame.Dim})
	}
	t.DropEmptyColumns("OWNER", "TASKS", "FAILED", "NODE", "POOL", "ENDING")
	return t
}
