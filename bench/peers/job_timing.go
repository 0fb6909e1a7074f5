package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"time"
)

// startPipe is a pipe to which jobs write when they start.
type startPipe struct{ *os.File }

// openStartPipe opens the pipe for both directions, so that it never ends.
func (a *systemAgent) openStartPipe() (startPipe, error) {
	f, err := os.OpenFile(a.makeFIFO(), os.O_RDWR, 0)
	return startPipe{f}, err
}

// awaitStart waits until a job has started.
func (s startPipe) awaitStart(ctx context.Context) (time.Time, error) {
	if due, ok := ctx.Deadline(); ok {
		if err := s.SetReadDeadline(due); err != nil {
			return time.Time{}, err
		}
	}
	stop := context.AfterFunc(ctx, func() { s.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	_, err := s.Read(make([]byte, len("started\n")))
	if err != nil {
		err = fmt.Errorf("the job has not started: %w", err)
	}
	return time.Now(), err
}

// measureLatency submits one job after the other, each to an idle pool, at random times.
// So a system that looks at its queue periodically is measured at all points of its
// period.
func (a *systemAgent) measureLatency(ctx context.Context, o measureSpec, ans *measureResult) error {
	pipe, err := a.openStartPipe()
	if err != nil {
		return err
	}
	defer pipe.Close()
	for range o.Sizes.Latency {
		argv, err := a.submitJob(a.filePath("stamp"))
		if err != nil {
			return err
		}
		began := time.Now()
		if _, err := a.runAsUser(ctx, argv...); err != nil {
			return err
		}
		ended := time.Now()
		at, err := pipe.awaitStart(ctx)
		if err != nil {
			return err
		}
		ans.addValue("start", at.Sub(began).Seconds())
		ans.addValue("command", ended.Sub(began).Seconds())
		if err := a.awaitNoJobs(ctx); err != nil {
			return err
		}
		if err := sleepContext(ctx, time.Duration(700+rand.IntN(600))*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// measureBatch runs an array of /bin/true to its end. The CPU time is that of daemons and
// jobs, without the commands that submit and query.
func (a *systemAgent) measureBatch(ctx context.Context, o measureSpec, ans *measureResult) error {
	argv, err := a.submitArray(o.Sizes.Batch, "/bin/true")
	if err != nil {
		return err
	}
	before, began := cpuTimeSpent(), time.Now()
	if _, err := a.runAsUser(ctx, argv...); err != nil {
		return err
	}
	if err := a.awaitNoJobs(ctx); err != nil {
		return err
	}
	ans.addValue("batch", float64(o.Sizes.Batch)/time.Since(began).Seconds())
	ans.addValue("cost", (cpuTimeSpent()-before)/float64(o.Sizes.Batch))
	return nil
}

// measureSubmitLoop submits waiting jobs, each by a command of its own, one after the
// other in a shell.
func (a *systemAgent) measureSubmitLoop(ctx context.Context, o measureSpec, ans *measureResult) error {
	began := time.Now()
	_, err := a.runAsUser(ctx, "sh", "-c", loopScript(a.submitHeld(), o.Sizes.Loop))
	took := time.Since(began)
	if err != nil {
		return err
	}
	ans.addValue("loop", float64(o.Sizes.Loop)/took.Seconds())
	return a.removeAllJobs(ctx)
}

// loopScript returns a shell loop that ends at the first command that fails.
func loopScript(command string, n int) string {
	return fmt.Sprintf("i=0; while [ $i -lt %d ]; do %s >/dev/null || exit 1; i=$((i+1)); done", n, command)
}

func (ans *measureResult) addValue(figure string, value float64) {
	ans.Values[figure] = append(ans.Values[figure], value)
}
