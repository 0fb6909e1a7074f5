package replica

import (
	"context"
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// changeCallTimeout bounds how long an administrator waits for a new replica to become a
// voter. It becomes one later, too.
const changeCallTimeout = 20 * time.Second

// The names of the roles of members, for display.
const (
	roleLeader      = "leader"
	roleFollower    = "follower"
	roleLearner     = "learner"
	roleUnreachable = "unreachable"
)

// Status returns the state of the cell to an administrator, as the leader sees it. If no
// leader can be asked, it is the state that this replica sees.
func (s *grpcService) Status(ctx context.Context, q *wire.CellQuestion) (*wire.CellStatus, error) {
	r := s.replica
	if leader := r.otherLeader(); leader != "" && !q.GetPassed() {
		forwardCtx, cancel := context.WithTimeout(ctx, 2*peerStateTimeout)
		defer cancel()
		var reply *wire.CellStatus
		err := r.forwardToLeader(leader, func(c wire.ReplicaClient) (err error) {
			reply, err = c.Status(forwardCtx, &wire.CellQuestion{Passed: true})
			return err
		})
		if err == nil {
			return reply, nil
		}
		r.log.Info("the leader does not report the state of the cell", "leader", leader, "err", err)
	}
	now := r.Survey(ctx)
	reply := &wire.CellStatus{
		Cell: now.Cell, Leader: now.Leader, Term: now.Term, Commit: now.CommitIndex, Spare: int32(now.SpareVoters()),
		Says: r.config.Name,
	}
	for _, m := range now.Members {
		reply.Members = append(reply.Members, &wire.CellMember{
			Id: m.ID, Name: m.Name, Address: m.Address, Role: m.roleText(),
			Behind: now.CommitIndex - min(m.LastIndex, now.CommitIndex), Version: m.Version, Trouble: m.Problem,
			DigestAt: m.DigestIndex, Digest: m.Digest,
		})
	}
	return reply, nil
}

func (m CellMember) roleText() string {
	switch {
	case !m.Reachable:
		return roleUnreachable
	case !m.IsVoter:
		return roleLearner
	case m.IsLeader:
		return roleLeader
	}
	return roleFollower
}

// Add adds a replica, or forwards the request to the leader.
func (s *grpcService) Add(ctx context.Context, m *wire.CellMember) (*wire.CellChanged, error) {
	ctx, cancel := context.WithTimeout(ctx, changeCallTimeout)
	defer cancel()
	return s.changeOrForward(m, func(c wire.ReplicaClient, m *wire.CellMember) (*wire.CellChanged, error) {
		return c.Add(ctx, m)
	},
		func() error { return s.replica.Add(ctx, m.GetAddress()) })
}

// Remove removes a replica, or forwards the request to the leader.
func (s *grpcService) Remove(ctx context.Context, m *wire.CellMember) (*wire.CellChanged, error) {
	ctx, cancel := context.WithTimeout(ctx, changeCallTimeout)
	defer cancel()
	return s.changeOrForward(m, func(c wire.ReplicaClient, m *wire.CellMember) (*wire.CellChanged, error) {
		return c.Remove(ctx, m)
	},
		func() error { return s.replica.Remove(ctx, m.GetName()) })
}

// changeOrForward executes a change here if this replica leads, else it forwards the
// request to the leader, once.
func (s *grpcService) changeOrForward(m *wire.CellMember, there func(wire.ReplicaClient,
	*wire.CellMember) (*wire.CellChanged, error), here func() error) (*wire.CellChanged, error) {
	r := s.replica
	leader := r.otherLeader()
	if leader == "" || m.GetPassed() {
		return &wire.CellChanged{}, here()
	}
	err := r.forwardToLeader(leader, func(c wire.ReplicaClient) error {
		_, err := there(c, &wire.CellMember{Name: m.GetName(), Address: m.GetAddress(), Passed: true})
		return err
	})
	return &wire.CellChanged{}, err
}

// otherLeader returns the leader's address if another replica leads.
func (r *Replica) otherLeader() string {
	if addr := r.leaderAddress(); addr != r.config.Address {
		return addr
	}
	return ""
}

func (r *Replica) forwardToLeader(leader string, do func(wire.ReplicaClient) error) error {
	conn, err := r.dial(leader)
	if err != nil {
		return fmt.Errorf("replica at %s: %w: %w", leader, roost.Unavailable, err)
	}
	defer conn.Close()
	return rpc.FromStatus(do(wire.NewReplicaClient(conn)))
}
