package condor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/jobs"
	"github.com/roost-batch/roost/internal/condor"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

func waitCommand() *frame.Command {
	return &frame.Command{
		Name: "condor_wait", Group: frame.GroupCondor, Summary: "wait until jobs have ended", RawArgs: true,
		MaxOperands: -1, Run: runWait, Synopsis: "[-wait SECONDS] [LOG] CLUSTER…",
		Description: "Waits until all tasks of the jobs have ended, through restarts of the schedd. A log file " +
			"ahead of the clusters is accepted and not read: the schedd is asked.",
		Examples: []frame.Example{
			{Line: "condor_wait 12", Description: "wait for a job"},
			{Line: "condor_wait -wait 3600 sim.log 12", Description: "for an hour at most"},
		},
	}
}

func runWait(c *frame.Invocation) error {
	l, answered, err := parseArguments(c, []condor.OptionWord{{Word: "wait", Least: 1, Values: 1}})
	if err != nil || answered {
		return refuseUnless(c, err)
	}
	var limit time.Duration
	if text := l.Last("wait"); text != "" {
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil || n == 0 {
			return refuse(c, fmt.Errorf("-wait %q: it is a number of seconds", text))
		}
		limit = time.Duration(n) * time.Second
	}
	var clusters []string
	for i, text := range l.Operands {
		id, ok := condor.ParseJobID(text)
		switch {
		case ok && id.Proc == condor.WholeCluster:
			clusters = append(clusters, id.String())
		case i > 0 || len(l.Operands) == 1:
			return refuse(c, fmt.Errorf("%q is no CLUSTER: there are no log files to wait by, so a cluster is named",
				text))
		}
	}
	if len(clusters) == 0 {
		return refuse(c, errors.New("no cluster is named"))
	}
	return awaitClusters(c, clusters, limit)
}

// awaitClusters waits until all jobs have ended, or the time has passed; 0 is no limit.
func awaitClusters(c *frame.Invocation, clusters []string, limit time.Duration) error {
	waiting := *c
	if limit > 0 {
		var cancel context.CancelFunc
		waiting.Context, cancel = context.WithTimeout(c.Context, limit)
		defer cancel()
	}
	_, err := jobs.WatchJobs(&waiting, &scheddapi.Selection{Selectors: clusters}, jobs.NoProgress{})
	switch {
	case err != nil && waiting.Context.Err() != nil && c.Context.Err() == nil:
		fmt.Fprintln(c.Stdout, "Time expired.")
		return frame.ExitError(failure)
	case err != nil && !errors.Is(frame.DecodeError(err), roost.Finished):
		return fail(c, err)
	}
	fmt.Fprintln(c.Stdout, "All jobs done.")
	return nil
}
