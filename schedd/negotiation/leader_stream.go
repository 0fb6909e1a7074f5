package negotiation

import (
	"context"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost/internal/sendqueue"
	"github.com/roost-batch/roost/internal/wire"
)

// What the conversation with the negotiator tells the loop.
type (
	LeaderConnected struct {
		Epoch   uint64
		Name    string
		Address string
		Out     *sendqueue.Queue[*wire.FromSchedd]
		Pool    string // of the leader; empty: this pool; likewise below
	}
	LeaderDisconnected struct {
		Out  *sendqueue.Queue[*wire.FromSchedd]
		Err  error
		Pool string
	}
	LeaderMessage struct {
		Out     *sendqueue.Queue[*wire.FromSchedd]
		Message *wire.ToSchedd
		Pool    string
	}
)

// limitedGrants lists the grants with licences that this schedd acts upon or has claims
// of, and whether those are all.
func (l *LeaderConn) limitedGrants() (all bool, list []*wire.HeldGrant) {
	held, all := l.dispatch.LimitedGrants()
	for _, h := range held {
		list = append(list, &wire.HeldGrant{Grant: h.Grant.ID, Epoch: h.Grant.Epoch, Claimed: h.Claimed,
			AdSequence: h.AdSequence})
	}
	return all, list
}

// HelloMessage is what the schedd says of itself to a negotiator.
func (l *LeaderConn) HelloMessage() *wire.ScheddHello {
	if l.guest != nil {
		return &wire.ScheddHello{Name: l.host, Started: l.started.UnixNano(), Tells: true, ConfirmsPolicy: true}
	}
	m := &wire.ScheddHello{Name: l.host, Address: l.address, Started: l.started.UnixNano(), Tells: true,
		ConfirmsPolicy: true}
	m.Lists, m.Grants = l.limitedGrants()
	return m
}

// runNegotiatorStream holds one conversation with the negotiator at the other end of
// conn.
func (p *leaderTracker) runNegotiatorStream(ctx context.Context, conn *grpc.ClientConn, address string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := wire.NewNegotiatorClient(conn).Negotiate(ctx)
	if err != nil {
		return err
	}
	var hello *wire.ScheddHello
	// The loop has seen the end of the conversation before: no grant of that, or of an
	// earlier one, comes to it any more.
	if err := p.leader.calls.CallLoop(ctx, func(time.Time) { hello = p.leader.HelloMessage() }); err != nil {
		return err
	}
	if err := stream.Send(&wire.FromSchedd{Of: &wire.FromSchedd_Hello{Hello: hello}}); err != nil {
		return err
	}
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	p.attackLeader(ctx, wire.NewNegotiatorClient(conn), stream.Send)
	out := sendqueue.New[*wire.FromSchedd]()
	p.leader.calls.PostEvent(ctx, LeaderConnected{first.GetHello().GetEpoch(), first.GetHello().GetName(), address,
		out, p.leader.pool()})
	writer := make(chan struct{})
	go func() {
		defer close(writer)
		defer cancel()
		out.SendAll(ctx, func(all []*wire.FromSchedd) error {
			return p.leader.placer.sendWithProposals(all, attackBand(stream.Send))
		})
	}()
	for err == nil {
		var m *wire.ToSchedd
		if m, err = stream.Recv(); err == nil {
			if p.leader.guest == nil {
				p.leader.placer.onLeaderMessage(m)
			}
			p.leader.calls.PostEvent(ctx, LeaderMessage{out, m, p.leader.pool()})
		}
	}
	cancel()
	<-writer
	p.leader.calls.PostEvent(p.daemonContext, LeaderDisconnected{out, err, p.leader.pool()})
	return err
}
