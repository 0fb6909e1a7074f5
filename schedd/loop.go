package schedd

import (
	"context"
	"time"

	"github.com/roost-batch/roost/internal/plant"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/dispatch"
	"github.com/roost-batch/roost/schedd/queue"
)

// turnSize bounds how much news one turn takes in, so that no answer waits for an endless stream of others.
const turnSize = 512

// lazyFor is how long facts that nobody waits for may wait for company before they go to disk: the starts of processes, and ends with no task
// behind them. Until they are there the node keeps what they rest on, so a crash costs nothing but the telling.
const lazyFor = 5 * time.Millisecond

// moment is one instant on both clocks: the one that people go by, and the one that counts through suspend. The loop reads them once a turn: what one turn
// decides happens at one instant.
type moment struct {
	now  time.Time
	boot dispatch.Instant
}

func thisMoment() moment { return moment{time.Now(), boottime()} }

// op is a user's call, run by the loop between two pieces of news.
type op func(now time.Time)

// loop owns the state until ctx ends. Committed is closed when nobody takes batches any more.
func (s *Schedd) loop(ctx context.Context, batches chan<- *batch, committed <-chan struct{}) error {
	s.at = thisMoment()
	s.resume()
	timer, wake := time.NewTimer(0), time.Now()
	defer timer.Stop()
	lazy := time.NewTimer(time.Hour)
	defer lazy.Stop()
	for {
		var out chan<- *batch
		if !s.pending.empty() && s.pending.urgent {
			out = batches
		}
		select {
		case <-ctx.Done():
			s.flush(batches, committed)
			return ctx.Err()
		case news := <-s.inbox:
			wasEmpty := s.pending.empty()
			s.turn(news)
			if wasEmpty && !s.pending.urgent {
				lazy.Reset(lazyFor)
			}
			if s.dispatch.Stirred() {
				if wait := s.untilTick(thisMoment(), tickSeldom); time.Until(wake) > wait {
					wake = time.Now().Add(wait)
					timer.Reset(wait)
				}
			}
		case out <- s.pending:
			s.pending = &batch{}
		case <-lazy.C:
			s.pending.urgent = true
		case <-timer.C:
			s.at = thisMoment()
			s.tick()
			wait := s.untilTick(thisMoment(), tickSeldom)
			wake = time.Now().Add(wait)
			timer.Reset(wait)
		}
	}
}

// flush hands over what is decided when the daemon ends: answers and acknowledgements that wait for it are better given than not. Where it ends because the
// log cannot be written there is nobody to take it.
func (s *Schedd) flush(batches chan<- *batch, committed <-chan struct{}) {
	if s.pending.empty() {
		return
	}
	select {
	case batches <- s.pending:
		s.pending = &batch{}
	case <-committed:
	}
}

// turn takes in one piece of news and whatever else waits, and then does once what follows from all of it.
func (s *Schedd) turn(news any) {
	s.at = thisMoment()
	now := s.at.now
	s.take(news, now)
	for range turnSize {
		select {
		case news := <-s.inbox:
			s.take(news, now)
			continue
		default:
		}
		break
	}
	s.follow(now)
}

// take folds one piece of news into the state.
func (s *Schedd) take(news any, now time.Time) {
	switch n := news.(type) {
	case op:
		n(now)
	case sessionUp:
		s.sessionBegan(n, now)
	case sessionDown:
		s.sessionEnded(n)
	case sessionNews:
		if n.size > 0 {
			n.session.room.Release(n.size)
		}
		if p := s.peers[n.node]; p != nil && p.session == n.session {
			s.heard(p, n.message, now)
		}
	case negotiatorUp:
		if s.negotiator != nil {
			s.negotiator.admission.over()
		}
		s.negotiator = newNegotiation(n)
		s.view.reasons.Clear()
		s.log.Info("negotiator found", "name", n.name, "epoch", n.epoch)
	case negotiatorDown:
		if s.negotiator != nil && s.negotiator.out == n.out {
			s.negotiator.admission.over()
			s.negotiator = nil
			s.view.reasons.Clear()
		}
	case negotiatorNews:
		if s.negotiator != nil && s.negotiator.out == n.out {
			s.advised(n.message)
		}
	case inputSent:
		s.inputSent(n, now)
	case outputStored:
		s.outputStored(n, now)
	case imageStored:
		s.imageStored(n, now)
	default:
		panic(news)
	}
}

