package replica

import (
	"context"

	"github.com/hashicorp/raft"
)

// watchLeadership updates the channel of Leadership.
func (r *Replica) watchLeadership(ctx context.Context, rf *raft.Raft, notify <-chan bool) {
	changed := make(chan raft.Observation, 1) // one pending observation suffices: the state is read again
	observer := raft.NewObserver(changed, false, func(o *raft.Observation) bool {
		_, ok := o.Data.(raft.LeaderObservation)
		return ok
	})
	rf.RegisterObserver(observer)
	defer rf.DeregisterObserver(observer)
	var now, answered LeadershipChange
	caughtUp := make(chan uint64) // the term of a completed barrier
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

// signalCaughtUp sends on caughtUp when all entries of earlier terms are applied here. It
// sends nothing if leadership is lost before. Raft may end without an answer.
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

// publishLeadership replaces a change that was not received yet. Only watchLeadership
// calls it, so there is room.
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
		r.log.Info("this replica is no longer the leader", "leader", now.Leader, "term", now.Term)
	case now.Leader != before.Leader && now.Leader != "" && now.Leader != r.config.Address:
		r.log.Info("this replica follows", "leader", now.Leader, "term", now.Term)
	case now.Leader == "" && before.Leader != "":
		r.log.Warn("no replica leads", "was", before.Leader, "term", now.Term)
	}
}

// leaderAddress returns the leader's address, if this replica knows it.
func (r *Replica) leaderAddress() string {
	rf := r.raft.Load()
	if rf == nil {
		return ""
	}
	addr, _ := rf.LeaderWithID()
	return string(addr)
}

// Verify returns nil if this replica was still the leader at some instant after the call.
// A majority has confirmed it. Then the caller may read the result of all entries that
// were reported as committed before.
func (r *Replica) Verify(ctx context.Context) error {
	rf, err := r.runningRaft()
	if err != nil {
		return err
	}
	term := rf.CurrentTerm()
	if r.lastLedTerm.Load() != term {
		return r.explainError(raft.ErrNotLeader) // it does not lead, or has not applied everything yet
	}
	lastProblem := make(chan error, 1)
	go func() { lastProblem <- rf.VerifyLeader().Error() }()
	select {
	case err := <-lastProblem:
		if err == nil && rf.CurrentTerm() != term {
			err = raft.ErrLeadershipLost // even if it is the leader again: another one was in between
		}
		if err != nil {
			return r.explainError(err)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TransferLeadership makes another replica the leader, if this one is. An error says why
// it does not.
func (r *Replica) TransferLeadership() error {
	rf, err := r.runningRaft()
	if err != nil {
		return err
	}
	if rf.State() != raft.Leader {
		return r.explainError(raft.ErrNotLeader)
	}
	if err := rf.LeadershipTransfer().Error(); err != nil {
		return r.explainError(err)
	}
	return nil
}
