package api

import (
	"context"
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// Health tells how the schedd and the daemons that it depends on fare.
func (s *Service) Health(ctx context.Context, req *wire.HealthRequest) (*wire.HealthReply, error) {
	h := &wire.HealthReply{
		Name: s.node.Name, Version: roost.Version, Addr: s.node.Schedd.Socket, Started: s.started.UnixNano(),
		Directory: s.node.Dir,
		Dialect:   string(s.node.Schedd.Dialect), KeepCompleted: int64(s.node.Schedd.KeepCompleted),
	}
	if req.GetBrief() {
		return h, nil
	}
	if err := s.loop.CallLoop(ctx, func(now time.Time) {
		queued, running := s.loop.TaskLoad()
		h.QueuedTasks, h.RunningTasks = uint64(queued), uint64(running)
		h.NegotiatorOk = s.leader.IsConnected()
		h.Negotiator = s.leader.LeaderStatus()
		for _, name := range s.loop.SilentNodes() {
			h.Problems = append(h.Problems, fmt.Sprintf("node %s does not answer", name))
		}
		if req.GetWaiting() {
			h.Waiting, h.Oldest = s.waits.summary(now, s.queue, s.leader)
			h.StartErrors = s.leader.StartErrors()
		}
	}); err != nil {
		return nil, err
	}
	if req.GetWaiting() && req.GetPoolWaits() {
		addPoolWaits(h, s.peerSchedds.PoolWaits())
	}
	h.Collector, h.CollectorOk = s.liveCollector(ctx)
	return h, nil
}

// liveCollector returns the first collector that answers, or what is wrong.
func (s *Service) liveCollector(ctx context.Context) (text string, ok bool) {
	text = "the node file names none"
	for _, addr := range s.node.Collectors {
		conn, err := rpc.Dial(addr, s.identity, peer.Collector)
		if err != nil {
			text = err.Error()
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, collectorTimeout)
		stream, err := wire.NewCollectorClient(conn).Query(ctx, &wire.AdQuery{Type: "Machine", Limit: 1})
		if err == nil {
			_, err = stream.Recv()
		}
		cancel()
		conn.Close()
		if err == nil || err.Error() == "EOF" {
			return addr, true
		}
		text = fmt.Sprintf("%s: %v", addr, rpc.FromStatus(err))
	}
	return text, false
}
