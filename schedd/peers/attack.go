package peers

import (
	"context"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// attackedPeer is the submit node whose jobs a hostile schedd acts on.
const attackedPeer = "submit"

// AttackPeers asks the other submit nodes to act on jobs of their users, and for what
// only these may see.
func (n *Peers) AttackPeers(ctx context.Context) {
	for again := time.Tick(10 * time.Millisecond); !n.HasPeer(attackedPeer) && ctx.Err() == nil; <-again {
	}
	err := n.callPeer(ctx, attackedPeer, func(ctx context.Context, client wire.NeighbourClient) error {
		for _, user := range []string{"root", "uid 12345", "12345", ""} {
			for verb := range wire.ActRequest_Verb_name {
				act := &wire.ActRequest{Verb: wire.ActRequest_Verb(verb),
					Selection: &wire.Selection{Selectors: []string{"1", "2"}}, Force: true, Again: true,
					Reason: "attacked"}
				reply, err := client.Act(ctx, &wire.NeighbourAct{User: user, Act: act})
				n.log.Info("attacked: a submit node was asked to act", "user", user, "verb", act.GetVerb(), "reply",
					reply, "err", rpc.FromStatus(err))
			}
			q := &wire.NeighbourQuery{User: user, Query: &wire.QueryRequest{Ads: true, Tasks: true}}
			err := attackRead(client.Query(ctx, q))(func(j *wire.JobStatus) {
				n.log.Info("attacked: a submit node showed a job", "job", j)
			})
			n.log.Info("attacked: a submit node was asked for its jobs", "user", user, "err", err)
		}
		return nil
	})
	n.log.Info("attacked: submit nodes were asked", "err", err)
}

// attackRead reads a stream to its end.
func attackRead[T any](stream grpc.ServerStreamingClient[T], err error) func(func(*T)) error {
	return func(each func(*T)) error {
		return forwardStream(stream, err, func(m *T) error { each(m); return nil })
	}
}
