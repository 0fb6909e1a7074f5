package replica

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// A leader whose process ends takes its streams with it, at once: the kernel closes them.
// Its followers need not wait then until it has been silent for an election timeout.
//
// The naive way campaigns when a stream breaks. But a leader that works may lose a
// stream, and an election at once has no pre-vote in this raft. So a follower first asks
// the address of the leader, and nothing happens unless nobody leads there. The others
// see the same at the same time, so that each waits for its turn: two candidates would
// split the votes.

// lostLeaderTurn is how long a follower leaves an election to the one before it.
const lostLeaderTurn = 80 * time.Millisecond

// noteStreamEnd is for a stream from another replica that has ended. All streams of a
// leader end together, and one election is enough.
func (r *Replica) noteStreamEnd(from string) {
	select {
	case r.lostLeader <- struct{}{}:
		defer func() { <-r.lostLeader }()
	case <-r.streamLayer.closed:
		return
	}
	rf := r.raft.Load()
	if rf == nil || rf.State() != raft.Follower {
		return
	}
	addr, id := rf.LeaderWithID()
	if string(id) != from || addr == "" {
		return
	}
	term := rf.CurrentTerm()
	turn, voters := r.electionTurn(id)
	if turn < 0 || !r.isGone(string(addr)) {
		return
	}
	for wait := turn; ; wait = voters { // one who lacks entries has campaigned in vain
		select {
		case <-time.After(time.Duration(wait) * lostLeaderTurn):
		case <-r.streamLayer.closed:
			return
		}
		now, _ := rf.LeaderWithID()
		if rf.State() != raft.Follower || now != addr && now != "" {
			return
		}
		if rf.CurrentTerm() == term {
			r.log.Info("the leader is gone", "leader", addr, "term", term)
			r.campaignNow()
			return
		}
		term = rf.CurrentTerm()
	}
}

// electionTurn returns which of the voters this replica is without the leader, counted
// from 0, and how many they are. It is -1 if this replica is no voter.
func (r *Replica) electionTurn(leader raft.ServerID) (turn, voters int) {
	all := slices.DeleteFunc(r.members(), func(s raft.Server) bool {
		return s.Suffrage != raft.Voter || s.ID == leader
	})
	self := r.identity.Load().ID
	return slices.IndexFunc(all, func(s raft.Server) bool { return string(s.ID) == self }), len(all)
}

// isGone reports whether nobody listens at the address of the leader, or one who knows
// that it leads no more. One that does not answer in time may still lead.
func (r *Replica) isGone(addr string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), r.config.ElectionTimeout)
	defer cancel()
	conn, err := r.dial(addr)
	if err != nil {
		return false
	}
	defer conn.Close()
	hello := &wire.ReplicaHello{Id: r.identity.Load().ID, Address: r.config.Address}
	state, err := wire.NewReplicaClient(conn).Hello(ctx, hello)
	if err == nil {
		return state.GetLeader() != addr
	}
	return errors.Is(rpc.FromStatus(err), roost.Unavailable) && ctx.Err() == nil
}

// formerLeaderCheck finds a candidate that takes the former leader for the present one.
//
// A heartbeat of the leader may come while this raft begins an election out of turn, from
// a goroutine of its own. The candidate knows a leader then, and no pre-vote ever clears
// that: it refuses the pre-votes of all others, as having a leader. Two such candidates
// of three refuse each other for ever. A heartbeat of a leader that lives makes the
// candidate a follower long before two checks have passed.
type formerLeaderCheck struct{ since int } // checks that have found the same

// check is called once in an election timeout while this replica knows a leader. An
// election out of turn clears it.
func (c *formerLeaderCheck) check(r *Replica, rf *raft.Raft) {
	if rf.State() != raft.Candidate {
		c.since = 0
		return
	}
	if c.since++; c.since < 2 {
		return
	}
	c.since = 0
	r.log.Info("the election begins anew: the former leader counted as the present one")
	r.campaignNow()
}
