package cli

import (
	"cmp"
	"fmt"
	"slices"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

func jobsCommand() *command {
	return &command{
		name: "jobs", aliases: []string{"ls"}, group: groupSee, summary: "list jobs and how they stand",
		synopsis: "[JOB…]", maxOperands: -1, run: listJobs,
		description: "Lists your jobs that have not ended, the newest first, from wherever in the pool they were " +
			"submitted. A node that does not answer within two seconds is named. Name jobs to list those, ended " +
			"or not. " + selectors,
		examples: []commandExample{
			{"roost jobs", "your jobs that wait or run"},
			{"roost jobs --tasks --state failed last", "the tasks of your newest job that failed"},
		},
		flags: append(selectionFlags(),
			&ucli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "jobs of all users"},
			hereFlag(),
			&ucli.BoolFlag{Name: "history", Aliases: []string{"x"}, Usage: "also jobs that have ended"},
			&ucli.BoolFlag{Name: "tasks", Aliases: []string{"t"}, Usage: "a line for each task"},
			&ucli.IntFlag{Name: "limit", Aliases: []string{"n"}, Usage: "at most `N` lines; 0 for all"},
			jsonFlag(),
		),
	}
}

func listJobs(c *invocation) error {
	sel, err := c.selection()
	if err != nil {
		return err
	}
	sel.Mine = !c.flag("all") && len(sel.Selectors) == 0
	tasks := c.flag("tasks") || (len(sel.Selectors) > 0 && namesOnlyTasks(sel.Selectors))
	ended := c.flag("history") || len(sel.Selectors) > 0 || len(sel.States) > 0
	found, missing, err := c.queryJobList(&wire.QueryRequest{Selection: sel, History: ended, Tasks: tasks,
		Limit: uint32(max(c.countFlag("limit"), 0))})
	if err != nil {
		return err
	}
	if !ended { // a job is in the queue for a moment after its end
		found = slices.DeleteFunc(found, isFinal)
	}
	if c.wantsJSON() {
		return c.jobsJSON("jobs", found, missing, tasks)
	}
	c.printUnreachable(missing)
	if len(found) == 0 {
		if len(sel.Selectors)+len(sel.States) == 0 && sel.Constraint == "" && !c.flag("history") {
			fmt.Fprintln(c.stderr, "no jobs are waiting or running; those that have ended: roost history")
		} else {
			fmt.Fprintln(c.stderr, "no jobs match")
		}
		return nil
	}
	c.jobTable(found, c.flag("all")).print(c.stdout, c.out)
	return nil
}

func (c *invocation) jobsJSON(name string, found []*wire.JobStatus, missing []unreachableSchedd, tasks bool) error {
	records := make([]jobRecord, len(found))
	for i, s := range found {
		records[i] = jobRecordOf(s, tasks)
	}
	d := jsonDocument{name: records}
	if len(missing) > 0 {
		d["unreachable"] = missing
	}
	return printJSON(c.stdout, d)
}

func (c *invocation) jobTable(found []*wire.JobStatus, owners bool) *textTable {
	t := &textTable{columns: []tableColumn{
		{head: "ID"}, {head: "NAME", minWidth: 8}, {head: "OWNER", minWidth: 6}, {head: "STATE"},
		{head: "DONE", rightAligned: true, dropPriority: 1}, {head: "FAILED", rightAligned: true, dropPriority: 1},
		{head: "CPUS", rightAligned: true, dropPriority: 4}, {head: "MEMORY", rightAligned: true, dropPriority: 3},
		{head: "GPUS", rightAligned: true, dropPriority: 5}, {head: "SUBMITTED", dropPriority: 6},
		{head: "TIME", rightAligned: true, dropPriority: 1}, {head: "NOTE", minWidth: 10, dropPriority: 2},
	}}
	for _, s := range found {
		state := stateOf(s)
		done, failed, gpus := "", "", ""
		if s.GetTasks() > 1 || s.GetArray() {
			done = fmt.Sprintf("%d/%d", finishedCount(s), s.GetTasks())
			if n := s.GetCounts()["failed"]; n > 0 {
				failed = fmt.Sprint(n)
			}
		}
		r := s.GetRequest().Vector()
		if r.GPUs > 0 {
			gpus = fmt.Sprint(r.GPUs)
		}
		owner := ""
		if owners {
			owner = printableText(s.GetOwner())
		}
		t.addRow(tableCell{s.GetId(), ""}, tableCell{printableText(s.GetName()), ""}, tableCell{owner, ""},
			tableCell{state, stateColour(state)}, tableCell{done, ""}, tableCell{failed, red},
			tableCell{r.CPU.String(), ""}, tableCell{r.Memory.String(), ""}, tableCell{gpus, ""},
			tableCell{c.agoText(s.GetSubmitted()), ""}, tableCell{c.runTimeText(s), ""}, tableCell{jobNote(s), dim})
	}
	t.dropEmptyColumns("OWNER", "DONE", "FAILED", "GPUS", "NOTE")
	return t
}

// jobNote is the most useful thing to say about a job in the last column: where it runs,
// why it waits, or how it failed.
func jobNote(s *wire.JobStatus) string {
	switch stateOf(s) {
	case roost.Suspended.String():
		if s.GetNode() != "" && s.GetBrief() == "" {
			return suspensionText(s)
		}
	case roost.Running.String(), roost.Starting.String(), roost.Exiting.String():
		if s.GetNode() != "" && s.GetBrief() == "" { // it has one when its node is silent
			return "on " + s.GetNode()
		}
	case "failed":
		if text := endText(s.GetExit()); text != "" {
			return text
		}
	}
	return printableText(cmp.Or(s.GetBrief(), s.GetReason()))
}

// suspensionText says where a suspended task stands, and for whom.
func suspensionText(s *wire.JobStatus) string {
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
