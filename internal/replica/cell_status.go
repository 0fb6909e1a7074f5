package replica

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/hashicorp/raft"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// CellStatus is the state of the cell as one replica sees it.
type CellStatus struct {
	ID            string // of this replica
	Cell          string
	Leader        string // address; "" if none is known
	IsLeader      bool   // this replica leads
	Term          uint64
	LastIndex     uint64 // index of the last entry in the log
	CommitIndex   uint64 // index of the last entry known to be committed
	AppliedIndex  uint64 // index of the last entry applied to the state machine
	SnapshotIndex uint64 // index of the last entry in the latest snapshot
	Members       []CellMember
}

// CellMember is one replica of the cell.
type CellMember struct {
	ID, Name, Address string
	IsVoter           bool // false: a learner
	IsLeader          bool

	Reachable   bool   // set by Survey: it has answered, and the following fields are its answer
	LastIndex   uint64 // index of the last entry in its log
	Version     string
	Problem     string // why it has not answered, or what is wrong with its identity or state
	DigestIndex uint64 // index of the last entry in the state of Digest; 0: unknown
	Digest      []byte // digest of its state
}

// maxClockDifference is how far the clocks of two replicas may differ without a warning.
// The leader charges usage by its own clock.
const maxClockDifference = 5 * time.Second

// Status returns the state of the cell, without asking other replicas.
func (r *Replica) Status() CellStatus {
	self := r.identity.Load()
	s := CellStatus{ID: self.ID, Cell: self.Cell, Leader: r.leaderAddress()}
	rf := r.raft.Load()
	if rf == nil {
		return s
	}
	s.IsLeader, s.Term = rf.State() == raft.Leader, rf.CurrentTerm()
	s.LastIndex, s.CommitIndex, s.AppliedIndex = rf.LastIndex(), rf.CommitIndex(), rf.AppliedIndex()
	s.SnapshotIndex, _ = strconv.ParseUint(rf.Stats()["last_snapshot_index"], 10, 64)
	for _, m := range r.members() {
		s.Members = append(s.Members, CellMember{
			ID: string(m.ID), Name: nodeNameOf(string(m.ID)), Address: string(m.Address),
			IsVoter: m.Suffrage == raft.Voter, IsLeader: string(m.Address) == s.Leader,
		})
	}
	return s
}

// Survey returns Status with the answers of all members. It takes as long as the slowest,
// at most a second.
func (r *Replica) Survey(ctx context.Context) CellStatus {
	s := r.survey(ctx, true)
	s.compareDigests()
	return s
}

// SurveyIndexes is Survey without the digests of the states, which take long to make.
func (r *Replica) SurveyIndexes(ctx context.Context) CellStatus { return r.survey(ctx, false) }

func (r *Replica) survey(ctx context.Context, digests bool) CellStatus {
	s := r.Status()
	addresses := make([]string, len(s.Members))
	for i, m := range s.Members {
		addresses[i] = m.Address
	}
	began := time.Now()
	for i, a := range r.peerStates(ctx, addresses, &wire.ReplicaHello{Digest: digests}) {
		m := &s.Members[i]
		switch {
		case a.err != nil:
			m.Problem = a.err.Error()
		case a.state.GetId() != m.ID:
			m.Problem = "another replica answers there: this one's disk is lost"
		default:
			m.Reachable, m.LastIndex, m.Version = true, a.state.GetLast(), a.state.GetVersion()
			m.DigestIndex, m.Digest = a.state.GetDigestAt(), a.state.GetDigest()
			m.Problem = clockProblem(a.state.GetClock(), began, time.Now())
		}
	}
	return s
}

// clockProblem returns what is wrong with a peer's clock, or "". The clock was read
// between two instants of this replica's own.
func clockProblem(clock int64, after, before time.Time) string {
	at := time.Unix(0, clock)
	switch early, late := after.Sub(at), at.Sub(before); {
	case clock == 0: // sent by an older version
		return ""
	case early > maxClockDifference:
		return fmt.Sprintf("its clock is behind by %v: set it, or use is charged wrongly when it leads",
			early.Round(time.Second))
	case late > maxClockDifference:
		return fmt.Sprintf("its clock is ahead by %v: set it, or use is charged wrongly when it leads",
			late.Round(time.Second))
	}
	return ""
}

// compareDigests finds replicas whose state differs from the leader's, or else from the
// first known one, at the same entry. That must never happen.
func (s *CellStatus) compareDigests() {
	first := -1
	for i, m := range s.Members {
		if m.DigestIndex > 0 && (first < 0 || m.IsLeader) {
			first = i
		}
	}
	for i := range s.Members {
		m := &s.Members[i]
		if first >= 0 && m.DigestIndex == s.Members[first].DigestIndex &&
			!bytes.Equal(m.Digest, s.Members[first].Digest) {
			m.Problem = fmt.Sprintf("its state differs from that of %s after entry %d: stop it, remove its "+
				"replica directory, and start it again", s.Members[first].Name, m.DigestIndex)
		}
	}
}

// SpareVoters returns how many more voters the surveyed cell can lose without losing its
// quorum. It is negative if there is no quorum now.
func (s CellStatus) SpareVoters() int {
	voters, up := 0, 0
	for _, m := range s.Members {
		if m.IsVoter {
			voters++
			if m.Reachable {
				up++
			}
		}
	}
	return up - (voters/2 + 1)
}

// addDigest adds the digest of the state.
func (r *Replica) addDigest(state *wire.ReplicaState) {
	if d, ok := r.machine.(StateDigester); ok {
		state.DigestAt, state.Digest = d.Digest()
	}
}

// ownState returns the state of this replica.
func (r *Replica) ownState(rf *raft.Raft) *wire.ReplicaState {
	s := r.Status()
	state := &wire.ReplicaState{
		Id: s.ID, Cell: s.Cell, Name: r.config.Name, Version: roost.Version, Empty: rf.LastIndex() == 0,
		Peers: r.config.Peers,
		Last:  s.LastIndex, Applied: s.AppliedIndex, Term: s.Term, Leader: s.Leader, Leads: s.IsLeader,
		Clock: time.Now().UnixNano(),
	}
	for _, m := range s.Members {
		state.Members = append(state.Members, &wire.ReplicaMember{Id: m.ID, Address: m.Address})
	}
	return state
}
