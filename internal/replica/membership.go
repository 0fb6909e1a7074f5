package replica

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
)

const (
	membershipTimeout    = 5 * time.Second        // for raft to start a membership change
	learnerCheckInterval = 250 * time.Millisecond // between two checks of learners
	maxLearnerLag        = 64                     // entries: a learner at most this far behind becomes a voter
)

// members returns the latest raft configuration known to this replica, in the order of
// addresses.
func (r *Replica) members() []raft.Server {
	rf := r.raft.Load()
	if rf == nil {
		return nil
	}
	f := rf.GetConfiguration()
	if f.Error() != nil {
		return nil
	}
	servers := slices.Clone(f.Configuration().Servers)
	slices.SortFunc(servers, func(a, b raft.Server) int {
		if a.Address < b.Address {
			return -1
		}
		return 1
	})
	return servers
}

// memberByID finds a member; the zero Server means that there is none.
func (r *Replica) memberByID(is func(raft.Server) bool) raft.Server {
	all := r.members()
	if i := slices.IndexFunc(all, is); i >= 0 {
		return all[i]
	}
	return raft.Server{}
}

// queueChange queues a membership change. It is dropped if the queue is full: its
// requester asks again.
func (r *Replica) queueChange(do func(context.Context)) bool {
	select {
	case r.membershipChanges <- do:
		return true
	default:
		return false
	}
}

// runMembership executes membership changes, one after another, and promotes learners
// that have caught up.
func (r *Replica) runMembership(ctx context.Context, rf *raft.Raft) {
	tick := time.NewTicker(learnerCheckInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case do := <-r.membershipChanges:
			do(ctx)
		case <-tick.C:
			if rf.State() == raft.Leader {
				r.promoteLearners(ctx, rf)
			}
		}
	}
}

// promoteLearners makes voters of learners that have almost all committed entries. It
// also updates this leader's address in the cell.
func (r *Replica) promoteLearners(ctx context.Context, rf *raft.Raft) {
	for _, s := range r.members() {
		if string(s.ID) == r.identity.Load().ID && string(s.Address) != r.config.Address {
			// its node file has a new address
			if _, err := r.checkMember(ctx, rf, r.config.Address, false); err != nil {
				r.log.Warn("the cell has an old address of this replica", "is", r.config.Address, "was", s.Address,
					"err", err)
			}
		}
		if s.Suffrage == raft.Voter {
			continue
		}
		committed := rf.CommitIndex()
		a := r.peerStateOf(ctx, string(s.Address), nil)
		if a.err != nil || a.state.GetId() != string(s.ID) || a.state.GetLast()+maxLearnerLag < committed {
			continue
		}
		if err := rf.AddVoter(s.ID, s.Address, 0, membershipTimeout).Error(); err != nil {
			r.log.Warn("a replica that has caught up gets no vote yet", "replica", s.ID, "err", err)
			continue
		}
		r.log.Info("replica votes from now on", "replica", s.ID, "address", s.Address)
	}
}

// checkMember checks the replica at an address and updates the membership accordingly. It
// handles a new id of a member whose disk was lost, a member at a new address, and, if
// add is set, a new member. It returns the id.
func (r *Replica) checkMember(ctx context.Context, rf *raft.Raft, addr string, add bool) (string, error) {
	if rf.State() != raft.Leader {
		return "", r.explainError(raft.ErrNotLeader)
	}
	a := r.peerStateOf(ctx, addr, nil)
	if a.err != nil {
		return "", fmt.Errorf("replica at %s: %w", addr, a.err)
	}
	id, cell := raft.ServerID(a.state.GetId()), a.state.GetCell()
	if cell != "" && cell != r.identity.Load().Cell {
		return "", fmt.Errorf("replica at %s: %w: it is of another cell: stop its negotiator, remove the directory "+
			"of its replica, and start it again", addr, roost.Conflict)
	}
	known := r.memberByID(func(s raft.Server) bool { return s.ID == id })
	there := r.memberByID(func(s raft.Server) bool { return string(s.Address) == addr })
	switch {
	case known.ID != "" && string(known.Address) == addr:
		return string(id), nil
	case known.ID != "" && known.Suffrage == raft.Voter:
		r.log.Info("replica has moved", "replica", id, "from", known.Address, "to", addr)
		return string(id), r.changeMembership(rf.AddVoter(id, raft.ServerAddress(addr), 0, membershipTimeout))
	case known.ID == "" && there.ID == "" && !add:
		return "", fmt.Errorf("replica at %s: %w: no member of the cell has that address", addr, roost.NotFound)
	case there.ID != "":
		r.log.Warn("replica has lost its disk: it is admitted again", "address", addr, "was", there.ID, "is", id)
		if err := r.changeMembership(rf.RemoveServer(there.ID, 0, membershipTimeout)); err != nil {
			return "", err
		}
	}
	r.log.Info("replica learns", "replica", id, "address", addr)
	return string(id), r.changeMembership(rf.AddNonvoter(id, raft.ServerAddress(addr), 0, membershipTimeout))
}

