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

// Status is the cell as one replica sees it.
type Status struct {
	ID       string // of this replica
	Cell     string
	Leader   string // address; "" where none is known
	Leads    bool   // this replica does
	Term     uint64
	Last     uint64 // index of the last entry in the log
	Commit   uint64 // and of the last that is known to be committed
	Applied  uint64 // and of the last that the state machine has
	Snapshot uint64 // and of the last that is in the latest snapshot
	Members  []Member
}

// Member is one replica of the cell.
type Member struct {
	ID, Name, Address string
	Voter             bool // a learner has none
	Leads             bool

	Reachable bool   // by Survey: it has answered. The rest is what it said
	Last      uint64 // index of the last entry in its log
	Version   string
	Trouble   string // why it has not answered, or is not who it should be, or is not as it should be
	DigestAt  uint64 // index of the last entry in what Digest is of; 0: not known
	Digest    []byte // of its state
}

// clockApart is how far the clocks of two replicas may differ before somebody is told. Whoever leads charges use by its own.
const clockApart = 5 * time.Second

// Status says how the cell stands, without asking anybody.
func (r *Replica) Status() Status {
	self := r.identity.Load()
	s := Status{ID: self.ID, Cell: self.Cell, Leader: r.leader()}
	rf := r.raft.Load()
	if rf == nil {
		return s
	}
	s.Leads, s.Term = rf.State() == raft.Leader, rf.CurrentTerm()
	s.Last, s.Commit, s.Applied = rf.LastIndex(), rf.CommitIndex(), rf.AppliedIndex()
	s.Snapshot, _ = strconv.ParseUint(rf.Stats()["last_snapshot_index"], 10, 64)
	for _, m := range r.members() {
		s.Members = append(s.Members, Member{
			ID: string(m.ID), Name: nameOf(string(m.ID)), Address: string(m.Address), Voter: m.Suffrage == raft.Voter, Leads: string(m.Address) == s.Leader,
		})
	}
	return s
}

// Survey is Status with what each member says of itself; it takes as long as the slowest, a second at most.
func (r *Replica) Survey(ctx context.Context) Status {
	s := r.Status()
	addresses := make([]string, len(s.Members))
	for i, m := range s.Members {
		addresses[i] = m.Address
	}
	began := time.Now()
	for i, a := range r.ask(ctx, addresses, &wire.ReplicaHello{Digest: true}) {
		m := &s.Members[i]
		switch {
		case a.err != nil:
			m.Trouble = a.err.Error()
		case a.state.GetId() != m.ID:
			m.Trouble = "another replica answers there: this one's disk is lost"
		default:
			m.Reachable, m.Last, m.Version = true, a.state.GetLast(), a.state.GetVersion()
			m.DigestAt, m.Digest = a.state.GetDigestAt(), a.state.GetDigest()
			m.Trouble = clockTrouble(a.state.GetClock(), began, time.Now())
		}
	}
	s.compare()
	return s
}

// clockTrouble says what is wrong with a clock that was read between two moments of this replica's own; "" if nothing is.
func clockTrouble(clock int64, after, before time.Time) string {
	at := time.Unix(0, clock)
	switch early, late := after.Sub(at), at.Sub(before); {
	case clock == 0: // of an older version
		return ""
	case early > clockApart:
		return fmt.Sprintf("its clock is behind by %v: set it, or use is charged wrongly when it leads", early.Round(time.Second))
	case late > clockApart:
		return fmt.Sprintf("its clock is ahead by %v: set it, or use is charged wrongly when it leads", late.Round(time.Second))
	}
	return ""
}

// compare finds replicas whose state is another than that of the leader, or else of the first that says it, at the same entry. That cannot be.
func (s *Status) compare() {
	first := -1
	for i, m := range s.Members {
		if m.DigestAt > 0 && (first < 0 || m.Leads) {
			first = i
		}
	}
	for i := range s.Members {
		m := &s.Members[i]
		if first >= 0 && m.DigestAt == s.Members[first].DigestAt && !bytes.Equal(m.Digest, s.Members[first].Digest) {
			m.Trouble = fmt.Sprintf("its state is another than that of %s after entry %d: stop it, remove its replica directory, and start it again", s.Members[first].Name, m.DigestAt)
		}
	}
}

// Spare is how many more voters the surveyed cell can lose and still decide; negative where it cannot decide now.
func (s Status) Spare() int {
	voters, up := 0, 0
	for _, m := range s.Members {
		if m.Voter {
			voters++
			if m.Reachable {
				up++
			}
		}
	}
	return up - (voters/2 + 1)
}

// digest adds what the state amounts to.
func (r *Replica) digest(state *wire.ReplicaState) {
	if d, ok := r.machine.(Digester); ok {
		state.DigestAt, state.Digest = d.Digest()
	}
}

// state is what this replica says of itself.
func (r *Replica) state(rf *raft.Raft) *wire.ReplicaState {
	s := r.Status()
	state := &wire.ReplicaState{
		Id: s.ID, Cell: s.Cell, Name: r.cfg.Name, Version: roost.Version, Empty: rf.LastIndex() == 0, Peers: r.cfg.Peers,
		Last: s.Last, Applied: s.Applied, Term: s.Term, Leader: s.Leader, Leads: s.Leads,
		Clock: time.Now().UnixNano(),
	}
	for _, m := range s.Members {
		state.Members = append(state.Members, &wire.ReplicaMember{Id: m.ID, Address: m.Address})
	}
	return state
}
