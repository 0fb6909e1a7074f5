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
	"github.com/roost-batch/roost/internal/auth"
	"github.com/roost-batch/roost/internal/config"
)

// master is the state of one Run. Only loop and what it calls touch it.
type master struct {
	node     *config.Node
	opt      Options
	log      *slog.Logger
	children []*child
	spawner  *spawner
	events   chan event
	finished chan struct{} // closed when nobody reads events any more

	began  time.Time
	ready  bool
	stage  int       // stopping: how far in stopOrder; -1 before
	killAt time.Time // stopping: when the daemons of this stage are killed
	err    error     // why it stops, when nobody asked
	last   State     // as written down
}

// event is news from one process of a child: it serves, or it has died and what it printed is in the log.
type event struct {
	child *child
	pid   int
	died  *ended // nil: it serves
}

// loop owns the state. It returns when everything has stopped.
func (m *master) loop(ctx context.Context, chld <-chan os.Signal) error {
	m.stage, m.began = -1, time.Now()
	asked := ctx.Done()
	var again chan os.Signal
	for {
		m.launch()
		m.advance()
		m.writeDown()
		if m.stage >= len(stopOrder()) {
			m.finish()
			return m.err
		}
		timer := time.NewTimer(m.pause())
		select {
		case <-asked:
			asked = nil
			again = make(chan os.Signal, 1)
			signal.Notify(again, syscall.SIGINT, syscall.SIGTERM)
			defer signal.Stop(again)
			m.stop()
		case <-again:
			m.log.Warn("told to stop twice: killing the daemons")
			m.killAt = time.Now()
			m.opt.Patience = 0
		case <-chld:
			m.reap()
		case e := <-m.events:
			m.apply(e)
		case <-timer.C:
		}
		timer.Stop()
	}
}

// pause is the time until something is due by the clock.
func (m *master) pause() time.Duration {
	next := time.Now().Add(time.Hour)
	earlier := func(t time.Time) {
		if t.Before(next) {
			next = t
		}
	}
	for _, c := range m.children {
		if c.phase == resting {
			earlier(c.due)
		}
	}
	if m.stage >= 0 {
		earlier(m.killAt)
	} else if m.opt.Strict && !m.ready {
		earlier(m.began.Add(startPatience))
	}
	return max(time.Until(next), time.Millisecond)
}

// launch starts what is due.
func (m *master) launch() {
	for _, c := range m.children {
		now := time.Now()
		switch {
		case m.stage >= 0:
			return
		case c.phase == waiting && m.served(c.needs), c.phase == resting && !now.Before(c.due):
			m.start(c, now)
		}
	}
	if m.opt.Strict && !m.ready && m.stage < 0 && time.Since(m.began) > startPatience {
		m.fail(fmt.Errorf("%s: %w: not ready after %v; see %s", m.laggards(), roost.Unavailable, startPatience, m.node.LogDir()))
	}
}

// served reports whether every daemon of those roles on this node has served once.
func (m *master) served(roles []auth.Role) bool {
	return !slices.ContainsFunc(m.children, func(c *child) bool { return slices.Contains(roles, c.role) && !c.once })
}

func (m *master) laggards() string {
	var names []string
	for _, c := range m.children {
		if !c.once {
			names = append(names, c.title())
		}
	}
	return strings.Join(names, ", ")
}

func (m *master) start(c *child, now time.Time) {
	argv := c.argv(m.opt.Program, m.node)
	pid, ready, output, err := m.spawner.start(argv)
	if err != nil {
		m.bury(c, 0, err.Error(), roost.Unavailable)
		return
	}
	c.pid, c.phase, c.started, c.served = pid, starting, now, time.Time{}
	c.drain(output)
	m.log.Debug("started", "what", c.title(), "pid", pid)
	go func() {
		defer ready.Close()
		if saysReady(ready) {
			m.tell(event{child: c, pid: pid})
		}
	}()
}

func (m *master) tell(e event) {
	select {
	case m.events <- e:
	case <-m.finished:
	}
}

// reap takes in the children that have ended. The death of a daemon is news only when its last words are in the log, which may
// be a moment later; or never, if something that it started holds the pipe.
func (m *master) reap() {
	for _, e := range reap() {
		i := slices.IndexFunc(m.children, func(c *child) bool { return c.pid == e.pid })
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
			m.tell(event{child: c, pid: e.pid, died: &e})
		}()
	}
}

// apply folds an event into the state.
func (m *master) apply(e event) {
	c := e.child
	if e.died == nil {
		if c.pid == e.pid && c.phase == starting {
			c.phase, c.served, c.once = serving, time.Now(), true
			m.log.Info("serves", "what", c.title(), "pid", c.pid)
			m.announce()
		}
		return
	}
	words, kind := e.died.how(), roost.Unavailable
	if last := c.log.lastWords(); last != "" {
		words += ": " + last
	}
	if e.died.status.ExitStatus() == roost.BadConfig.ExitCode() {
		kind = roost.BadConfig
	}
	var served time.Duration
	if !c.served.IsZero() {
		served = time.Since(c.served)
	}
	m.bury(c, served, words, kind)
}

// bury records a death and says what follows from it.
func (m *master) bury(c *child, served time.Duration, how string, kind roost.Kind) {
	c.lastExit = how
	if m.stage >= 0 {
		c.phase = gone
		return
	}
	if m.opt.Strict && !m.ready && !c.once {
		c.phase = gone
		m.fail(fmt.Errorf("%s did not start: %w: %s (log: %s)", c.title(), kind, how, c.log.path))
		return
	}
	pause := c.rest.after(served)
	c.phase, c.due = resting, time.Now().Add(pause)
	c.restarts++
	m.log.Warn("died", "what", c.title(), "how", how, "restart_in", pause)
}

func (m *master) announce() {
	if m.ready || m.laggards() != "" {
		return
	}
	m.ready = true
	m.log.Info("ready", "daemons", len(m.children), "after", time.Since(m.began).Round(time.Millisecond))
	if m.opt.Ready != nil {
		m.writeDown()
		m.opt.Ready()
	}
}

func (m *master) fail(err error) {
	m.err = errors.Join(m.err, err)
	m.stop()
}

// writeDown keeps the state file true. It is for people and tests; that it cannot be written stops nothing.
func (m *master) writeDown() {
	s := State{PID: os.Getpid(), Node: m.node.Name, Config: m.node.File, Ready: m.ready}
	for _, c := range m.children {
		s.Daemons = append(s.Daemons, c.process())
	}
	if s.same(&m.last) {
		return
	}
	m.last = s
	if err := s.save(m.node.Dir); err != nil {
		m.log.Warn("state file", "err", err)
	}
}
