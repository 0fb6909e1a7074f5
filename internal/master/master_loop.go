package master

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
)

// nodeMaster is the state of one Run. Only loop and functions that it calls access it.
type nodeMaster struct {
	node     *config.Node
	opt      RunOptions
	log      *slog.Logger
	children []*childProcess
	spawner  *spawner
	events   chan childEvent
	loopDone chan struct{} // closed when events are no longer read

	startedAt time.Time
	ready     bool
	stage     int       // stopping: index in stopOrder; -1 before
	killAt    time.Time // stopping: when the daemons of this stage are killed
	err       error     // why it stops, if it was not requested
	lastSaved NodeState // the last state written to disk

	programs  []programFile // of the daemons, when the master was started
	reloads   ReloadState   // the last reload
	replacing bool          // all daemons stop, so that the master can be replaced
}

// childEvent is an event of one process of a child. The process serves, or it has died
// and its output is in the log.
type childEvent struct {
	child *childProcess
	pid   int
	died  *exitStatus // nil: it serves
}

// loop owns the state. It returns when everything has stopped.
func (m *nodeMaster) loop(ctx context.Context, chld, hup <-chan os.Signal) error {
	m.stage, m.startedAt = -1, time.Now()
	asked := ctx.Done()
	var again chan os.Signal
	for {
		m.startDue()
		m.advanceStage()
		m.killLate(time.Now())
		m.stopReplacedSchedd()
		m.saveState()
		if m.isReplaceable() {
			m.log.Info("the master is replaced")
			return ErrReplaced
		}
		if m.stage >= len(stopOrder()) {
			m.cleanUp()
			return m.err
		}
		timer := time.NewTimer(m.timeToNext())
		select {
		case <-asked:
			asked = nil
			again = make(chan os.Signal, 1)
			signal.Notify(again, syscall.SIGINT, syscall.SIGTERM)
			defer signal.Stop(again)
			m.stop()
		case <-again:
			m.log.Warn("a second stop signal: killing the daemons")
			m.killAt = time.Now()
			m.opt.StopTimeout = 0
		case <-chld:
			m.reap()
		case <-hup:
			m.reload(time.Now())
		case e := <-m.events:
			m.apply(e)
		case <-timer.C:
		}
		timer.Stop()
	}
}

// timeToNext returns the time until the next timer is due.
func (m *nodeMaster) timeToNext() time.Duration {
	next := time.Now().Add(time.Hour)
	earlier := func(t time.Time) {
		if t.Before(next) {
			next = t
		}
	}
	for _, c := range m.children {
		if c.phase == backingOff {
			earlier(c.restartAt)
		} else if c.phase == stopping && m.stage < 0 {
			earlier(c.stopBy)
		}
	}
	if m.stage >= 0 {
		earlier(m.killAt)
	} else if m.opt.Strict && !m.ready {
		earlier(m.startedAt.Add(startTimeout))
	}
	return max(time.Until(next), time.Millisecond)
}

// startDue starts the daemons that are due.
func (m *nodeMaster) startDue() {
	for _, c := range m.children {
		now := time.Now()
		switch {
		case m.stage >= 0, m.replacing:
			return
		case c.phase == waiting && m.allServed(c.needs), c.phase == backingOff && !now.Before(c.restartAt):
			m.start(c, now)
		}
	}
	if m.opt.Strict && !m.ready && m.stage < 0 && time.Since(m.startedAt) > startTimeout {
		m.fail(fmt.Errorf("%s: %w: not ready after %v; see %s", m.notReady(), roost.Unavailable, startTimeout,
			m.node.LogDir()))
	}
}

// allServed reports whether every daemon with one of the roles on this node has served at
// least once.
func (m *nodeMaster) allServed(roles []peer.Role) bool {
	return !slices.ContainsFunc(m.children, func(c *childProcess) bool {
		return slices.Contains(roles, c.role) && !c.servedOnce
	})
}

func (m *nodeMaster) notReady() string {
	var names []string
	for _, c := range m.children {
		if !c.servedOnce {
			names = append(names, c.title())
		}
	}
	return strings.Join(names, ", ")
}

