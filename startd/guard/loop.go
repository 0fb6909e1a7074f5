package guard

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/idle"
)

const (
	tickEvery = 500 * time.Millisecond
	grace     = 2 * time.Second        // sources have so long to speak before the first signs
	freezing  = 150 * time.Millisecond // how long the guard waits for the kernel
)

// freezer stops the tasks in directories, and returns those that were told to stop; tests have their own.
type freezer func(dirs []cgroup.TaskDir) (told []string, err error)

// freezeGroups returns also those that are not at rest yet: a startd that is not told of one leaves it stopped, and what CRIU has hold of in it waits for
// the end of a checkpoint that cannot go on.
func freezeGroups(dirs []cgroup.TaskDir) (told []string, err error) {
	_, err = cgroup.FreezeAll(dirs, freezing)
	for _, d := range dirs {
		if d.Populated() {
			told = append(told, string(d))
		}
	}
	return told, err
}

// life is what the loop has beside the state: who listens, and who waits.
type life struct {
	*guard
	ready      bool // the first signs may be said
	streams    map[*stream]bool
	answers    []answer
	difference time.Duration // between the clock of instants and the one that stands still in sleep
	saved      time.Time
	dirty      bool // the books are not on disk as they are
}

// answer is for somebody who waits until every startd has acted on some signs.
type answer struct {
	sequence uint64
	settled  chan struct{}
}

// loop owns the state and the books until ctx ends, and runs the sources.
func (g *guard) loop(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer close(g.stopped)
	defer cancel()
	l := &life{guard: g, streams: map[*stream]bool{}, difference: sleepSoFar()}
	g.live = l
	for _, s := range g.sources {
		running.Go(func() {
			s.Run(ctx, func(sight idle.Sight) {
				g.do(ctx, func() { g.state.saw(sight, idle.Now()) })
			})
		})
	}
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	for {
		late := time.NewTimer(l.untilDue())
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
		l.tell(false)
		l.enforce()
		l.settle()
		l.save()
	}
}

// untilDue is how long until somebody's patience ends.
func (l *life) untilDue() time.Duration {
	if due, ok := l.books.due(); ok {
		return max(time.Until(due), 0)
	}
	return time.Hour
}

// sleepSoFar is for how long the machine has slept since its boot, at least: between the two readings this process may have to wait, which must not look like sleep.
func sleepSoFar() time.Duration {
	boot := idle.Now()
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return 0
	}
	return boot - time.Duration(t.Nano())
}

// tick looks at what changes by itself: clocks, the owner's file, the devices of the machine.
func (l *life) tick() {
	now := idle.Now()
	if d := sleepSoFar(); d-l.difference > slept {
		l.log.Info("the machine has slept", "for", (d - l.difference).Round(time.Second))
		l.state.wokeUp(now)
		l.difference = d
	} else {
		l.difference = max(l.difference, d)
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

// tell says signs to all startds if it is time for some. Before every source has spoken nothing is known; only a pause is, whatever they say.
func (l *life) tell(force bool) *wire.GuardSigns {
	if !l.ready {
		l.ready = force || l.state.complete() || time.Since(l.started) > grace || l.state.standing() != nil
		if !l.ready {
			return nil
		}
	}
	now := idle.Now()
	signs := l.state.say(now, l.books.frozenGroups(), force)
	if signs == nil {
		return nil
	}
	for _, r := range l.books.records {
		if r.froze {
			r.froze, r.frozenBy = false, signs.GetSequence()
		}
	}
	if signs.GetUrgent() {
		l.log.Info("the machine is its owner's", "why", l.state.why, "sequence", signs.GetSequence())
		l.books.expect(signs.GetSequence(), signs.GetPause() != nil, time.Now())
	}
	for s := range l.streams {
		s.put(signs)
	}
	return signs
}

// enforce stops the tasks of startds that did not act in time.
func (l *life) enforce() {
	late := l.books.overdue(time.Now())
	if len(late) == 0 {
		return
	}
	for _, r := range late {
		groups := r.groups()
		if len(groups) == 0 {
			continue
		}
		began := time.Now()
		told, err := l.freeze(groups)
		if err != nil {
			l.log.Error("cannot stop all tasks", "startd", r.name, "err", err)
		}
		if len(told) > 0 {
			l.log.Warn("a startd did not act: froze its tasks", "startd", r.name, "connected", r.present, "tasks", len(told), "took", time.Since(began))
			r.frozen, r.froze = told, true
			l.dirty = true
		}
	}
	l.tell(true)
}

// settle answers those who wait for startds that have acted, or been acted for.
func (l *life) settle() {
	rest := l.answers[:0]
	for _, a := range l.answers {
		if l.books.settled(a.sequence) {
			close(a.settled)
		} else {
			rest = append(rest, a)
		}
	}
	l.answers = rest
}

// saveEvery bounds how often the books are written.
const saveEvery = time.Second

// save keeps the books on disk, for the next guard; where the guard froze something, at once.
func (l *life) save() {
	if !l.dirty || time.Since(l.saved) < saveEvery && len(l.books.frozenGroups()) == 0 {
		return
	}
	l.dirty, l.saved = false, time.Now()
	if err := l.books.save(l.dir); err != nil {
		l.log.Warn("books", "err", err)
	}
}
