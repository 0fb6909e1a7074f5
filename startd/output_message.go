package startd

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
// the user's, and written as he. A line for an attempt whose program has not begun waits
// for that, because its files are emptied then.

// Bounds on lines.
const (
	maxOutputMessage     = 4 << 10 // bytes
	maxPendingMessages   = 100     // of one attempt that wait; more are dropped
	outputMessageTimeout = 30 * time.Second
)

// pendingOutputMessages are the lines that an attempt is yet to get.
type pendingOutputMessages struct {
	mu         sync.Mutex
	waiting    []outputMessageCmd
	filesReady bool // its files are there
	writing    bool // somebody is writing
}

// addOutputMessage has a line written into the output of an attempt.
func (m *claimHost) addOutputMessage(a *claimAttempt, o outputMessageCmd) {
	l := &a.outputMessages
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) >= maxPendingMessages {
		m.log.Warn("a message is dropped: too many wait", "attempt", a.label())
		return
	}
	l.waiting = append(l.waiting, o)
	m.writeOutputMessages(a)
}

// onProgramStarted notes that the program of an attempt has begun, and so its files are
// there.
func (m *claimHost) onProgramStarted(a *claimAttempt) {
	a.outputMessages.mu.Lock()
	defer a.outputMessages.mu.Unlock()
	a.outputMessages.filesReady = true
	m.writeOutputMessages(a)
}

// writeOutputMessages writes what waits, if that can be written and nobody does so. The
// caller holds the lock.
func (m *claimHost) writeOutputMessages(a *claimAttempt) {
	l := &a.outputMessages
	if !l.filesReady || l.writing || len(l.waiting) == 0 || a.acquireFiles() != nil {
		return
	}
	l.writing = true
	go func() {
		defer a.releaseFiles()
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
			if err := m.writeOutputMessage(a, o); err != nil {
				m.log.Warn("a message cannot be written", "attempt", a.label(), "err", err)
			}
		}
	}()
}

// writeOutputMessage writes one line. Streams that are joined get it once.
func (m *claimHost) writeOutputMessage(a *claimAttempt, o outputMessageCmd) error {
	ctx, cancel := context.WithTimeout(a.ctx, outputMessageTimeout)
	defer cancel()
	r := &a.record
	if r.Join {
		o.out, o.err = o.out || o.err, false
	}
	var failed error
	for _, stream := range []struct {
		wanted, stderr bool
		path           string
	}{{o.out, false, r.Stdout}, {o.err, true, r.Stderr}} {
		if stream.wanted {
			failed = errors.Join(failed, m.appendToStream(ctx, a, stream.path, stream.stderr, o.line))
		}
	}
	return failed
}

// appendToStream adds a line to a stream of an attempt.
func (m *claimHost) appendToStream(ctx context.Context, a *claimAttempt, path string, stderr bool, line string) error {
	switch path {
	case "":
		return appendToCaptured(starterclient.CapturedPath(a.record.IO, stderr), line)
	case os.DevNull:
		return nil
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.record.Cwd, path)
	}
	agent, err := m.agents.Acquire(a.cred)
	if err != nil {
		return err
	}
	defer m.agents.Release(a.cred)
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
