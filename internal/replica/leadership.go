package replica

import (
	"context"

	"github.com/hashicorp/raft"
)

// watchLeadership keeps Leadership up to date.
func (r *Replica) watchLeadership(ctx context.Context, rf *raft.Raft, notify <-chan bool) {
	changed := make(chan raft.Observation, 1) // one that waits is as good as many: what is told is read anew
	observer := raft.NewObserver(changed, false, func(o *raft.Observation) bool {
		_, ok := o.Data.(raft.LeaderObservation)
		return ok
	})
	rf.RegisterObserver(observer)
	defer rf.DeregisterObserver(observer)
	var now, answered LeadershipChange
	caughtUp := make(chan uint64) // the term of a barrier
	for {
		select {
		case <-ctx.Done():
			return
		case won := <-notify:
			now.IsLeader = false
			if won {
				term := rf.CurrentTerm()
				r.running.Go(func() { r.signalCaughtUp(ctx, rf, term, caughtUp) })
			}
		case term := <-caughtUp:
			if now.IsLeader = term == rf.CurrentTerm() && rf.State() == raft.Leader; now.IsLeader {
				r.lastLedTerm.Store(term)
			}
		case <-changed:
		}
		now.Leader, now.Term = r.leaderAddress(), rf.CurrentTerm()
		if now != answered {
			r.publishLeadership(now, answered)
			answered = now
		}
	}
}

// signalCaughtUp says on caughtUp when all that was in the log before this term is
// applied here. Where leadership is lost before, it says nothing. Raft that ends may
// leave it without an answer.
func (r *Replica) signalCaughtUp(ctx context.Context, rf *raft.Raft, term uint64, caughtUp chan<- uint64) {
	done := make(chan error, 1)
	go func() { done <- rf.Barrier(0).Error() }()
	select {
	case err := <-done:
		if err != nil {
			return
		}
	case <-ctx.Done():
		return
	}
	select {
	case caughtUp <- term:
	case <-ctx.Done():
	}
}

// publishLeadership replaces the word that nobody has taken yet. Only follow calls it, so
// there is room.
func (r *Replica) publishLeadership(now, before LeadershipChange) {
	select {
	case <-r.leadership:
	default:
	}
	r.leadership <- now
	switch {
	case now.IsLeader:
		r.log.Info("this replica leads", "term", now.Term)
	case before.IsLeader:
		r.log.Info("this replica leads no more", "leader", now.Leader, "term", now.Term)
	case now.Leader != before.Leader && now.Leader != "" && now.Leader != r.config.Address:
		r.log.Info("this replica follows", "leader", now.Leader, "term", now.Term)
	case now.Leader == "" && before.Leader != "":
		r.log.Warn("no replica leads", "was", before.Leader, "term", now.Term)
	}
}

// leaderAddress is the leader's address, as far as this replica knows.
func (r *Replica) leaderAddress() string {
	rf := r.raft.Load()
	if rf == nil {
		return ""
	}
	addr, _ := rf.LeaderWithID()
	return string(addr)
}

// Verify returns nil if this replica was still the leader at some moment after the call:
// a majority has just said so. What Apply has made of all entries that were reported as
// committed before may then be read here.
func (r *Replica) Verify(ctx context.Context) error {
	rf, err := r.runningRaft()
	if err != nil {
		return err
	}
	term := rf.CurrentTerm()
	if r.lastLedTerm.Load() != term {
		return r.explainError(raft.ErrNotLeader) // it does not lead, or has not got all yet
	}
	lastProblem := make(chan error, 1)
	go func() { lastProblem <- rf.VerifyLeader().Error() }()
	select {
	case err := <-lastProblem:
		if err == nil && rf.CurrentTerm() != term {
			err = raft.ErrLeadershipLost // and it may be the leader again: another has been in between
		}
		if err != nil {
			return r.explainError(err)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
