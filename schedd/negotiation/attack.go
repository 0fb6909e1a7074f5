package negotiation

import (
	"context"
	"strings"

	"github.com/roost-batch/roost/internal/attack"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// attackedPeer is the submit node in whose name it speaks.
const attackedPeer = "submit"

// attackLeader performs a hostile schedd's attacks on the negotiator that leads and on
// the other submit nodes. It runs when a conversation begins.
func (p *leaderTracker) attackLeader(ctx context.Context, client wire.NegotiatorClient,
	send func(*wire.FromSchedd) error) {
	if attack.Is(attack.OtherSchedd) {
		if stream, err := client.Negotiate(ctx); err == nil {
			stream.Send(&wire.FromSchedd{Of: &wire.FromSchedd_Hello{Hello: &wire.ScheddHello{Name: attackedPeer}}})
			_, err = stream.Recv()
			p.leader.log.Info("attacked: a negotiator was greeted in another's name", "err", rpc.FromStatus(err))
		}
	}
	if attack.Is(attack.LongRequests) {
		attackRequest(send, 0, 33<<20)
	}
	if attack.Is(attack.ManyRequests) {
		for id := uint64(1 << 40); attackRequest(send, id, 64<<10) == nil; id++ {
		}
	}
	if attack.Is(attack.OtherJobs) {
		go p.leader.attackPeers(ctx)
	}
}

// attackRequest tells of a request with an ad of so many bytes.
func attackRequest(send func(*wire.FromSchedd) error, id uint64, bytes int) error {
	return send(&wire.FromSchedd{Of: &wire.FromSchedd_Request{Request: &wire.RequestUpdate{
		Id: id, Owner: "nobody", Wanted: 1 << 30, Ad: "[Requirements = false; x = \"" + strings.Repeat("x", bytes) +
			"\"]", Resources: &wire.Resources{MilliCpu: 1},
	}}})
}

// attackBand puts a request into a band for which nobody was asked.
func attackBand(send func(*wire.FromSchedd) error) func(*wire.FromSchedd) error {
	return func(m *wire.FromSchedd) error {
		if r := m.GetRequest(); r != nil && attack.Is(attack.HigherBand) {
			r.Band = "monitoring"
		}
		return send(m)
	}
}
