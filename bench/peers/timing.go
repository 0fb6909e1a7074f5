package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"time"
)

// started is a pipe that jobs write to when they start.
type started struct{ *os.File }

// listen opens the pipe for both directions, so that it never ends.
func (a *agent) listen() (started, error) {
	f, err := os.OpenFile(a.fifo(), os.O_RDWR, 0)
	return started{f}, err
}

// next waits until a job has started.
func (s started) next(ctx context.Context) (time.Time, error) {
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

// latency submits one job after the other, each to an idle pool, at times that have nothing to do with each other: who looks at his queue every
// so often is met at all points of his period.
func (a *agent) latency(ctx context.Context, o order, ans *answer) error {
	pipe, err := a.listen()
	if err != nil {
		return err
	}
	defer pipe.Close()
	for range o.Sizes.Latency {
		argv, err := a.one(a.file("stamp"))
		if err != nil {
			return err
		}
		began := time.Now()
		if _, err := a.do(ctx, argv...); err != nil {
			return err
		}
		ended := time.Now()
		at, err := pipe.next(ctx)
		if err != nil {
			return err
		}
		ans.add("start", at.Sub(began).Seconds())
		ans.add("command", ended.Sub(began).Seconds())
		if err := a.empty(ctx); err != nil {
			return err
		}
		if err := pause(ctx, time.Duration(700+rand.IntN(600))*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// batch runs an array of /bin/true to its end. The CPU time is that of daemons and jobs, without the commands that submit and ask.
func (a *agent) batch(ctx context.Context, o order, ans *answer) error {
	argv, err := a.array(o.Sizes.Batch, "/bin/true")
	if err != nil {
		return err
	}
	before, began := spent(), time.Now()
	if _, err := a.do(ctx, argv...); err != nil {
		return err
	}
	if err := a.empty(ctx); err != nil {
		return err
	}
	ans.add("batch", float64(o.Sizes.Batch)/time.Since(began).Seconds())
	ans.add("cost", (spent()-before)/float64(o.Sizes.Batch))
	return nil
}

// loop submits jobs that wait, each by a command of its own, one after the other in a shell.
func (a *agent) loop(ctx context.Context, o order, ans *answer) error {
	began := time.Now()
	_, err := a.do(ctx, "sh", "-c", repeated(a.held(), o.Sizes.Loop))
	took := time.Since(began)
	if err != nil {
		return err
	}
	ans.add("loop", float64(o.Sizes.Loop)/took.Seconds())
	return a.wipe(ctx)
}

// repeated is a shell's loop that ends with the first command that fails.
func repeated(command string, n int) string {
	return fmt.Sprintf("i=0; while [ $i -lt %d ]; do %s >/dev/null || exit 1; i=$((i+1)); done", n, command)
}

func (ans *answer) add(figure string, value float64) {
	ans.Values[figure] = append(ans.Values[figure], value)
}
