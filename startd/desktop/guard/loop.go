package guard

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/desktop/idle"
)

const (
	tickInterval  = 500 * time.Millisecond
	sourceGrace   = 2 * time.Second        // sources have so long to speak before the first signs
	freezeTimeout = 150 * time.Millisecond // how long the guard waits for the kernel
)

// taskFreezer stops the tasks in directories, and returns those that were told to stop;
// tests have their own.
type taskFreezer func(dirs []cgroup.TaskDir) (reported []string, err error)

// freezeGroups returns also those that are not at rest yet: a startd that is not told of
// one leaves it stopped, and what CRIU has hold of in it waits for the end of a
// checkpoint that cannot go on.
func freezeGroups(dirs []cgroup.TaskDir) (reported []string, err error) {
	_, err = cgroup.FreezeDirs(dirs, freezeTimeout)
	for _, d := range dirs {
		if d.Populated() {
			reported = append(reported, string(d))
		}
	}
	return reported, err
}

// loopState is what the loop has beside the state: who listens, and who waits.
type loopState struct {
	*daemonContext
	canSend     bool // the first signs may be said
	streams     map[*startdStream]bool
	waiters     []actionWaiter
	clockOffset time.Duration // between the clock of instants and the one that stands still in sleep
	saved       time.Time
	unsaved     bool // the books are not on disk as they are
}

// actionWaiter is for somebody who waits until every startd has acted on some signs.
type actionWaiter struct {
	sequence uint64
	done     chan struct{}
}

// loop owns the state and the books until ctx ends, and runs the sources.
func (g *daemonContext) loop(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer close(g.stopped)
	defer cancel()
	l := &loopState{daemonContext: g, streams: map[*startdStream]bool{}, clockOffset: sleptSinceBoot()}
	g.loopState = l
	for _, s := range g.sources {
		running.Go(func() {
			s.Run(ctx, func(reading idle.SourceReading) {
				g.post(ctx, func() { g.state.update(reading, idle.Now()) })
			})
		})
	}
	tick := time.NewTicker(tickInterval)
	defer tick.Stop()
	for {
		late := time.NewTimer(l.untilAckDeadline())
		select {
		case <-ctx.Done():
			late.Stop()
			return
		case f := <-g.inbox:
			f()
			for range len(g.inbox) { // what has come together is judged together
				(<-g.inbox)()
			}
		case <-tick.C:
			l.tick()
		case <-late.C:
		}
		late.Stop()
		l.sendObservations(false)
		l.freezeOverdue()
		l.answerWaiters()
		l.saveRecords()
	}
}

// untilAckDeadline is how long until somebody's patience ends.
func (l *loopState) untilAckDeadline() time.Duration {
	if due, ok := l.records.nextAckDeadline(); ok {
		return max(time.Until(due), 0)
	}
	return time.Hour
}

// sleptSinceBoot is for how long the machine has slept since its boot, at least: between
// the two readings this process may have to wait, which must not look like sleep.
func sleptSinceBoot() time.Duration {
	boot := idle.Now()
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return 0
	}
	return boot - time.Duration(t.Nano())
}

// tick looks at what changes by itself: clocks, the owner's file, the devices of the
// machine.
func (l *loopState) tick() {
	now := idle.Now()
	if d := sleptSinceBoot(); d-l.clockOffset > minSleep {
		l.log.Info("the machine has slept", "for", (d - l.clockOffset).Round(time.Second))
		l.state.onWake(now)
		l.clockOffset = d
	} else {
		l.clockOffset = max(l.clockOffset, d)
	}
	if ended := l.state.tick(now, time.Now()); ended != nil {
		l.log.Info("the pause is over", "by", ended.By)
		if err := removePause(l.dir); err != nil {
			l.log.Warn("pause", "err", err)
		}
	}
	l.state.console = idle.HasConsole()
	l.readRules()
}

// sendObservations says signs to all startds if it is time for some. Before every source
// has spoken nothing is known; only a pause is, whatever they say.
func (l *loopState) sendObservations(force bool) *wire.GuardSigns {
	if !l.canSend {
		l.canSend = force || l.state.hasAllSources() || time.Since(l.startedAt) > sourceGrace ||
			l.state.activePause() != nil
		if !l.canSend {
			return nil
		}
	}
	now := idle.Now()
	observations := l.state.nextObservations(now, l.records.frozenGroups(), force)
	if observations == nil {
		return nil
	}
	for _, r := range l.records.records {
		if r.hasUnsentFreeze {
			r.hasUnsentFreeze, r.frozenBy = false, observations.GetSequence()
		}
	}
	if observations.GetUrgent() {
		l.log.Info("the machine is its owner's", "why", l.state.urgentReason, "sequence", observations.GetSequence())
		l.records.expectAck(observations.GetSequence(), observations.GetPause() != nil, time.Now())
	}
	for s := range l.streams {
		s.replace(observations)
	}
	return observations
}

// freezeOverdue stops the tasks of startds that did not act in time.
func (l *loopState) freezeOverdue() {
	late := l.records.takeOverdue(time.Now())
	if len(late) == 0 {
		return
	}
	for _, r := range late {
		groups := r.taskDirs()
		if len(groups) == 0 {
			continue
		}
		began := time.Now()
		reported, err := l.freeze(groups)
		if err != nil {
			l.log.Error("cannot stop all tasks", "startd", r.name, "err", err)
		}
		if len(reported) > 0 {
			l.log.Warn("a startd did not act: froze its tasks", "startd", r.name, "connected", r.connected, "tasks",
				len(reported), "took", time.Since(began))
			r.frozenGroups, r.hasUnsentFreeze = reported, true
			l.unsaved = true
		}
	}
	l.sendObservations(true)
}

// answerWaiters answers those who wait for startds that have acted, or been acted for.
func (l *loopState) answerWaiters() {
	rest := l.waiters[:0]
	for _, a := range l.waiters {
		if l.records.allAcked(a.sequence) {
			close(a.done)
		} else {
			rest = append(rest, a)
		}
	}
	l.waiters = rest
}

// saveInterval bounds how often the books are written.
const saveInterval = time.Second

// saveRecords keeps the books on disk, for the next guard; where the guard froze
// something, at once.
func (l *loopState) saveRecords() {
	if !l.unsaved || time.Since(l.saved) < saveInterval && len(l.records.frozenGroups()) == 0 {
		return
	}
	l.unsaved, l.saved = false, time.Now()
	if err := l.records.save(l.dir); err != nil {
		l.log.Warn("books", "err", err)
	}
}
