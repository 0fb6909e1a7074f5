package condor

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/jobs"
	"github.com/roost-batch/roost/internal/condor"
	"github.com/roost-batch/roost/internal/config/pooldir"
)

func queueCommand() *frame.Command {
	return &frame.Command{
		Name: "condor_q", Group: frame.GroupCondor, Summary: "list jobs", RawArgs: true, MaxOperands: -1, Run: runQueue,
		Synopsis: "[-allusers] [-nobatch | -hold | -better-analyze | -af[:jrlhV,tng] ATTR… | " +
			"-format FMT ATTR | -json | -long] " +
			"[-attributes LIST] [-constraint EXPR] [CLUSTER[.PROC] | USER]…",
		Description: "Lists your jobs in the queue of this machine as condor_q of HTCondor does: a line for each " +
			"cluster, or with -nobatch for each proc. A cluster is a job of Roost, a proc is a task of it. " +
			"What is named by its id is listed also when it has ended.",
		Examples: []frame.Example{
			{Line: "condor_q -nobatch", Description: "a line for each task of yours"},
			{Line: "condor_q -json -attributes ClusterId,ProcId,JobStatus,ExitCode 12 13 14",
				Description: "the state of some jobs, for programs"},
			{Line: "condor_q -better-analyze 12.3", Description: "why a task does not run, as roost why says it"},
			{Line: "condor_q -allusers -constraint 'JobStatus == 5' -af:j HoldReason",
				Description: "why jobs are held"},
		},
	}
}

// printOptions are the options of condor_q and condor_history that choose jobs and forms.
func printOptions() []condor.OptionWord {
	return []condor.OptionWord{
		{Word: "autoformat", Least: 5, Values: condor.UpToOption}, {Word: "af", Least: 2, Values: condor.UpToOption},
		{Word: "format", Least: 1, Values: 2}, {Word: "constraint", Least: 1, Values: 1},
		{Word: "attributes", Least: 3, Values: 1}, {Word: "json", Least: 2}, {Word: "long", Least: 1},
		{Word: "submitter", Least: 2, Values: 1}, {Word: "wide", Least: 1}, {Word: "limit", Least: 2, Values: 1},
		{Word: "match", Least: 2, Values: 1},
	}
}

func queueOptions() []condor.OptionWord {
	return append(printOptions(), condor.OptionWord{Word: "allusers", Least: 2},
		condor.OptionWord{Word: "nobatch", Least: 3}, condor.OptionWord{Word: "analyze", Least: 2},
		condor.OptionWord{Word: "better-analyze", Least: 2}, condor.OptionWord{Word: "global", Least: 1},
		condor.OptionWord{Word: "batch", Least: 2}, condor.OptionWord{Word: "hold", Least: 4},
		condor.OptionWord{Word: "held", Least: 4},
		condor.OptionWord{Word: "run", Least: 1}, condor.OptionWord{Word: "totals", Least: 3})
}

func runQueue(c *frame.Invocation) error {
	l, answered, err := parseArguments(c, queueOptions())
	if err != nil || answered {
		return refuseUnless(c, err)
	}
	s, err := selectionOf(c, l)
	if err != nil {
		return refuse(c, err)
	}
	s.isMine = !l.Has("allusers") && !l.Has("global")
	p, err := newPrinter(c, l)
	if err != nil {
		return refuse(c, err)
	}
	ads, err := queryAds(c, s, false)
	if err != nil {
		return fail(c, err)
	}
	isExplained := l.Has("analyze") || l.Has("better-analyze")
	ads = chooseByState(l, ads, len(s.ids) > 0, p == nil && !l.Has("nobatch") && !isExplained)
	if p != nil {
		return p.print(limited(l, ads))
	}
	if isExplained {
		return explainAll(c, ads)
	}
	t := condor.JobTable{Schedd: scheddName(c), Now: c.Now()}
	io.WriteString(c.Stdout, t.Title())
	lines := t.BatchLines
	switch {
	case l.Has("hold") || l.Has("held"):
		lines = t.HoldLines
	case l.Has("nobatch") || l.Has("run") || l.Has("wide") && !l.Has("batch"):
		lines = t.JobLines
	}
	if !l.Has("totals") {
		io.WriteString(c.Stdout, lines(limited(l, ads)))
	}
	owner := ""
	if s.isMine {
		owner = frame.LoginName()
	}
	fmt.Fprintf(c.Stdout, "\n%s\n", condor.Totals(ads, owner))
	return nil
}

// explainAll says of each job why it does not run.
func explainAll(c *frame.Invocation, ads []*classad.Ad) error {
	procs := map[int64]int{}
	for _, ad := range ads {
		cluster, _ := ad.Int("ClusterId")
		proc, _ := ad.Int("ProcId")
		procs[cluster] += 1 + int(proc)
	}
	for _, ad := range ads {
		cluster, _ := ad.Int("ClusterId")
		proc, _ := ad.Int("ProcId")
		id := strconv.FormatInt(cluster, 10)
		if procs[cluster] > 1 {
			id += "[" + strconv.FormatInt(proc, 10) + "]"
		}
		fmt.Fprintf(c.Stdout, "\n%d.%03d:\n", cluster, proc)
		if err := jobs.Explain(c, id); err != nil {
			return fail(c, err)
		}
	}
	return nil
}

// chooseByState leaves out the jobs that the list does not show. Without ids these are
// those that have ended; a list by cluster counts the ended procs of one that has not.
func chooseByState(l condor.CommandLine, ads []*classad.Ad, byID, byCluster bool) []*classad.Ad {
	live := map[int64]bool{}
	for _, ad := range ads {
		if !hasEnded(ad) {
			cluster, _ := ad.Int("ClusterId")
			live[cluster] = true
		}
	}
	return slices.DeleteFunc(ads, func(ad *classad.Ad) bool {
		cluster, _ := ad.Int("ClusterId")
		state, _ := ad.Int("JobStatus")
		switch {
		case l.Has("hold") || l.Has("held"):
			return condor.StateNumber(state) != condor.Held
		case l.Has("run"):
			return condor.StateNumber(state) != condor.Running
		}
		return !byID && hasEnded(ad) && !(byCluster && live[cluster])
	})
}

func hasEnded(ad *classad.Ad) bool {
	state, _ := ad.Int("JobStatus")
	return condor.StateNumber(state).IsFinal()
}

// refuseUnless refuses a command line that is wrong; without an error all is done.
func refuseUnless(c *frame.Invocation, err error) error {
	if err == nil {
		return nil
	}
	return refuse(c, err)
}

// scheddName is the node whose queue the command reads, for the first line of a table.
func scheddName(c *frame.Invocation) string {
	if name := c.ScheddName(); name != "" {
		return name
	}
	return pooldir.HostName()
}
