package claim

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/roost-batch/roost/startd/starterclient"
)

// Whoever may act on a job may write lines into its output while it runs (POSIX, qmsg).
// They are added behind what is there: captured output is a file of ours, other output
// the user's, and written with that user's rights. A line for an attempt whose program
// has not begun waits for that, because its files are emptied then.

// Bounds on lines.
const (
	MaxOutputMessage     = 4 << 10 // bytes
	maxPendingMessages   = 100     // of one attempt that wait; more are dropped
	outputMessageTimeout = 30 * time.Second
)

// pendingOutputMessages are the lines that an attempt is yet to get.
type pendingOutputMessages struct {
	mu         sync.Mutex
	waiting    []OutputMessageCmd
	filesReady bool // its files are there
	writing    bool // somebody is writing
}

// addOutputMessage has a line written into the output of an attempt.
func (a *Attempt) addOutputMessage(o OutputMessageCmd) {
	l := &a.outputMessages
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) >= maxPendingMessages {
		a.machine.log.Warn("a message is dropped: too many wait", "attempt", a.Label())
		return
	}
	l.waiting = append(l.waiting, o)
	a.writeOutputMessages()
}

// onProgramStarted notes that the program of an attempt has begun, and so its files are
// there.
func (a *Attempt) onProgramStarted() {
	a.outputMessages.mu.Lock()
	defer a.outputMessages.mu.Unlock()
	a.outputMessages.filesReady = true
	a.writeOutputMessages()
}

// writeOutputMessages writes what waits, if that can be written and nobody does so. The
// caller holds the lock.
func (a *Attempt) writeOutputMessages() {
	l := &a.outputMessages
	if !l.filesReady || l.writing || len(l.waiting) == 0 || a.AcquireFiles() != nil {
		return
	}
	l.writing = true
	go func() {
		defer a.ReleaseFiles()
		for {
			l.mu.Lock()
			if len(l.waiting) == 0 {
				l.writing = false
				l.mu.Unlock()
				return
			}
			o := l.waiting[0]
			l.waiting = l.waiting[1:]
			l.mu.Unlock()
			if err := a.writeOutputMessage(o); err != nil {
				a.machine.log.Warn("a message cannot be written", "attempt", a.Label(), "err", err)
			}
		}
	}()
}

// writeOutputMessage writes one line. Streams that are joined get it once.
func (a *Attempt) writeOutputMessage(o OutputMessageCmd) error {
	ctx, cancel := context.WithTimeout(a.ctx, outputMessageTimeout)
	defer cancel()
	r := &a.record
	if r.Join {
		o.Stdout, o.Stderr = o.Stdout || o.Stderr, false
	}
	var failed error
	for _, stream := range []struct {
		wanted, stderr bool
		path           string
	}{{o.Stdout, false, r.Stdout}, {o.Stderr, true, r.Stderr}} {
		if stream.wanted {
			failed = errors.Join(failed, a.appendToStream(ctx, stream.path, stream.stderr, o.Line))
		}
	}
	return failed
}

// appendToStream adds a line to a stream of an attempt.
func (a *Attempt) appendToStream(ctx context.Context, path string, stderr bool, line string) error {
	switch path {
	case "":
		return appendToCaptured(starterclient.CapturedPath(a.record.IO, stderr), line)
	case os.DevNull:
		return nil
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.record.Cwd, path)
	}
	agent, err := a.machine.agents.Acquire(a.cred)
	if err != nil {
		return err
	}
	defer a.machine.agents.Release(a.cred)
	return agent.Append(ctx, filepath.Dir(path), filepath.Base(path), []byte(line))
}

// appendToCaptured adds to a file in a directory of ours, into which no user can put
// anything.
func appendToCaptured(path, line string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line)
	return errors.Join(err, f.Close())
}
