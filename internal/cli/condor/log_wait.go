package condor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/condor"
)

// logWait is a wait by a log file.
type logWait struct {
	path, file   string         // as it was named, and where it is
	of           []condor.JobID // empty: all jobs that the file names
	number       int            // so many of them are enough; 0: all
	limit        time.Duration  // 0: none
	status, echo bool
}

// How often a log file is looked at, and for how long one may be missing or empty: it is
// written by others.
const (
	logInterval = 200 * time.Millisecond
	logAppears  = 10 * time.Second
)

// await reads the file until the jobs have ended.
func (w *logWait) await(c *frame.Invocation) error {
	ctx, cancel := c.Context, context.CancelFunc(func() {})
	if w.limit > 0 {
		ctx, cancel = context.WithTimeout(ctx, w.limit)
	}
	defer cancel()
	began, tick := time.Now(), time.NewTicker(logInterval)
	defer tick.Stop()
	reader, at := &condor.LogReader{}, int64(0)
	for {
		n, err := w.readOn(c, reader, at)
		at += n
		isMissing := errors.Is(err, fs.ErrNotExist)
		if all, _ := reader.Jobs(); isMissing || err == nil && all == 0 {
			if time.Since(began) > logAppears {
				return fail(c, fmt.Errorf("%s names no job: is it the log of a job that was submitted? condor_wait "+
					"CLUSTER waits without one", w.path))
			}
		} else if err != nil {
			return fail(c, fmt.Errorf("%s is no user log that can be read: %w", w.path, err))
		} else if w.isDone(reader) {
			fmt.Fprintln(c.Stdout, "All jobs done.")
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if c.Context.Err() != nil {
				return fail(c, c.Context.Err())
			}
			fmt.Fprintln(c.Stdout, "Time expired.")
			return frame.ExitError(failure)
		}
	}
}

// readOn reads what the file has beyond an offset, and returns how much that is.
func (w *logWait) readOn(c *frame.Invocation, reader *condor.LogReader, at int64) (int64, error) {
	f, err := os.Open(w.file)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return 0, err
	case !info.Mode().IsRegular():
		return 0, errors.New("it is no file")
	case info.Size() < at:
		return 0, errors.New("it has become shorter")
	}
	buffer, done := make([]byte, 64<<10), int64(0)
	for {
		n, err := f.ReadAt(buffer, at+done)
		done += int64(n)
		events, bad := reader.Add(buffer[:n])
		w.show(c, events)
		switch {
		case bad != nil:
			return done, bad
		case errors.Is(err, io.EOF):
			return done, nil
		case err != nil:
			return done, err
		}
	}
}

func (w *logWait) show(c *frame.Invocation, events []condor.LogEvent) {
	for _, e := range events {
		if line := e.StatusLine(); w.status && line != "" {
			fmt.Fprintln(c.Stdout, line)
		}
		if w.echo {
			fmt.Fprint(c.Stdout, e.Text)
		}
	}
}

func (w *logWait) isDone(reader *condor.LogReader) bool {
	for _, id := range w.of {
		if !reader.HasEnded(id) {
			return false
		}
	}
	all, ended := reader.Jobs()
	switch {
	case w.number > 0:
		return ended >= w.number
	case len(w.of) > 0:
		return true
	}
	return ended == all
}
