package main

import (
	"context"
	"time"
)

// measureRestart kills the daemon with the queue while many jobs wait in it. It measures
// how long the daemon takes until it answers, and until a job starts that is submitted as
// soon as that is possible.
func (a *systemAgent) measureRestart(ctx context.Context, o measureSpec, ans *measureResult) error {
	pipe, err := a.openStartPipe()
	if err != nil {
		return err
	}
	defer pipe.Close()
	if err := a.submitHeldJobs(ctx, o.Sizes.Restart); err != nil {
		return err
	}
	if err := sleepContext(ctx, 10*time.Second); err != nil { // state that is saved with a delay has been saved then
		return err
	}
	killed, err := a.killDaemon(a.queueDaemon())
	if err != nil {
		return err
	}
	if err := a.restartDaemon(ctx); err != nil {
		return err
	}
	for _, step := range []struct {
		figure string
		done   func() bool
	}{
		{"answers", func() bool { out, err := a.runAsUser(ctx, a.listCommand()...); return err == nil && out != "" }},
		{"", func() bool {
			argv, err := a.submitJob(a.filePath("stamp"))
			if err == nil {
				_, err = a.runAsUser(ctx, argv...)
			}
			return err == nil
		}},
	} {
		if err := pollUntil(ctx, 20*time.Millisecond, "after the kill", step.done); err != nil {
			return err
		}
		if step.figure != "" {
			ans.addValue(step.figure, time.Since(killed).Seconds())
		}
	}
	at, err := pipe.awaitStart(ctx)
	if err != nil {
		return err
	}
	ans.addValue("starts", at.Sub(killed).Seconds())
	return a.removeAllJobs(ctx)
}
