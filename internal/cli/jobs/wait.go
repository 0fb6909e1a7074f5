package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// exitTimedOut is the exit status of a wait that took too long, as timeout(1) has it.
const exitTimedOut = 124

// WaitCommand returns roost wait: wait until jobs have ended. On a terminal it shows
// bars.
func WaitCommand(bars BarMaker) *frame.Command {
	return &frame.Command{
		Name: "wait", Group: frame.GroupSee, Summary: "wait until jobs have ended", Synopsis: "JOB…", MinOperands: 1,
		MaxOperands: -1, OperandName: "a job",
		Run: func(c *frame.Invocation) error { return waitFor(c, bars) },
		Description: "Waits until all the jobs have ended and shows how far they are. The exit status is 0 if all " +
			"succeeded and 1 if any did not; for a single task it is the task's own. A job that could not be started " +
			"is held; that is shown, with the reason, and waited for, as somebody may mend and release it. " +
			"A service never ends: wait until its tasks are ready, or for the end of its update. " + selectors,
		Examples: []frame.Example{
			{Line: "roost wait last", Description: "wait for your newest job"},
			{Line: "roost wait --timeout 10m 5-9 && ./plot",
				Description: "wait for five jobs, at most ten minutes, and go on if they succeeded"},
			{Line: "roost wait --ready --timeout 1m @hub", Description: "wait until your service can be used"},
		},
		Flags: append(selectionFlags(),
			&ucli.StringFlag{Name: "timeout",
				Usage: "give up after this `TIME`, as in 90s or 2h, with exit status 124"},
			&ucli.BoolFlag{Name: "ready", Usage: "wait until all tasks of services are ready"},
			&ucli.BoolFlag{Name: "update", Usage: "wait until the updates of services have ended"},
			&ucli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "show nothing"},
			&ucli.BoolFlag{Name: "json", Usage: "print a line of JSON for each change; roost-json(7) describes it"}),
	}
}

func waitFor(c *frame.Invocation, bars BarMaker) error {
	sel, err := selection(c)
	if err != nil {
		return err
	}
	var limit time.Duration
	if text := c.StringFlag("timeout"); text != "" {
		if limit, err = roost.ParseDuration(text); err != nil {
			return frame.UsageErrorf("--timeout: %v", err)
		}
	}
	if c.Flag("ready") || c.Flag("update") {
		return waitForServices(c, sel, limit)
	}
	return awaitSelection(c, bars, sel, limit, c.Flag("quiet"))
}

// AwaitJobs waits for jobs by their ids.
func AwaitJobs(c *frame.Invocation, bars BarMaker, ids []string, limit time.Duration, quiet bool) error {
	return awaitSelection(c, bars, &scheddapi.Selection{Selectors: ids}, limit, quiet)
}

func awaitSelection(c *frame.Invocation, bars BarMaker, sel *scheddapi.Selection, limit time.Duration,
	quiet bool) error {
	if limit > 0 {
		var cancel context.CancelFunc
		c.Context, cancel = context.WithTimeout(c.Context, limit)
		defer cancel()
	}
	view := newProgress(c, bars, quiet)
	watch := WatchJobs
	if frame.NamesOnlyTasks(sel.GetSelectors()) {
		watch = watchTasks
	}
	tally, err := watch(c, sel, view)
	view.end(tally)
	switch {
	case err != nil && limit > 0 && c.Context.Err() != nil:
		fmt.Fprintf(c.Stderr, "roost: not done after %v: %s\n", limit, tally)
		return frame.ExitError(exitTimedOut)
	case err != nil:
		return err
	case len(tally.Jobs) == 0:
		return frame.KindErrorf(roost.NotFound, "no jobs match")
	}
	if len(tally.order) == 1 && !quiet && !c.WantsJSON() {
		hint(c, tally.order[0])
	}
	if code := tally.exitStatus(); code != 0 {
		return frame.ExitError(code)
	}
	return nil
}

// WatchJobs follows jobs until all have ended, through restarts of the schedd.
func WatchJobs(c *frame.Invocation, sel *scheddapi.Selection, view ProgressDisplay) (*Progress, error) {
	t := newJobProgress()
	s, err := c.ConnectSchedd()
	if err != nil {
		return t, err
	}
	interval := uint32(100)
	if c.Command.Name == "wait" && c.WantsJSON() {
		interval = 0
	}
	return t, c.Retry(frame.WatchTimeout, func(ctx context.Context, alive func()) error {
		stream, err := s.Watch(ctx, &scheddapi.WatchRequest{Selection: sel, IntervalMs: interval})
		if err != nil {
			return err
		}
		for {
			e, err := stream.Recv()
			if err == io.EOF {
				return nil
			}
			if err = frame.DecodeError(err); err != nil {
				if errors.Is(err, roost.NotFound) && len(t.Jobs) > 0 && t.openCount() == 0 {
					return nil
				}
				return err
			}
			alive()
			if s := e.GetStatus(); s != nil && len(t.Jobs) == 0 {
				// The ids are settled now: "last" may mean another job when the watch has
				// to begin anew.
				defer func() { sel = t.idSelection(sel) }()
			}
			t.applyUpdate(e)
			view.update(t, e)
		}
	})
}
