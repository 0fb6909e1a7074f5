package guard

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/desktop/idle"
)

const (
	tickInterval  = 500 * time.Millisecond
	sourceGrace   = 2 * time.Second        // time for the sources to report before the first observations
	freezeTimeout = 150 * time.Millisecond // time that the guard waits for the kernel
)

// taskFreezer freezes the tasks in directories, and returns the directories with
// processes. Tests have their own.
type taskFreezer func(dirs []cgroup.TaskDir) (reported []string, err error)

// freezeGroups freezes the tasks in directories. It also returns those that are not
// frozen yet. Otherwise the startd would leave such a directory frozen, and the processes
// in it that CRIU is dumping would wait for a checkpoint that cannot continue.
func freezeGroups(dirs []cgroup.TaskDir) (reported []string, err error) {
	_, err = cgroup.FreezeDirs(dirs, freezeTimeout)
	for _, d := range dirs {
		if d.Populated() {
			reported = append(reported, string(d))
		}
	}
	return reported, err
}

// loopState is the part of the state that only the loop needs: the connections and the
// waiting calls.
type loopState struct {
	*daemonContext
	canSend     bool // the first observations may be sent
	streams     map[*startdStream]bool
	waiters     []actionWaiter
	clockOffset time.Duration // CLOCK_BOOTTIME minus CLOCK_MONOTONIC, the time spent asleep
	saved       time.Time
	unsaved     bool // the records have changed since they were saved
}

// actionWaiter waits until every startd has acted on some observations.
type actionWaiter struct {
	sequence uint64
	done     chan struct{}
}

// loop owns the state and the records until ctx ends, and runs the sources.
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
				g.post(ctx, func() { g.state.update(reading, boottime.Now()) })
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
			for range len(g.inbox) { // evaluates together what has arrived together
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

// untilAckDeadline returns the time until the next acknowledgement is due.
func (l *loopState) untilAckDeadline() time.Duration {
	if due, ok := l.records.nextAckDeadline(); ok {
		return max(time.Until(due), 0)
	}
	return time.Hour
}

// sleptSinceBoot returns how long the machine has slept since its boot, at least. A delay
// between the two clock readings must not look like sleep.
func sleptSinceBoot() time.Duration {
	boot := boottime.Now()
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return 0
	}
	return boot - time.Duration(t.Nano())
}

// tick checks what changes without an event. These are the clocks, the owner's file and
// the machine's devices.
func (l *loopState) tick() {
	now := boottime.Now()
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

// sendObservations sends observations to all startds if they are due. It sends none
// before every source has reported, except a pause, which does not depend on them.
func (l *loopState) sendObservations(force bool) *wire.GuardSigns {
	if !l.canSend {
		l.canSend = force || l.state.hasAllSources() || time.Since(l.startedAt) > sourceGrace ||
			l.state.activePause() != nil
		if !l.canSend {
			return nil
		}
	}
	now := boottime.Now()
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

// freezeOverdue freezes the tasks of startds that did not act in time.
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

// answerWaiters answers the calls that wait for startds to act, or for the guard to do
// so.
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

// saveInterval bounds how often the records are written.
const saveInterval = time.Second

// saveRecords saves the records on disk for the next guard, and at once if the guard
// froze something.
func (l *loopState) saveRecords() {
	if !l.unsaved || time.Since(l.saved) < saveInterval && len(l.records.frozenGroups()) == 0 {
		return
	}
	l.unsaved, l.saved = false, time.Now()
	if err := l.records.save(l.dir); err != nil {
		l.log.Warn("books", "err", err)
	}
}
