package condor

import (
	"io"
	"slices"

	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/condor"
)

func historyCommand() *frame.Command {
	return &frame.Command{
		Name: "condor_history", Group: frame.GroupCondor, Summary: "list jobs that have ended", RawArgs: true,
		MaxOperands: -1, Run: runHistory,
		Synopsis: "[-af[:jrlhV,tng] ATTR… | -format FMT ATTR | -json | -long] [-attributes LIST] [-constraint EXPR] " +
			"[-limit N] [CLUSTER[.PROC] | USER]…",
		Description: "Lists jobs of all users that have ended, the newest first, as condor_history of HTCondor " +
			"does. They stay as long as in roost history.",
		Examples: []frame.Example{
			{Line: "condor_history -limit 10", Description: "what ended last"},
			{Line: "condor_history 12 -af ProcId ExitCode", Description: "how the tasks of a job ended"},
		},
	}
}

func runHistory(c *frame.Invocation) error {
	l, answered, err := parseArguments(c, append(printOptions(), condor.OptionWord{Word: "forwards", Least: 2},
		condor.OptionWord{Word: "backwards", Least: 1}))
	if err != nil || answered {
		return refuseUnless(c, err)
	}
	s, err := selectionOf(c, l)
	if err != nil {
		return refuse(c, err)
	}
	p, err := newPrinter(c, l)
	if err != nil {
		return refuse(c, err)
	}
	ads, err := queryAds(c, s, true)
	if err != nil {
		return fail(c, err)
	}
	ads = slices.DeleteFunc(ads, func(ad *classad.Ad) bool { return !hasEnded(ad) })
	slices.SortStableFunc(ads, func(a, b *classad.Ad) int { return int(endOf(a) - endOf(b)) })
	if !l.Has("forwards") {
		slices.Reverse(ads)
	}
	ads = limited(l, ads)
	if p != nil {
		return p.print(ads)
	}
	io.WriteString(c.Stdout, condor.JobTable{Now: c.Now()}.HistoryLines(ads))
	return nil
}

// endOf returns when a job ended, in unix seconds.
func endOf(ad *classad.Ad) int64 { at, _ := ad.Int("EnteredCurrentStatus"); return at }
