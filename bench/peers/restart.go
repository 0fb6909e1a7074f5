package main

import (
	"context"
	"time"
)

// restart kills the daemon that has the queue while many jobs wait in it, and sees how long it takes until it answers, and until a job starts that is
// submitted as soon as that works.
func (a *agent) restart(ctx context.Context, o order, ans *answer) error {
	pipe, err := a.listen()
	if err != nil {
		return err
	}
	defer pipe.Close()
	if err := a.heldEach(ctx, o.Sizes.Restart); err != nil {
		return err
	}
	if err := pause(ctx, 10*time.Second); err != nil { // what is saved a little later has been, then
		return err
	}
	killed, err := a.kill(a.queue())
	if err != nil {
		return err
	}
	if err := a.revive(ctx); err != nil {
		return err
	}
	for _, step := range []struct {
		figure string
		done   func() bool
	}{
		{"answers", func() bool { out, err := a.do(ctx, a.list()...); return err == nil && out != "" }},
		{"", func() bool {
			argv, err := a.one(a.file("stamp"))
			if err == nil {
				_, err = a.do(ctx, argv...)
			}
			return err == nil
		}},
	} {
		if err := until(ctx, 20*time.Millisecond, "after the kill", step.done); err != nil {
			return err
		}
		if step.figure != "" {
			ans.add(step.figure, time.Since(killed).Seconds())
		}
	}
	at, err := pipe.next(ctx)
	if err != nil {
		return err
	}
	ans.add("starts", at.Sub(killed).Seconds())
	return a.wipe(ctx)
}
