package replica

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

const (
	peerStateTimeout = time.Second     // for one replica to report its state
	maxRoundInterval = 2 * time.Second // between two rounds of requests
)

// findOrJoinCell runs whenever there is no leader. This replica bootstraps the cell, or
// asks to be added to it. Asking is harmless.
func (r *Replica) findOrJoinCell(ctx context.Context, rf *raft.Raft) {
	if err := r.startAlone(rf); err != nil {
		r.fail(err)
		return
	}
	wait, lastProblem := r.config.ElectionTimeout, ""
	var former formerLeaderCheck
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		if r.leaderAddress() != "" {
			wait, lastProblem = r.config.ElectionTimeout, ""
			former.check(r, rf)
			continue
		}
		trouble := r.askPeersOnce(ctx, rf)
		if trouble != lastProblem && trouble != "" && ctx.Err() == nil {
			r.log.Warn("this replica knows no leader", "because", trouble)
		}
		lastProblem = trouble
		wait = min(2*wait, maxRoundInterval)
	}
}

// startAlone bootstraps a replica without peers, and lets the only voter of a cell be
// elected at once. No other replica could report another leader during the time of an
// election.
func (r *Replica) startAlone(rf *raft.Raft) error {
	if rf.LastIndex() == 0 && len(r.config.Peers) == 1 {
		if err := r.bootstrapCell(rf, []raft.Server{{ID: raft.ServerID(r.identity.Load().ID),
			Address: raft.ServerAddress(r.config.Address)}}); err != nil {
			return err
		}
	}
	voters := r.members()
	voters = slices.DeleteFunc(voters, func(s raft.Server) bool { return s.Suffrage != raft.Voter })
	if len(voters) != 1 || string(voters[0].ID) != r.identity.Load().ID {
		return nil
	}
	r.campaignNow()
	return nil
}

// campaignNow starts an election now, as if a leader had transferred its leadership.
func (r *Replica) campaignNow() {
	id, addr := raft.ServerID(r.identity.Load().ID), raft.ServerAddress(r.config.Address)
	request := &raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax,
		ID: []byte(id), Addr: []byte(addr)}}
	if err := r.transport.TimeoutNow(id, addr, request, &raft.TimeoutNowResponse{}); err != nil {
		r.log.Debug("election at once", "err", err) // the election then comes after the usual time
	}
}

func (r *Replica) bootstrapCell(rf *raft.Raft, servers []raft.Server) error {
	if r.identity.Load().Cell == "" {
		if err := r.joinCell(randomID()); err != nil {
			return err
		}
	}
	r.log.Info("a new cell begins", "cell", r.identity.Load().Cell, "replicas", len(servers))
	return rf.BootstrapCluster(raft.Configuration{Servers: servers}).Error()
}

// peerState is what a replica reported of itself.
type peerState struct {
	address string
	state   *wire.ReplicaState
	err     error
}

// peerStates asks replicas for their state concurrently. The result is in the order of
// their addresses.
func (r *Replica) peerStates(ctx context.Context, addresses []string, hello *wire.ReplicaHello) []peerState {
	answers := make([]peerState, len(addresses))
	var asking sync.WaitGroup
	for i, addr := range addresses {
		asking.Go(func() { answers[i] = r.peerStateOf(ctx, addr, hello) })
	}
	asking.Wait()
	return answers
}

// peerStateOf asks one replica; hello has this replica's own requests.
func (r *Replica) peerStateOf(ctx context.Context, addr string, hello *wire.ReplicaHello) peerState {
	if addr == r.config.Address {
		rf, err := r.runningRaft()
		if err != nil {
			return peerState{address: addr, err: err}
		}
		state := r.ownState(rf)
		if hello.GetDigest() {
			r.addDigest(state)
		}
		return peerState{address: addr, state: state}
	}
	ctx, cancel := context.WithTimeout(ctx, peerStateTimeout)
	defer cancel()
	conn, err := r.dial(addr)
	if err != nil {
		return peerState{address: addr, err: err}
	}
	defer conn.Close()
	state, err := wire.NewReplicaClient(conn).Hello(ctx, &wire.ReplicaHello{
		Id: r.identity.Load().ID, Address: r.config.Address, TakeIn: hello.GetTakeIn(), Digest: hello.GetDigest(),
	})
	return peerState{address: addr, state: state, err: rpc.FromStatus(err)}
}

// askPeersOnce asks all peers once, and acts on the answers. It returns why this replica
// has no cell yet.
func (r *Replica) askPeersOnce(ctx context.Context, rf *raft.Raft) (trouble string) {
	empty := rf.LastIndex() == 0
	addresses := slices.Clone(r.config.Peers)
	for _, s := range r.members() {
		addresses = append(addresses, string(s.Address))
	}
	slices.Sort(addresses)
	answers := r.peerStates(ctx, slices.Compact(addresses), &wire.ReplicaHello{TakeIn: true})
	var troubles []string
	for _, a := range answers {
		if t := r.peerProblem(a, empty); t != "" {
			troubles = append(troubles, t)
		}
	}
	if !empty || len(troubles) > 0 {
		return strings.Join(troubles, "; ")
	}
	if answers[0].address != r.config.Address {
		return "" // another replica bootstraps
	}
	servers := make([]raft.Server, 0, len(answers))
	for _, a := range answers {
		servers = append(servers, raft.Server{ID: raft.ServerID(a.state.GetId()),
			Address: raft.ServerAddress(a.address)})
	}
	if err := r.bootstrapCell(rf, servers); err != nil {
		return err.Error()
	}
	r.campaignNow()
	return ""
}

// peerProblem returns why an answer prevents this replica from going on.
func (r *Replica) peerProblem(a peerState, empty bool) string {
	self := r.identity.Load()
	switch state := a.state; {
	case a.err != nil:
		return fmt.Sprintf("%s: %v", a.address, a.err)
	case self.Cell != "" && state.GetCell() != "" && state.GetCell() != self.Cell:
		return fmt.Sprintf("%s is of another cell, which was begun or recovered without this replica: stop it, "+
			"remove its directory %s, and start it again", a.address, r.config.Dir)
	case state.GetLeads() && !empty && !slices.ContainsFunc(state.GetMembers(), func(m *wire.ReplicaMember) bool {
		return m.GetId() == self.ID
	}):
		return fmt.Sprintf("%s leads, and has removed this replica from the cell: stop it, or add it with roost "+
			"cell add %s", a.address, r.config.Address)
	case !empty:
		return ""
	case !state.GetEmpty():
		if !slices.ContainsFunc(state.GetMembers(), func(m *wire.ReplicaMember) bool {
			return m.GetAddress() == r.config.Address
		}) {
			return fmt.Sprintf("the cell of %s has no member at %s: add it with roost cell add %s", a.address,
				r.config.Address, r.config.Address)
		}
		return fmt.Sprintf("it waits to be admitted to the cell of %s", a.address)
	case !slices.Equal(state.GetPeers(), r.config.Peers):
		return fmt.Sprintf("%v: %s is to begin a cell of %s, and this replica one of %s: name the same negotiators "+
			"in both node files",
			roost.BadConfig, a.address, strings.Join(state.GetPeers(), ", "), strings.Join(r.config.Peers, ", "))
	}
	return ""
}
