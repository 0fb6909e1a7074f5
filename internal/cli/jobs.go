package cli

import (
	"cmp"
	"fmt"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

func jobsCommand() *command {
	return &command{
		name: "jobs", aliases: []string{"ls"}, group: groupSee, brief: "list jobs and how they stand", args: "[JOB…]", most: -1, do: listJobs,
		about: "Lists your jobs that have not ended, the newest first, from wherever in the pool they were submitted. A node that does not answer within two seconds is named. Name jobs to list those, ended or not. " + selectors,
		examples: []example{
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

func listJobs(c *call) error {
	sel, err := c.selection()
	if err != nil {
		return err
	}
	sel.Mine = !c.flag("all") && len(sel.Selectors) == 0
	tasks := c.flag("tasks") || (len(sel.Selectors) > 0 && everyTask(sel.Selectors))
	ended := c.flag("history") || len(sel.Selectors) > 0 || len(sel.States) > 0
	found, missing, err := c.listed(&wire.QueryRequest{Selection: sel, History: ended, Tasks: tasks, Limit: uint32(max(c.count("limit"), 0))})
	if err != nil {
		return err
	}
	if !ended { // a job is in the queue for a moment after its end
		found = keep(found, func(s *wire.JobStatus) bool { return !final(s) })
	}
	if c.json() {
		return c.jobsJSON("jobs", found, missing, tasks)
	}
	c.tellSilent(missing)
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

func (c *call) jobsJSON(name string, found []*wire.JobStatus, missing []silent, tasks bool) error {
	records := make([]jobRecord, len(found))
	for i, s := range found {
		records[i] = recordOf(s, tasks)
	}
	d := document{name: records}
	if len(missing) > 0 {
		d["unreachable"] = missing
	}
	return printJSON(c.stdout, d)
}

func (c *call) jobTable(found []*wire.JobStatus, owners bool) *table {
	t := &table{columns: []column{
		{head: "ID"}, {head: "NAME", least: 8}, {head: "OWNER", least: 6}, {head: "STATE"}, {head: "DONE", right: true, spare: 1}, {head: "FAILED", right: true, spare: 1},
		{head: "CPUS", right: true, spare: 4}, {head: "MEMORY", right: true, spare: 3}, {head: "GPUS", right: true, spare: 5}, {head: "SUBMITTED", spare: 6},
		{head: "TIME", right: true, spare: 1}, {head: "NOTE", least: 10, spare: 2},
	}}
	for _, s := range found {
		state := stateOf(s)
		done, failed, gpus := "", "", ""
		if s.GetTasks() > 1 || s.GetArray() {
			done = fmt.Sprintf("%d/%d", finished(s), s.GetTasks())
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
			owner = printable(s.GetOwner())
		}
		t.add(cell{s.GetId(), ""}, cell{printable(s.GetName()), ""}, cell{owner, ""}, cell{state, stateColour(state)}, cell{done, ""}, cell{failed, red},
			cell{r.CPU.String(), ""}, cell{r.Memory.String(), ""}, cell{gpus, ""}, cell{c.ago(s.GetSubmitted()), ""}, cell{c.taken(s), ""}, cell{note(s), dim})
	}
	t.drop("OWNER", "DONE", "FAILED", "GPUS", "NOTE")
	return t
}

// note is the most useful thing to say about a job in the last column: where it runs, why it waits, or how it failed.
func note(s *wire.JobStatus) string {
	switch stateOf(s) {
	case roost.Suspended.String():
		if s.GetNode() != "" && s.GetBrief() == "" {
			return stillText(s)
		}
	case roost.Running.String(), roost.Starting.String(), roost.Exiting.String():
		if s.GetNode() != "" && s.GetBrief() == "" { // it has one when its node is silent
			return "on " + s.GetNode()
		}
	case "failed":
		if text := ending(s.GetExit()); text != "" {
			return text
		}
	}
	return printable(cmp.Or(s.GetBrief(), s.GetReason()))
}

// stillText says where a suspended task stands, and for whom.
func stillText(s *wire.JobStatus) string {
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
