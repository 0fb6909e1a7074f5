package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// exitTimedOut is the exit status of a wait that took too long, as timeout(1) has it.
const exitTimedOut = 124

func waitCommand() *command {
	return &command{
		name: "wait", group: groupSee, summary: "wait until jobs have ended", synopsis: "JOB…", minOperands: 1,
		maxOperands: -1, operandName: "a job", run: waitFor,
		description: "Waits until all the jobs have ended and shows how far they are. The exit status is 0 if all " +
			"succeeded and 1 if any did not; for a single task it is the task's own. A job that could not be started " +
			"is held; that is shown, with the reason, and waited for, as somebody may mend and release it. " +
			selectors,
		examples: []commandExample{
			{"roost wait last", "wait for your newest job"},
			{"roost wait --timeout 10m 5-9 && ./plot",
				"wait for five jobs, at most ten minutes, and go on if they succeeded"},
		},
		flags: append(selectionFlags(),
			&ucli.StringFlag{Name: "timeout",
				Usage: "give up after this `TIME`, as in 90s or 2h, with exit status 124"},
			&ucli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "show nothing"},
			&ucli.BoolFlag{Name: "json", Usage: "print a line of JSON for each change; roost-json(7) describes it"}),
	}
}

func waitFor(c *invocation) error {
	sel, err := c.selection()
	if err != nil {
		return err
	}
	var limit time.Duration
	if text := c.stringFlag("timeout"); text != "" {
		if limit, err = roost.ParseDuration(text); err != nil {
			return usageErrorf("--timeout: %v", err)
		}
	}
	return c.awaitSelection(sel, limit, c.flag("quiet"))
}

// awaitJobs waits for jobs by their ids.
func (c *invocation) awaitJobs(ids []string, limit time.Duration, quiet bool) error {
	return c.awaitSelection(&wire.Selection{Selectors: ids}, limit, quiet)
}

func (c *invocation) awaitSelection(sel *wire.Selection, limit time.Duration, quiet bool) error {
	if limit > 0 {
		var cancel context.CancelFunc
		c.ctx, cancel = context.WithTimeout(c.ctx, limit)
		defer cancel()
	}
	view := c.newProgress(quiet)
	watch := c.watchJobs
	if namesOnlyTasks(sel.GetSelectors()) {
		watch = c.watchTasks
	}
	tally, err := watch(sel, view)
	view.end(tally)
	switch {
	case err != nil && limit > 0 && c.ctx.Err() != nil:
		fmt.Fprintf(c.stderr, "roost: not done after %v: %s\n", limit, tally)
		return exitError(exitTimedOut)
	case err != nil:
		return err
	case len(tally.jobs) == 0:
		return kindErrorf(roost.NotFound, "no jobs match")
	}
	if len(tally.order) == 1 && !quiet && !c.wantsJSON() {
		c.hint(tally.order[0])
	}
	if code := tally.exitStatus(); code != 0 {
		return exitError(code)
	}
	return nil
}

// watchJobs follows jobs until all have ended, through restarts of the schedd.
func (c *invocation) watchJobs(sel *wire.Selection, view progressDisplay) (*jobProgress, error) {
	t := newJobProgress()
	s, err := c.connectSchedd()
	if err != nil {
		return t, err
	}
	interval := uint32(100)
	if c.cmd.name == "wait" && c.wantsJSON() {
		interval = 0
	}
	return t, c.retry(watchTimeout, func(ctx context.Context, alive func()) error {
		stream, err := s.Watch(ctx, &wire.WatchRequest{Selection: sel, IntervalMs: interval})
		if err != nil {
			return err
		}
		for {
			e, err := stream.Recv()
			if err == io.EOF {
				return nil
			}
			if err = decodeError(err); err != nil {
				if errors.Is(err, roost.NotFound) && len(t.jobs) > 0 && t.openCount() == 0 {
					return nil
				}
				return err
			}
			alive()
			if s := e.GetStatus(); s != nil && len(t.jobs) == 0 {
				// The ids are settled now: "last" may mean another job when the watch has
				// to begin anew.
				defer func() { sel = t.idSelection(sel) }()
			}
			t.applyUpdate(e)
			view.update(t, e)
		}
	})
}
