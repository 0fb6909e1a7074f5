package startd

import (
	"context"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost/internal/auth"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// How long a guard that cannot be heard is taken to be well: after guardAway without a connection to it, or when it says nothing for guardSilent, the
// machine is its owner's. And how soon it is called again.
const (
	guardAway   = 3 * time.Second
	guardSilent = 10 * time.Second
	guardRetry  = 200 * time.Millisecond
)

// guardLost says that nothing is heard of the machine's guard, and why.
type guardLost struct{ why string }

// watchGuard follows the guard of the machine until ctx ends. What it sees goes to the loop past the inbox: nothing else may hold it up. Reports that
// wait are overtaken by newer ones.
func (m *machine) watchGuard(ctx context.Context) {
	away := time.AfterFunc(guardAway, func() { m.tellLost("it does not answer") })
	defer away.Stop()
	for ctx.Err() == nil {
		err := m.followGuard(ctx, away)
		if err != nil && ctx.Err() == nil {
			m.log.Debug("guard", "err", rpc.FromStatus(err))
		}
		select {
		case <-ctx.Done():
		case <-time.After(guardRetry):
		}
	}
}

func (m *machine) tellLost(why string) {
	select {
	case m.lost <- guardLost{why}:
	case <-m.stopped:
	}
}

// followGuard holds one conversation with it.
func (m *machine) followGuard(ctx context.Context, away *time.Timer) error {
	conn, err := rpc.Dial(m.node.GuardAddress(), nil, auth.Role("")) // on a unix socket of root's
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
	if err := stream.Send(m.report.first(m.own.Name)); err != nil {
		return err
	}
	go m.sendReports(ctx, cancel, stream)
	defer away.Reset(guardAway)
	for {
		signs, err := stream.Recv()
		if err != nil {
			return err
		}
		away.Reset(guardSilent)
		select {
		case m.signs <- signs:
		case <-m.stopped:
			return nil
		}
	}
}

func (m *machine) sendReports(ctx context.Context, cancel context.CancelFunc, stream wire.Guard_WatchClient) {
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.report.news:
		}
		if stream.Send(m.report.last()) != nil {
			return
		}
	}
}