func (r *Replica) changeMembership(f raft.IndexFuture) error {
	if err := f.Error(); err != nil {
		return r.explainError(err)
	}
	return nil
}

// runOnLeader queues a membership change, and waits for it.
func (r *Replica) runOnLeader(ctx context.Context, do func(context.Context, *raft.Raft) error) error {
	rf, err := r.runningRaft()
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	if !r.queueChange(func(ctx context.Context) { done <- do(ctx, rf) }) {
		return fmt.Errorf("replica %s: %w: many changes of membership wait", r.config.Name, roost.Exhausted)
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Add adds the replica at an address to the cell. It returns when the replica has caught
// up and is a voter; if ctx ends before, it becomes a voter later. Only the leader can do
// it.
func (r *Replica) Add(ctx context.Context, addr string) error {
	if _, _, err := rpc.SplitAddress(addr); err != nil {
		return err
	}
	var id string
	err := r.runOnLeader(ctx, func(ctx context.Context, rf *raft.Raft) (err error) {
		id, err = r.checkMember(ctx, rf, addr, true)
		return err
	})
	for err == nil {
		s := r.memberByID(func(s raft.Server) bool { return string(s.ID) == id })
		if s.Suffrage == raft.Voter && s.ID != "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("replica at %s: %w: it is admitted, and votes when it has caught up", addr,
				roost.Unavailable)
		case <-time.After(learnerCheckInterval / 5):
		}
	}
	return err
}

// Remove removes a replica from the cell, by node name or address. It refuses if the
// remaining reachable replicas would be no majority. Only the leader can do it; if it
// removes itself another is elected.
func (r *Replica) Remove(ctx context.Context, nameOrAddress string) error {
	return r.runOnLeader(ctx, func(ctx context.Context, rf *raft.Raft) error {
		if rf.State() != raft.Leader {
			return r.explainError(raft.ErrNotLeader)
		}
		gone, err := r.findMember(nameOrAddress)
		if err != nil {
			return err
		}
		if gone.Suffrage == raft.Voter {
			if err := r.checkQuorumWithout(ctx, gone); err != nil {
				return err
			}
		}
		r.log.Info("replica is removed", "replica", gone.ID, "address", gone.Address)
		return r.changeMembership(rf.RemoveServer(gone.ID, 0, membershipTimeout))
	})
}

// findMember finds a member by node name or address.
func (r *Replica) findMember(nameOrAddress string) (raft.Server, error) {
	var found []raft.Server
	for _, s := range r.members() {
		if nodeNameOf(string(s.ID)) == nameOrAddress || string(s.Address) == nameOrAddress ||
			string(s.ID) == nameOrAddress {
			found = append(found, s)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return raft.Server{}, fmt.Errorf("replica %s: %w: no member of the cell has that name or address",
			nameOrAddress, roost.NotFound)
	}
	return raft.Server{}, fmt.Errorf("replica %s: %w: %d members have that name; say the address", nameOrAddress,
		roost.Invalid, len(found))
}

// checkQuorumWithout refuses a removal after which there would be no majority.
func (r *Replica) checkQuorumWithout(ctx context.Context, gone raft.Server) error {
	var rest []string
	for _, s := range r.members() {
		if s.Suffrage == raft.Voter && s.ID != gone.ID {
			rest = append(rest, string(s.Address))
		}
	}
	up := 0
	for _, a := range r.peerStates(ctx, rest, nil) {
		if a.err == nil {
			up++
		}
	}
	if need := len(rest)/2 + 1; up < need {
		return fmt.Errorf("replica %s: %w: of the %d that would remain %d can be reached, and the cell needs %d",
			gone.Address, roost.Conflict, len(rest), up, need)
	}
	return nil
}
