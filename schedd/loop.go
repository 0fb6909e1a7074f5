package schedd

import (
	"context"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/internal/mutant"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/dispatch"
	"github.com/roost-batch/roost/schedd/negotiation"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/transfer"
)

// turnSize bounds how much news one turn takes in, so that no answer waits for an endless
// stream of others.
const turnSize = 512

// lazyCommitDelay bounds how long facts may wait for others if only a node waits for
// them. Such facts are ends with no task behind them. Until they are on disk the node
// retains what they depend on, so after a crash it only reports again.
const lazyCommitDelay = 5 * time.Millisecond

// backgroundCommitDelay bounds how long facts may wait that nobody waits for. Such facts
// are the starts of processes, which nodes report again after a crash, and jobs that have
// left the queue for the history, which leave it again. At most maxDeferredEvents wait.
const (
	backgroundCommitDelay = time.Second
	maxDeferredEvents     = 4096
)

// clockReading is one instant on both clocks: the one that people go by, and the one that
// counts through suspend. The loop reads them once a turn: what one turn decides happens
// at one instant.
type clockReading struct {
	now  time.Time
	boot roost.BootTime
}

func readClocks() clockReading { return clockReading{time.Now(), boottime.Now()} }

// loopCall is a user's call, run by the loop between two pieces of news.
type loopCall func(now time.Time)

// runLoop owns the state until ctx ends. Committed is closed when nobody takes batches
// any more.
func (s *Schedd) runLoop(ctx context.Context, batches chan<- *commitBatch, committed <-chan struct{}) error {
	s.clock = readClocks()
	s.resumeLogged()
	timer, wake := time.NewTimer(0), time.Now()
	defer timer.Stop()
	lazy, lazyAt := time.NewTimer(time.Hour), time.Time{}
	defer lazy.Stop()
	for {
		var out chan<- *commitBatch
		switch due := s.pending.dueAt; {
		case s.pending.urgent && !s.pending.isEmpty():
			out = batches
		case !due.IsZero() && !due.Equal(lazyAt):
			lazyAt = due
			lazy.Reset(time.Until(due))
		}
		select {
		case <-ctx.Done():
			s.flushOnStop(batches, committed)
			return ctx.Err()
		case event := <-s.inbox:
			s.runTurn(event)
			s.pending.endTurn()
			if s.dispatch.BecameIdle() {
				if wait := s.tickDelay(readClocks(), maxTick); time.Until(wake) > wait {
					wake = time.Now().Add(wait)
					timer.Reset(wait)
				}
			}
		case out <- s.pending:
			s.pending = &commitBatch{}
		case <-lazy.C:
			lazyAt = time.Time{}
			if due := s.pending.dueAt; !due.IsZero() && !due.After(time.Now()) {
				s.pending.urgent = true
			}
		case <-timer.C:
			s.clock = readClocks()
			s.tick()
			s.pending.endTurn()
			wait := s.tickDelay(readClocks(), maxTick)
			wake = time.Now().Add(wait)
			timer.Reset(wait)
		}
	}
}

// flushOnStop hands over the last batch when the daemon ends. Answers and
// acknowledgements wait for it, and should still go out. If the daemon ends because the
// log cannot be written, nobody takes the batch.
func (s *Schedd) flushOnStop(batches chan<- *commitBatch, committed <-chan struct{}) {
	if s.feed != nil {
		s.feed.Flush()
	}
	if s.pending.isEmpty() {
		return
	}
	select {
	case batches <- s.pending:
		s.pending = &commitBatch{}
	case <-committed:
	}
}

// runTurn handles one event and others that already wait. Then it does once what follows
// from all of them.
func (s *Schedd) runTurn(event any) {
	s.clock = readClocks()
	now := s.clock.now
	s.handle(event, now)
	for range turnSize {
		select {
		case event := <-s.inbox:
			s.handle(event, now)
			continue
		default:
		}
		break
	}
	s.react(now)
}

