package replica

import (
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// Register makes server accept the calls of other replicas. Before Run their streams
// wait.
func (r *Replica) Register(server grpc.ServiceRegistrar) {
	wire.RegisterReplicaServer(server, &grpcService{replica: r})
}

// grpcService answers the calls of wire.Replica.
type grpcService struct {
	wire.UnimplementedReplicaServer
	replica *Replica
}

// Traffic is one connection of raft.
func (s *grpcService) Traffic(stream grpc.BidiStreamingServer[wire.ReplicaBytes, wire.ReplicaBytes]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	if err := s.replica.checkHello(first); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	near, far := net.Pipe()
	if err := s.replica.streamLayer.offerConn(ctx, near); err != nil {
		return err
	}
	if err := stream.Send(&wire.ReplicaBytes{}); err != nil {
		far.Close()
		return err
	}
	s.replica.streamLayer.copyStream(far, stream, cancel)
	s.replica.noteStreamEnd(first.GetFrom())
	return nil
}

// checkHello refuses a stream for another replica, or from another cell. A replica
// without a cell joins the cell of the first peer that knows its id: only a member of the
// same cell can.
func (r *Replica) checkHello(first *wire.ReplicaBytes) error {
	self := *r.identity.Load()
	if first.GetTo() != self.ID {
		return fmt.Errorf("replica %s: %w: it is %s, and not %s: what that one had on disk is gone", r.config.Address,
			roost.Stale, self.ID, first.GetTo())
	}
	if _, err := r.runningRaft(); err != nil {
		return err
	}
	if first.GetCell() == "" || self.Cell != "" && self.Cell != first.GetCell() {
		return fmt.Errorf("replica %s: %w: it is of cell %s, and %s is of %s: this one, or its whole cell, was "+
			"begun anew",
			r.config.Address, roost.Conflict, self.Cell, first.GetFrom(), first.GetCell())
	}
	return r.joinCell(first.GetCell())
}

// joinCell makes the replica a durable member of a cell. It must have no cell or be in
// that one already.
func (r *Replica) joinCell(cell string) error {
	for {
		old := r.identity.Load()
		if old.Cell == cell {
			return nil
		}
		if old.Cell != "" {
			return fmt.Errorf("replica %s: %w: it is of cell %s already", r.config.Address, roost.Conflict, old.Cell)
		}
		next := memberIdentity{ID: old.ID, Cell: cell}
		if !r.identity.CompareAndSwap(old, &next) {
			continue
		}
		if err := next.writeTo(r.config.Dir); err != nil {
			r.fail(err)
			return err
		}
		return nil
	}
}

// Hello returns the state of this replica. The leader adds a caller that asks for it.
func (s *grpcService) Hello(_ context.Context, m *wire.ReplicaHello) (*wire.ReplicaState, error) {
	rf, err := s.replica.runningRaft()
	if err != nil {
		return nil, err
	}
	if m.GetTakeIn() && m.GetAddress() != "" {
		s.replica.queueChange(func(ctx context.Context) {
			if _, err := s.replica.checkMember(ctx, rf, m.GetAddress(), false); err != nil {
				s.replica.log.Debug("replica asks to be admitted", "address", m.GetAddress(), "err", err)
			}
		})
	}
	state := s.replica.ownState(rf)
	if m.GetDigest() {
		s.replica.addDigest(state)
	}
	return state, nil
}
