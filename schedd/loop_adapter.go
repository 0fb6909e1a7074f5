package schedd

import (
	"context"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/transfer"
)

// loopAdapter gives the packages of the schedd access to the loop. Each package names
// what it needs in an interface of its own.
type loopAdapter struct{ s *Schedd }

// Now is the time of the present turn.
func (a loopAdapter) Now() time.Time { return a.s.clock.now }

// BootTime is the present turn by the clock that counts through suspend.
func (a loopAdapter) BootTime() roost.BootTime { return a.s.clock.boot }

// CommitEvents applies events and has them written with the present batch.
func (a loopAdapter) CommitEvents(events ...queue.JobEvent) { a.s.commitEvents(events...) }

// CommitInBackground applies events that nobody waits for. They are written with a later
// batch, within a second.
func (a loopAdapter) CommitInBackground(events ...queue.JobEvent) {
	a.s.commitEventsWithin(backgroundCommitDelay, events...)
}

// SubmitLimits are what a submit is held against.
func (a loopAdapter) SubmitLimits() queue.SubmitLimits { return a.s.submitLimits() }

// RankWait says which ranks an MPI program waits for; empty for none.
func (a loopAdapter) RankWait(id roost.AttemptID) string {
	g := rankGangOf(a.s, id)
	if g == nil {
		return ""
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.missing()
}

// PostLater has f run in a later turn.
func (a loopAdapter) PostLater(f func(now time.Time)) { a.s.effects.postLater(f) }

// HasMoved reports whether another node than the connected one says that it has a
// machine.
func (a loopAdapter) HasMoved(machine, location string) bool {
	p := a.s.peers[machine]
	return p != nil && p.hasMoved(location)
}

// CallLoop runs f in the loop and waits for it.
func (a loopAdapter) CallLoop(ctx context.Context, f func(now time.Time)) error {
	return a.s.callLoop(ctx, f)
}

// PostCall has f run in the loop and does not wait for it.
func (a loopAdapter) PostCall(ctx context.Context, f func(now time.Time)) bool {
	return a.s.postEvent(ctx, loopCall(f))
}

// PostEvent brings an event to the loop.
func (a loopAdapter) PostEvent(ctx context.Context, event any) bool { return a.s.postEvent(ctx, event) }

// AfterCommit runs f when all that was decided so far is on disk.
func (a loopAdapter) AfterCommit(f func()) { a.s.afterCommit(f) }

// SendTo puts a message on the present session with a node, behind the present batch.
func (a loopAdapter) SendTo(node string, m *wire.ToStartd) { a.s.sendTo(node, m) }

// Node is the connection to a node; nil: there is none.
func (a loopAdapter) Node(name string) *transfer.StartdNode {
	if p := a.s.peers[name]; p != nil {
		return &p.StartdNode
	}
	return nil
}

// RecordEnded records the end of an attempt.
func (a loopAdapter) RecordEnded(attempt roost.AttemptID, status *wire.ExitStatus, now time.Time) {
	a.s.recordEnded(attempt, status, now)
}

// RecordEndedWithRuntime records it with how long the attempt ran, as far as that says
// something of its node.
func (a loopAdapter) RecordEndedWithRuntime(attempt roost.AttemptID, x *queue.AttemptExit, ownFiles bool, ran int64,
	now time.Time) {
	a.s.recordEndedWithRuntime(attempt, x, ownFiles, ran, now)
}

// StoppingError is the error for a call that the end of the daemon, or of the caller, cut
// short.
func (a loopAdapter) StoppingError(ctx context.Context) error { return a.s.stoppingError(ctx) }

// AfterNextCommit is AfterCommit where events that wait for company need not hurry for f,
// but do not wait long either.
func (a loopAdapter) AfterNextCommit(f func()) {
	a.OnCommit(f)
	if len(a.s.pending.events) == 0 {
		a.s.pending.urgent = true
	}
}

// OnCommit runs f with the next commit, for which nothing hurries.
func (a loopAdapter) OnCommit(f func()) {
	a.s.pending.callbacks = append(a.s.pending.callbacks, f)
	a.s.pending.deferUntil(a.s.clock.now.Add(lazyCommitDelay))
}

// HurryCommit has the present batch written at once.
func (a loopAdapter) HurryCommit() { a.s.pending.urgent = true }

// SendToLazily is SendTo for messages that the node does not wait for, and reports
// whether there is a session.
func (a loopAdapter) SendToLazily(node string, m *wire.ToStartd) bool {
	return a.s.sendToLazily(node, m)
}

// HasSession reports whether a node answers now.
func (a loopAdapter) HasSession(name string) bool {
	p := a.s.peers[name]
	return p != nil && p.session != nil
}

// SilentNodes lists the nodes that do not answer now.
func (a loopAdapter) SilentNodes() (names []string) {
	for name, p := range a.s.peers {
		if p.session == nil {
			names = append(names, name)
		}
	}
	return names
}

// BootClock reads the clock that counts through suspend.
func (a loopAdapter) BootClock() roost.BootTime { return boottime.Now() }

// ResumedAt is when this start of the schedd took up what the log knows.
func (a loopAdapter) ResumedAt() roost.BootTime { return a.s.resumed }

// TaskLoad is how many tasks wait, and how many run.
func (a loopAdapter) TaskLoad() (queued, running int) {
	l := a.s.taskLoad()
	return l.queued, l.running
}
