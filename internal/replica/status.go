package replica

import (
	"context"
	"strconv"

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
	Trouble   string // why it has not answered, or is not who it should be
}

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
	for i, a := range r.ask(ctx, addresses, false) {
		m := &s.Members[i]
		switch {
		case a.err != nil:
			m.Trouble = a.err.Error()
		case a.state.GetId() != m.ID:
			m.Trouble = "another replica answers there: this one's disk is lost"
		default:
			m.Reachable, m.Last, m.Version = true, a.state.GetLast(), a.state.GetVersion()
		}
	}
	return s
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

// state is what this replica says of itself.
func (r *Replica) state(rf *raft.Raft) *wire.ReplicaState {
	s := r.Status()
	state := &wire.ReplicaState{
		Id: s.ID, Cell: s.Cell, Name: r.cfg.Name, Version: roost.Version, Empty: rf.LastIndex() == 0, Peers: r.cfg.Peers,
		Last: s.Last, Applied: s.Applied, Term: s.Term, Leader: s.Leader, Leads: s.Leads,
	}
	for _, m := range s.Members {
		state.Members = append(state.Members, &wire.ReplicaMember{Id: m.ID, Address: m.Address})
	}
	return state
}
