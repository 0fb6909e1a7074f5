package jobs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// ListCommand returns roost jobs: list jobs and how they stand.
func ListCommand() *frame.Command {
	return &frame.Command{
		Name: "jobs", Aliases: []string{"ls"}, Group: frame.GroupSee, Summary: "list jobs and how they stand",
		Synopsis: "[JOB…]", MaxOperands: -1, Run: listJobs,
		Description: "Lists your jobs that have not ended, the newest first, from wherever in the pool they were " +
			"submitted. A node that does not answer within two seconds is named. Name jobs to list those, ended " +
			"or not. " + selectors,
		Examples: []frame.Example{
			{Line: "roost jobs", Description: "your jobs that wait or run"},
			{Line: "roost jobs --tasks --state failed last", Description: "the tasks of your newest job that failed"},
		},
		Flags: append(selectionFlags(),
			&ucli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "jobs of all users"},
			hereFlag(),
			&ucli.BoolFlag{Name: "history", Aliases: []string{"x"}, Usage: "also jobs that have ended"},
			&ucli.StringFlag{Name: "ids", Usage: "list the jobs whose ids are in this `FILE`, ended or not, and name " +
				"those that there are not; - is standard input"},
			&ucli.BoolFlag{Name: "tasks", Aliases: []string{"t"}, Usage: "a line for each task"},
			&ucli.IntFlag{Name: "limit", Aliases: []string{"n"}, Usage: "at most `N` lines; 0 for all"},
			frame.JSONFlag(),
		),
	}
}

func listJobs(c *frame.Invocation) error {
	sel, err := selection(c)
	if err != nil {
		return err
	}
	if c.IsFlagSet("ids") {
		return listIDs(c, sel)
	}
	sel.Mine = !c.Flag("all") && len(sel.Selectors) == 0
	tasks := c.Flag("tasks") || (len(sel.Selectors) > 0 && frame.NamesOnlyTasks(sel.Selectors))
	ended := c.Flag("history") || len(sel.Selectors) > 0 || len(sel.States) > 0
	found, missing, err := queryJobList(c, &scheddapi.QueryRequest{Selection: sel, History: ended, Tasks: tasks,
		Limit: uint32(max(c.CountFlag("limit"), 0))})
	if err != nil {
		return err
	}
	if !ended { // a job is in the queue for a moment after its end
		found = slices.DeleteFunc(found, document.IsFinal)
	}
	if c.WantsJSON() {
		return jobsJSON(c, "jobs", found, missing, tasks)
	}
	c.PrintUnreachable(missing)
	if len(found) == 0 {
		if len(sel.Selectors)+len(sel.States) == 0 && sel.Constraint == "" && !c.Flag("history") {
			fmt.Fprintln(c.Stderr, "no jobs are waiting or running; those that have ended: roost history")
		} else {
			fmt.Fprintln(c.Stderr, "no jobs match")
		}
		return nil
	}
	jobTable(c, found, c.Flag("all")).Print(c.Stdout, c.OutScreen)
	return nil
}

func jobsJSON(c *frame.Invocation, name string, found []*scheddapi.JobStatus, missing []frame.UnreachableSchedd,
	tasks bool) error {
	records := make([]document.Job, len(found))
	for i, s := range found {
		records[i] = document.JobOf(s, tasks)
	}
	d := frame.JSONDocument{name: records}
	if len(missing) > 0 {
		d["unreachable"] = missing
	}
	return frame.PrintJSON(c.Stdout, d)
}

func jobTable(c *frame.Invocation, found []*scheddapi.JobStatus, owners bool) *frame.TextTable {
	t := &frame.TextTable{Columns: []frame.TableColumn{
		{Head: "ID"}, {Head: "NAME", MinWidth: 8}, {Head: "OWNER", MinWidth: 6}, {Head: "STATE"},
		{Head: "DONE", RightAligned: true, DropPriority: 1}, {Head: "FAILED", RightAligned: true, DropPriority: 1},
		{Head: "CPUS", RightAligned: true, DropPriority: 4}, {Head: "MEMORY", RightAligned: true, DropPriority: 3},
		{Head: "GPUS", RightAligned: true, DropPriority: 5}, {Head: "SUBMITTED", DropPriority: 6},
		{Head: "TIME", RightAligned: true, DropPriority: 1}, {Head: "NOTE", MinWidth: 10, DropPriority: 2},
	}}
	for _, s := range found {
		state := document.StateOf(s)
		done, failed, gpus := "", "", ""
		if s.GetService() == nil && (s.GetTasks() > 1 || s.GetArray()) { // a service is never done
			done = fmt.Sprintf("%d/%d", document.FinishedCount(s), s.GetTasks())
		}
		if n := s.GetCounts()["failed"]; n > 0 && (s.GetTasks() > 1 || s.GetArray()) {
			failed = fmt.Sprint(n)
		}
		r := s.GetRequest().Vector()
		if r.GPUs > 0 {
			gpus = fmt.Sprint(r.GPUs)
		}
		owner := ""
		if owners {
			owner = document.PrintableText(s.GetOwner())
		}
		t.AddRow(frame.TableCell{Text: s.GetId()}, frame.TableCell{Text: document.PrintableText(s.GetName())},
			frame.TableCell{Text: owner},
			frame.TableCell{Text: state, Colour: frame.StateColour(state)}, frame.TableCell{Text: done},
			frame.TableCell{Text: failed, Colour: frame.Red},
			frame.TableCell{Text: r.CPU.String()}, frame.TableCell{Text: r.Memory.String()},
			frame.TableCell{Text: gpus},
			frame.TableCell{Text: c.AgoText(s.GetSubmitted())}, frame.TableCell{Text: c.RunTimeText(s)},
			frame.TableCell{Text: jobNote(s), Colour: frame.Dim})
	}
	t.DropEmptyColumns("OWNER", "DONE", "FAILED", "GPUS", "NOTE")
	return t
}

// jobNote is the last column of a job: where it runs, why it waits, or how it failed. Of
// a task of a service it is also that its machine does not answer.
func jobNote(s *scheddapi.JobStatus) string {
	switch document.StateOf(s) {
	case roost.Suspended.String():
		if s.GetNode() != "" && s.GetBrief() == "" {
			return suspensionText(s)
		}
	case roost.Running.String(), roost.Starting.String(), roost.Exiting.String():
		if lost := roost.ServiceLost.String(); s.GetService().GetState() == lost {
			why := strings.TrimPrefix(s.GetReason(), lost+": ")
			return document.PrintableText(lost + ": " + cmp.Or(s.GetBrief(), why))
		}
		if s.GetNode() != "" && s.GetBrief() == "" { // it has one when its node is silent
			return strings.TrimSuffix("on "+s.GetNode()+", "+document.EpochNote(s), ", ")
		}
		return document.PrintableText(cmp.Or(s.GetBrief(), s.GetReason(), document.EpochNote(s)))
	case "failed":
		if text := document.EndText(s.GetExit()); text != "" {
			return text
		}
	}
	return document.PrintableText(cmp.Or(s.GetBrief(), s.GetReason()))
}

// suspensionText says where a suspended task stands, and for whom.
func suspensionText(s *scheddapi.JobStatus) string {
	where := "on " + s.GetNode()
	switch s.GetSuspendedBy() {
	case "owner":
		return "its owner uses " + s.GetNode()
	case "owner,user":
		return "its owner uses " + s.GetNode() + ", and a user has suspended it"
	case "user":
		return where + ", suspended by a user"
	}
	return where
}