// handle folds one piece of news into the state.
func (s *Schedd) handle(event any, now time.Time) {
	switch n := event.(type) {
	case loopCall:
		n(now)
	case sessionOpened:
		s.onSessionOpened(n, now)
	case sessionClosed:
		s.onSessionClosed(n)
	case startdMessage:
		if n.size > 0 {
			n.session.byteBudget.Release(n.size)
		}
		if p := s.peers[n.node]; p != nil && p.session == n.session {
			s.onStartdMessage(p, n.message, now)
		}
	case negotiation.LeaderConnected:
		if l := leaderOf(s, n.Pool); l != nil {
			l.OnConnected(n)
		}
	case negotiation.LeaderDisconnected:
		if l := leaderOf(s, n.Pool); l != nil {
			l.OnDisconnected(n)
		}
	case negotiation.LeaderMessage:
		if l := leaderOf(s, n.Pool); l != nil {
			l.OnMessage(n)
		}
	case transfer.SecretsRead:
		transfer.OnSecretsRead(s.transfers, n)
	case transfer.AttemptQuery:
		transfer.OnAttemptQuery(s.transfers, n)
	case transfer.InputSent:
		s.transfers.OnInputSent(n, now)
	case transfer.OutputStored:
		s.transfers.OnOutputStored(n, now)
	case transfer.ImageStored:
		s.transfers.OnImageStored(n, now)
	default:
		panic(event)
	}
}

// react does what the changes of a turn ask for. It finds tasks for free claims, and
// sends messages to nodes, to the negotiator and to watchers.
func (s *Schedd) react(now time.Time) {
	makeDueRuns(s, now)
	advanceFlows(s, now)
	scaleServices(s, now)
	if events := s.queue.DecidePolicies(now); len(events) > 0 {
		s.commitEvents(events...)
	}
	s.leader.CheckDeferred(now)
	for events := s.queue.Followups(now); len(events) > 0; events = s.queue.Followups(now) {
		s.commitEvents(events...)
	}
	transfer.RenewSecrets(s.transfers, s.leader.Policy().GetSecrets())
	transfer.SetMPINetwork(s.transfers, s.leader.Policy().GetMpiNetwork())
	for events := s.queue.HealthRestarts(now); len(events) > 0; events = s.queue.HealthRestarts(now) {
		s.commitEvents(events...)
	}
	evictFromDrained(s, now)
	saveGangs(s, now)
	restartTasks(s, now)
	s.leader.RouteWaitingJobs(now)
	for dirty := takeDirtyRequests(s); len(dirty) > 0; dirty = takeDirtyRequests(s) {
		for _, r := range dirty {
			s.dispatch.RequestChanged(s.clock.boot, dispatch.RequestID(r))
			s.leader.MarkDirty(r)
			markFlockDirty(s, r)
			s.leader.RetryRouting(r)
		}
		s.leader.RouteWaitingJobs(now)
	}
	for _, v := range s.queue.TakeVacates() {
		s.dispatch.Vacate(v.Attempt, dispatch.VacateOrder{WithoutNotice: v.Fast, Checkpoint: v.Checkpoint,
			ReleaseClaim: v.ReleaseClaim, Reason: v.Reason})
		s.transfers.AbandonOutput(v.Attempt)
	}
	for _, f := range s.queue.TakeFreezes() {
		s.sendFreeze(f)
	}
	for _, l := range s.queue.TakeChangedLimits() {
		s.sendLimits(l)
	}
	for _, r := range s.queue.TakeResizes() {
		if size, ok := s.queue.WantedSize(r.Attempt); ok { // else its machine has answered before a restart
			sendResize(s, size)
		}
	}
	for _, a := range s.queue.TakeChangedHosts() {
		s.sendHostFiles(a)
	}
	s.transfers.RemoveUnusedImages()
	for effects := s.dispatch.Effects(); len(effects) > 0; effects = s.dispatch.Effects() {
		s.runEffects(effects, now)
	}
	for _, r := range s.dispatch.ShrunkRequests() {
		s.leader.MarkDirty(queue.RequestID(r)) // what runs of a queue may be counted
		markFlockDirty(s, queue.RequestID(r))
	}
	s.leader.SendRequestUpdates(now)
	sendFlockUpdates(s, now)
	s.leader.SendDemands(now)
	s.service.SignalWatches()
}

// takeDirtyRequests drains the requests that are to be looked at. Those whose tasks are
// to run inside allocs are among them when there may be room.
func takeDirtyRequests(s *Schedd) []queue.RequestID {
	for _, set := range dispatch.TakeWokenAllocs(s.dispatch) {
		s.queue.WakeInside(set)
	}
	return s.queue.TakeDirtyRequests()
}

