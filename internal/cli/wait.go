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

// timedOut is the exit status of a wait that took too long, as timeout(1) has it.
const timedOut = 124

func waitCommand() *command {
	return &command{
		name: "wait", group: groupSee, brief: "wait until jobs have ended", args: "JOB…", least: 1, most: -1, wants: "a job", do: waitFor,
		about: "Waits until all the jobs have ended and shows how far they are. The exit status is 0 if all succeeded and 1 if any did not; for a single task it is the task's own. A job that could not be started is held; that is shown, with the reason, and waited for, as somebody may mend and release it. " + selectors,
		examples: []example{
			{"roost wait last", "wait for your newest job"},
			{"roost wait --timeout 10m 5-9 && ./plot", "wait for five jobs, at most ten minutes, and go on if they succeeded"},
		},
		flags: append(selectionFlags(),
			&ucli.StringFlag{Name: "timeout", Usage: "give up after this `TIME`, as in 90s or 2h, with exit status 124"},
			&ucli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "show nothing"},
			&ucli.BoolFlag{Name: "json", Usage: "print a line of JSON for each change; roost-json(7) describes it"}),
	}
}

func waitFor(c *call) error {
	sel, err := c.selection()
	if err != nil {
		return err
	}
	var limit time.Duration
	if text := c.text("timeout"); text != "" {
		if limit, err = roost.ParseDuration(text); err != nil {
			return usage("--timeout: %v", err)
		}
	}
	return c.awaitSelection(sel, limit, c.flag("quiet"))
}

// await waits for jobs by their ids.
func (c *call) await(ids []string, limit time.Duration, quiet bool) error {
	return c.awaitSelection(&wire.Selection{Selectors: ids}, limit, quiet)
}

func (c *call) awaitSelection(sel *wire.Selection, limit time.Duration, quiet bool) error {
	if limit > 0 {
		var cancel context.CancelFunc
		c.ctx, cancel = context.WithTimeout(c.ctx, limit)
		defer cancel()
	}
	view := c.progress(quiet)
	watch := c.watch
	if everyTask(sel.GetSelectors()) {
		watch = c.watchTasks
	}
	tally, err := watch(sel, view)
	view.end(tally)
	switch {
	case err != nil && limit > 0 && c.ctx.Err() != nil:
		fmt.Fprintf(c.stderr, "roost: not done after %v: %s\n", limit, tally)
		return exit(timedOut)
	case err != nil:
		return err
	case len(tally.jobs) == 0:
		return problem(roost.NotFound, "no jobs match")
	}
	if len(tally.order) == 1 && !quiet && !c.json() {
		c.hint(tally.order[0])
	}
	if code := tally.code(); code != 0 {
		return exit(code)
	}
	return nil
}

// watch follows jobs until all have ended, through restarts of the schedd.
func (c *call) watch(sel *wire.Selection, view progress) (*tally, error) {
	t := newTally()
	s, err := c.schedd()
	if err != nil {
		return t, err
	}
	interval := uint32(100)
	if c.cmd.name == "wait" && c.json() {
		interval = 0
	}
	return t, c.persist(watchPatience, func(ctx context.Context, alive func()) error {
		stream, err := s.Watch(ctx, &wire.WatchRequest{Selection: sel, IntervalMs: interval})
		if err != nil {
			return err
		}
		for {
			e, err := stream.Recv()
			if err == io.EOF {
				return nil
			}
			if err = fromWire(err); err != nil {
				if errors.Is(err, roost.NotFound) && len(t.jobs) > 0 && t.open() == 0 {
					return nil
				}
				return err
			}
			alive()
			if s := e.GetStatus(); s != nil && len(t.jobs) == 0 {
				// The ids are settled now: "last" may mean another job when the watch has to begin anew.
				defer func() { sel = t.selection(sel) }()
			}
			t.fold(e)
			view.update(t, e)
		}
	})
}
