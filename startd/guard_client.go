package startd

import (
	"context"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// How long a guard that cannot be heard is taken to be well: after guardConnectTimeout
// without a connection to it, or when it says nothing for guardSilenceTimeout, the
// machine is its owner's. And how soon it is called again.
const (
	guardConnectTimeout = 3 * time.Second
	guardSilenceTimeout = 10 * time.Second
	guardRetryInterval  = 200 * time.Millisecond
)

// guardLost says that nothing is heard of the machine's guard, and why.
type guardLost struct{ reason string }

// watchGuard follows the guard of the machine until ctx ends. What it sees goes to the
// loop past the inbox: nothing else may hold it up. Reports that wait are overtaken by
// newer ones.
func (m *startdHost) watchGuard(ctx context.Context) {
	away := time.AfterFunc(guardConnectTimeout, func() { m.reportGuardLost("it does not answer") })
	defer away.Stop()
	for ctx.Err() == nil {
		err := m.followGuard(ctx, away)
		if err != nil && ctx.Err() == nil {
			m.log.Debug("guard", "err", rpc.FromStatus(err))
		}
		select {
		case <-ctx.Done():
		case <-time.After(guardRetryInterval):
		}
	}
}

func (m *startdHost) reportGuardLost(why string) {
	select {
	case m.guardLost <- guardLost{why}:
	case <-m.loopDone:
	}
}

// followGuard holds one conversation with it.
func (m *startdHost) followGuard(ctx context.Context, away *time.Timer) error {
	conn, err := rpc.Dial(m.node.GuardAddress(), nil, peer.Role("")) // on a unix socket of root's
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := wire.NewGuardClient(conn).Watch(ctx, grpc.WaitForReady(true))
	if err != nil {
		return err
	}
	if err := stream.Send(m.guardReport.firstReport(m.config.Name)); err != nil {
		return err
	}
	go m.sendReports(ctx, cancel, stream)
	defer away.Reset(guardConnectTimeout)
	for {
		observations, err := stream.Recv()
		if err != nil {
			return err
		}
		away.Reset(guardSilenceTimeout)
		select {
		case m.guardObservations <- observations:
		case <-m.loopDone:
			return nil
		}
	}
}

func (m *startdHost) sendReports(ctx context.Context, cancel context.CancelFunc, stream wire.Guard_WatchClient) {
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.guardReport.changed:
		}
		if stream.Send(m.guardReport.newestReport()) != nil {
			return
		}
	}
}