// follow does what the changes of a turn ask for: tasks for free claims, words to nodes and to the negotiator, news for those who watch.
func (s *Schedd) follow(now time.Time) {
	s.askLater(now)
	for events := s.queue.Consequences(now); len(events) > 0; events = s.queue.Consequences(now) {
		s.decide(events...)
	}
	s.routeWaiting(now)
	for dirty := s.queue.DirtyRequests(); len(dirty) > 0; dirty = s.queue.DirtyRequests() {
		for _, r := range dirty {
			s.dispatch.RequestChanged(s.at.boot, dispatch.RequestID(r))
			if s.negotiator != nil {
				s.negotiator.dirty[r] = true
			}
			s.tryThose(r)
		}
		s.routeWaiting(now)
	}
	for _, v := range s.queue.TakeVacates() {
		s.dispatch.Vacate(v.Attempt, dispatch.VacateOrder{Fast: v.Fast, Keep: v.Keep, Reason: v.Reason})
		s.leaveOutput(v.Attempt)
	}
	for _, f := range s.queue.TakeFreezes() {
		s.freeze(f)
	}
	for _, l := range s.queue.TakeLimits() {
		s.limit(l)
	}
	s.letGo()
	for effects := s.dispatch.Effects(); len(effects) > 0; effects = s.dispatch.Effects() {
		s.perform(effects, now)
	}
	for _, r := range s.dispatch.Left() {
		if s.negotiator != nil {
			s.negotiator.dirty[queue.RequestID(r)] = true // what runs of a queue may be counted
		}
	}
	s.publish(now)
	s.publishDemands(now)
	s.notify()
}

// decide folds events into the queue and puts them into the batch, which becomes urgent.
func (s *Schedd) decide(events ...queue.Event) {
	s.decideLazily(events...)
	s.pending.urgent = true
}

// decideLazily is decide for facts that may reach the disk a moment later.
func (s *Schedd) decideLazily(events ...queue.Event) {
	for _, e := range events {
		s.queue.Apply(e)
		s.absolve(&e)
		s.usages.spent(s.node.Name, &e)
		if n, ok := s.queue.Notice(e); ok && s.notifier.Wanted() {
			s.pending.notices = append(s.pending.notices, n)
		}
	}
	s.pending.events = append(s.pending.events, events...)
}

// then runs f when all that has been decided so far is on disk.
func (s *Schedd) then(f func()) {
	if plant.Is(plant.AnswerEarly) {
		f()
		return
	}
	s.pending.after = append(s.pending.after, f)
	s.pending.urgent = true
}

// say puts a message on the present session with a node.
func (s *Schedd) say(node string, m *wire.ToStartd) {
	if s.sayLazily(node, m) {
		s.pending.urgent = true
	}
}

// sayLazily is say for messages that the node does not wait for, and reports whether there is a session.
func (s *Schedd) sayLazily(node string, m *wire.ToStartd) bool {
	p := s.peers[node]
	if p == nil || p.session == nil {
		return false
	}
	s.pending.sends = append(s.pending.sends, send{node, p.session, m})
	return true
}

// tick does what time asks for.
func (s *Schedd) tick() {
	now := s.at.now
	s.dispatch.Tick(s.at.boot)
	s.retire(now)
	s.maybeCheckpoint()
	if s.negotiator != nil {
		for _, r := range s.dispatch.Waiting() {
			s.negotiator.dirty[queue.RequestID(r)] = true // some may have waited long enough
		}
	}
	if now.Sub(s.usageAt) >= time.Second {
		s.usageAt = now
		s.reportUsage()
	}
	s.follow(now)
}

// The loop does what time asks for no more often than the one, and no less often than the other: leases, time-outs and start times are told in seconds.
const (
	tickOften  = 20 * time.Millisecond
	tickSeldom = time.Second
)

// untilTick is how long the loop may sleep when nothing happens, and no longer than wait.
func (s *Schedd) untilTick(from moment, wait time.Duration) time.Duration {
	if at, ok := s.dispatch.NextTick(from.boot); ok {
		wait = min(wait, at-from.boot)
	}
	if at := s.queue.NextDue(); !at.IsZero() {
		wait = min(wait, at.Sub(from.now))
	}
	return max(wait, tickOften)
}
