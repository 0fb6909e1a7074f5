package replica

import (
	"context"
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// changePatience bounds how long an administrator waits for a new replica to get its vote. It gets it later too.
const changePatience = 20 * time.Second

// The roles of members, as people are told them.
const (
	roleLeader      = "leader"
	roleFollower    = "follower"
	roleLearner     = "learner"
	roleUnreachable = "unreachable"
)

// Status tells an administrator how the cell stands: as the leader sees it, or, where none can be asked, as this replica does.
func (s *service) Status(ctx context.Context, q *wire.CellQuestion) (*wire.CellStatus, error) {
	r := s.replica
	if leader := r.elsewhere(); leader != "" && !q.GetPassed() {
		passing, cancel := context.WithTimeout(ctx, 2*askTimeout)
		defer cancel()
		var reply *wire.CellStatus
		err := r.pass(leader, func(c wire.ReplicaClient) (err error) {
			reply, err = c.Status(passing, &wire.CellQuestion{Passed: true})
			return err
		})
		if err == nil {
			return reply, nil
		}
		r.log.Info("the leader does not say how the cell stands", "leader", leader, "err", err)
	}
	now := r.Survey(ctx)
	reply := &wire.CellStatus{
		Cell: now.Cell, Leader: now.Leader, Term: now.Term, Commit: now.Commit, Spare: int32(now.Spare()), Says: r.cfg.Name,
	}
	for _, m := range now.Members {
		reply.Members = append(reply.Members, &wire.CellMember{
			Id: m.ID, Name: m.Name, Address: m.Address, Role: m.role(), Behind: now.Commit - min(m.Last, now.Commit), Version: m.Version, Trouble: m.Trouble,
			DigestAt: m.DigestAt, Digest: m.Digest,
		})
	}
	return reply, nil
}

func (m Member) role() string {
	switch {
	case !m.Reachable:
		return roleUnreachable
	case !m.Voter:
		return roleLearner
	case m.Leads:
		return roleLeader
	}
	return roleFollower
}

// Add takes a replica in, or has the leader do it.
func (s *service) Add(ctx context.Context, m *wire.CellMember) (*wire.CellChanged, error) {
	ctx, cancel := context.WithTimeout(ctx, changePatience)
	defer cancel()
	return s.change(m, func(c wire.ReplicaClient, m *wire.CellMember) (*wire.CellChanged, error) { return c.Add(ctx, m) },
		func() error { return s.replica.Add(ctx, m.GetAddress()) })
}

// Remove strikes one, or has the leader do it.
func (s *service) Remove(ctx context.Context, m *wire.CellMember) (*wire.CellChanged, error) {
	ctx, cancel := context.WithTimeout(ctx, changePatience)
	defer cancel()
	return s.change(m, func(c wire.ReplicaClient, m *wire.CellMember) (*wire.CellChanged, error) { return c.Remove(ctx, m) },
		func() error { return s.replica.Remove(ctx, m.GetName()) })
}

// change does here what only the leader can, or passes it on to it, once.
func (s *service) change(m *wire.CellMember, there func(wire.ReplicaClient, *wire.CellMember) (*wire.CellChanged, error), here func() error) (*wire.CellChanged, error) {
	r := s.replica
	leader := r.elsewhere()
	if leader == "" || m.GetPassed() {
		return &wire.CellChanged{}, here()
	}
	err := r.pass(leader, func(c wire.ReplicaClient) error {
		_, err := there(c, &wire.CellMember{Name: m.GetName(), Address: m.GetAddress(), Passed: true})
		return err
	})
	return &wire.CellChanged{}, err
}

// elsewhere is the leader's address where another one leads.
func (r *Replica) elsewhere() string {
	if addr := r.leader(); addr != r.cfg.Address {
		return addr
	}
	return ""
}

func (r *Replica) pass(leader string, do func(wire.ReplicaClient) error) error {
	conn, err := r.dial(leader)
	if err != nil {
		return fmt.Errorf("replica at %s: %w: %w", leader, roost.Unavailable, err)
	}
	defer conn.Close()
	return rpc.FromStatus(do(wire.NewReplicaClient(conn)))
}