// restartTasks starts the tasks of services again that have waited for that. Those whose
// claims wait too come before all others who could have these claims.
func restartTasks(s *Schedd, now time.Time) {
	if events := s.queue.DueRestarts(now); len(events) > 0 {
		s.commitEvents(events...)
	}
	for _, t := range s.queue.TakeReleasedRestarts() {
		dispatch.RestartTask(s.dispatch, s.clock.boot, t)
	}
}

// commitEvents folds events into the queue and puts them into the batch, which becomes
// urgent.
func (s *Schedd) commitEvents(events ...queue.JobEvent) {
	s.commitEventsLazily(events...)
	s.pending.urgent = true
}

// commitEventsLazily is commitEvents for facts that only a node waits for.
func (s *Schedd) commitEventsLazily(events ...queue.JobEvent) {
	s.commitEventsWithin(lazyCommitDelay, events...)
}

// commitEventsWithin is commitEvents for facts that may reach the disk that much later.
func (s *Schedd) commitEventsWithin(delay time.Duration, events ...queue.JobEvent) {
	for _, e := range events {
		s.metrics.countEvent(&e)
		if s.feed != nil {
			s.feed.Before(s.queue, &e)
		}
		node := endingNode(s, &e)
		s.queue.Apply(e)
		noteHookEnd(s, &e, node)
		if s.feed != nil {
			s.feed.After(s.queue, &e)
		}
		s.leader.RetractOutcome(&e)
		noteUserLog(s, &e)
		s.service.RemoveEndedUsage(&e)
		if n, ok := s.queue.Notification(e); ok && s.notifier.IsConfigured() {
			s.pending.hasNotices = append(s.pending.hasNotices, n)
		}
	}
	s.pending.events = append(s.pending.events, events...)
	s.pending.deferUntil(s.clock.now.Add(delay))
}

// afterCommit runs f when all that has been decided so far is on disk.
func (s *Schedd) afterCommit(f func()) {
	if mutant.Active(mutant.AnsweredBeforeDurable) {
		f()
		return
	}
	s.pending.callbacks = append(s.pending.callbacks, f)
	s.pending.urgent = true
}

// sendTo puts a message on the present session with a node.
func (s *Schedd) sendTo(node string, m *wire.ToStartd) {
	if s.sendToLazily(node, m) {
		s.pending.urgent = true
	}
}

// sendToLazily is say for messages that the node does not wait for, and reports whether
// there is a session.
func (s *Schedd) sendToLazily(node string, m *wire.ToStartd) bool {
	p := s.peers[node]
	if p == nil || p.session == nil {
		return false
	}
	if s.replicated != nil && mutant.Active(mutant.ActsUncommitted) {
		p.session.out.Put(m)
		return true
	}
	s.pending.messages = append(s.pending.messages, outgoingMessage{node, p.session, m})
	s.pending.deferUntil(s.clock.now.Add(lazyCommitDelay))
	return true
}

// tick does what time asks for.
func (s *Schedd) tick() {
	now := s.clock.now
	s.dispatch.Tick(s.clock.boot)
	s.archive.archiveEnded(now)
	if s.leader.IsConnected() {
		for _, r := range s.dispatch.WaitingRequests() {
			s.leader.MarkDirty(queue.RequestID(r)) // some may have waited long enough
		}
	}
	if now.Sub(s.usageSentAt) >= time.Second {
		s.usageSentAt = now
		s.leader.SendUsage()
		offerFlock(s, now)
	}
	s.react(now)
	s.metrics.refresh(now)
	if s.feed != nil {
		s.feed.Flush()
	}
	s.maybeCheckpoint()
}

// The loop does what time asks for no more often than the one, and no less often than the
// other: leases, time-outs and start times are told in seconds.
const (
	minTick = 20 * time.Millisecond
	maxTick = time.Second
)

// tickDelay is how long the loop may sleep when nothing happens, and no longer than wait.
func (s *Schedd) tickDelay(from clockReading, wait time.Duration) time.Duration {
	if at, ok := s.dispatch.NextTick(from.boot); ok {
		wait = min(wait, at-from.boot)
	}
	if at := s.queue.NextDue(); !at.IsZero() {
		wait = min(wait, at.Sub(from.now))
	}
	for _, at := range []time.Time{s.queue.NextRestart(), s.queue.NextEviction(), s.queue.NextScaling(),
		s.queue.NextPolicies()} {
		if !at.IsZero() {
			wait = min(wait, at.Sub(from.now))
		}
	}
	return max(wait, minTick)
}
