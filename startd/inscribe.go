package startd

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/roost-batch/roost/startd/starter"
)

// Whoever may act on a job may write lines into its output while it runs (POSIX, qmsg). They are added behind what is there: captured output is a file of ours,
// other output the user's, and written as he. A line for an attempt whose program has not begun waits for that, because its files are emptied then.

// Bounds on lines.
const (
	maxLine      = 4 << 10 // bytes
	maxLines     = 100     // of one attempt that wait; more are dropped
	inscribeTime = 30 * time.Second
)

// inscriptions are the lines that an attempt is yet to get.
type inscriptions struct {
	mu      sync.Mutex
	waiting []inscribe
	open    bool // its files are there
	busy    bool // somebody is writing
}

// inscribe has a line written into the output of an attempt.
func (m *machine) inscribe(a *attempt, o inscribe) {
	l := &a.lines
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) >= maxLines {
		m.log.Warn("a message is dropped: too many wait", "attempt", a.label())
		return
	}
	l.waiting = append(l.waiting, o)
	m.inscribeAll(a)
}

// opened notes that the program of an attempt has begun, and so its files are there.
func (m *machine) opened(a *attempt) {
	a.lines.mu.Lock()
	defer a.lines.mu.Unlock()
	a.lines.open = true
	m.inscribeAll(a)
}

// inscribeAll writes what waits, if that can be written and nobody does so. The caller holds the lock.
func (m *machine) inscribeAll(a *attempt) {
	l := &a.lines
	if !l.open || l.busy || len(l.waiting) == 0 || a.enter() != nil {
		return
	}
	l.busy = true
	go func() {
		defer a.leave()
		for {
			l.mu.Lock()
			if len(l.waiting) == 0 {
				l.busy = false
				l.mu.Unlock()
				return
			}
			o := l.waiting[0]
			l.waiting = l.waiting[1:]
			l.mu.Unlock()
			if err := m.inscribeOne(a, o); err != nil {
				m.log.Warn("a message cannot be written", "attempt", a.label(), "err", err)
			}
		}
	}()
}

// inscribeOne writes one line. Streams that are joined get it once.
func (m *machine) inscribeOne(a *attempt, o inscribe) error {
	ctx, cancel := context.WithTimeout(a.ctx, inscribeTime)
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
			failed = errors.Join(failed, m.addTo(ctx, a, stream.path, stream.stderr, o.line))
		}
	}
	return failed
}

// addTo adds a line to a stream of an attempt.
func (m *machine) addTo(ctx context.Context, a *attempt, path string, stderr bool, line string) error {
	switch path {
	case "":
		return addToCaptured(starter.CapturedPath(a.record.IO, stderr), line)
	case os.DevNull:
		return nil
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.record.Cwd, path)
	}
	agent, err := m.agents.take(a.cred)
	if err != nil {
		return err
	}
	defer m.agents.giveBack(a.cred)
	return agent.Append(ctx, filepath.Dir(path), filepath.Base(path), []byte(line))
}

// addToCaptured adds to a file in a directory of ours, into which no user can put anything.
func addToCaptured(path, line string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line)
	return errors.Join(err, f.Close())
}