func (m *nodeMaster) start(c *childProcess, now time.Time) {
	argv := c.argv(m.opt.Program, m.node)
	pid, ready, output, err := m.spawner.start(argv)
	if err != nil {
		m.recordDeath(c, 0, err.Error(), roost.Unavailable)
		return
	}
	c.pid, c.phase, c.started, c.servingSince = pid, starting, now, time.Time{}
	c.drain(output)
	m.log.Debug("started", "what", c.title(), "pid", pid)
	go func() {
		defer ready.Close()
		if waitReady(ready) {
			m.sendEvent(childEvent{child: c, pid: pid})
		}
	}()
}

func (m *nodeMaster) sendEvent(e childEvent) {
	select {
	case m.events <- e:
	case <-m.loopDone:
	}
}

// reap reaps ended children. The event of a daemon's death follows when its last output
// is in the log. That may take a moment, or for ever if a child of the daemon has the
// pipe open.
func (m *nodeMaster) reap() {
	for _, e := range reapChildren() {
		i := slices.IndexFunc(m.children, func(c *childProcess) bool { return c.pid == e.pid })
		if i < 0 {
			continue // inherited from a daemon that died
		}
		c := m.children[i]
		c.pid = 0
		go func() {
			select {
			case <-c.drained:
			case <-time.After(200 * time.Millisecond):
			}
			m.sendEvent(childEvent{child: c, pid: e.pid, died: &e})
		}()
	}
}

// apply folds an event into the state.
func (m *nodeMaster) apply(e childEvent) {
	c := e.child
	if e.died == nil {
		if c.pid == e.pid && c.phase == starting {
			c.phase, c.servingSince, c.servedOnce = serving, time.Now(), true
			m.log.Info("serves", "what", c.title(), "pid", c.pid)
			m.logReady()
		}
		return
	}
	words, kind := e.died.describe(), roost.Unavailable
	if last := c.log.lastWords(); last != "" {
		words += ": " + last
	}
	if e.died.status.ExitStatus() == roost.BadConfig.ExitCode() {
		kind = roost.BadConfig
	}
	var served time.Duration
	if !c.servingSince.IsZero() {
		served = time.Since(c.servingSince)
	}
	m.recordDeath(c, served, words, kind)
}

// recordDeath records a death and decides what follows from it.
func (m *nodeMaster) recordDeath(c *childProcess, served time.Duration, how string, kind roost.ErrorKind) {
	c.lastExit = how
	if m.onStoppedForReload(c) {
		return
	}
	if m.stage >= 0 {
		c.phase = exited
		return
	}
	if m.opt.Strict && !m.ready && !c.servedOnce {
		c.phase = exited
		m.fail(fmt.Errorf("%s did not start: %w: %s (log: %s)", c.title(), kind, how, c.log.path))
		return
	}
	pause := c.backoff.nextDelay(served)
	c.phase, c.restartAt = backingOff, time.Now().Add(pause)
	c.restarts++
	m.log.Warn("died", "what", c.title(), "how", how, "restart_in", pause)
}

func (m *nodeMaster) logReady() {
	if m.ready || m.notReady() != "" {
		return
	}
	m.ready = true
	m.log.Info("ready", "daemons", len(m.children), "after", time.Since(m.startedAt).Round(time.Millisecond))
	if m.opt.Ready != nil {
		m.saveState()
		m.opt.Ready()
	}
}

func (m *nodeMaster) fail(err error) {
	m.err = errors.Join(m.err, err)
	m.stop()
}

// saveState updates the state file. The file is for users and tests; a failure to write
// it stops nothing.
func (m *nodeMaster) saveState() {
	s := NodeState{PID: os.Getpid(), Node: m.node.Name, Config: m.node.File, Ready: m.ready, CanReload: true}
	for _, c := range m.children {
		s.Daemons = append(s.Daemons, c.process())
	}
	if m.reloads.Count > 0 {
		last := m.reloads
		s.Reload = &last
	}
	if s.equal(&m.lastSaved) {
		return
	}
	m.lastSaved = s
	if err := s.save(m.node.Dir); err != nil {
		m.log.Warn("state file", "err", err)
	}
}
