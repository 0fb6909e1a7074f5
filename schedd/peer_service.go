package schedd

import (
	"context"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/api"
	"github.com/roost-batch/roost/schedd/peers"
	"github.com/roost-batch/roost/schedd/queue"
)

// newPeerService returns what answers the other schedds of the pool.
func newPeerService(s *Schedd) *peers.Service {
	n := peers.NewService(s.service, s.node.Name, &s.admins)
	n.LogsFor = func(ctx context.Context, req *wire.LogsRequest, who queue.CallerIdentity,
		to func(*wire.LogChunk) error) error {
		return api.SendLogs(ctx, s.service, req, who, to)
	}
	n.WatchFor = func(ctx context.Context, req *wire.WatchRequest, who queue.CallerIdentity,
		to func(*wire.WatchEvent) error) error {
		return api.SendWatch(ctx, s.service, req, who, to)
	}
	n.WaitsFor = func(ctx context.Context) (*wire.WaitSummary, error) { return api.LocalWaits(ctx, s.service) }
	n.ShellFor = func(ctx context.Context, first *wire.ShellInput, who queue.CallerIdentity,
		receive func() (*wire.ShellInput, error), send func(*wire.ShellOutput) error) error {
		return api.RunShell(ctx, s.service, who, api.UserShell{First: first, Receive: receive, Send: send})
	}
	if s.replicated != nil {
		n.SubmitFor = func(ctx context.Context, req *wire.SubmitRequest,
			who queue.CallerIdentity) (*wire.SubmitReply, error) {
			return api.SubmitFor(ctx, s.service, req, who)
		}
		n.Trust = s.node.CellQueue.Trust
	}
	return n
}
