package frame

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/account"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// AskCell asks the negotiators, through the schedd of this node or directly. A central
// manager without a schedd needs the direct way: somebody has to be able to name the
// first administrators there.
func (c *Invocation) AskCell(req *wire.CellRequest) (reply *wire.CellReply, err error) {
	err = c.CallSchedd(AskTimeout, func(ctx context.Context, s wire.ScheddClient) error {
		reply, err = s.Cell(ctx, req)
		return err
	})
	if err == nil || c.client != nil || !errors.Is(err, roost.Unavailable) {
		return reply, err
	}
	n, nerr := c.ReadNodeFile()
	if nerr != nil || n.Negotiator == nil {
		return nil, err
	}
	return c.askLocalCell(n, req)
}

// askLocalCell asks with the key of this node's negotiator. Whoever can read the key may
// do everything.
func (c *Invocation) askLocalCell(n *config.Node, req *wire.CellRequest) (reply *wire.CellReply, err error) {
	id, err := LoadIdentity(n)
	if err != nil {
		return nil, err
	}
	who, err := account.CurrentUser()
	if err != nil {
		return nil, err
	}
	req.Who, req.Trusted = who.Username+"@"+n.Name, true
	own := n.OwnNegotiator()
	addresses := append([]string{own}, slices.DeleteFunc(slices.Clone(n.Negotiators), func(a string) bool {
		return a == own
	})...)
	err = c.Retry(AskTimeout, func(ctx context.Context, _ func()) (err error) { // nobody may lead for a moment
		for _, addr := range addresses {
			if reply, err = askNegotiator(ctx, addr, id, req); !errors.Is(err, roost.Unavailable) || ctx.Err() != nil {
				return err
			}
		}
		return err
	})
	return reply, err
}

func askNegotiator(ctx context.Context, addr string, id *rpc.Identity, req *wire.CellRequest) (*wire.CellReply, error) {
	conn, err := rpc.Dial(addr, id, peer.Negotiator)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, CellTimeout)
	defer cancel()
	reply, err := wire.NewNegotiatorClient(conn).Cell(ctx, req)
	return reply, DecodeError(err)
}

// CellTimeout is how long a replica has for an answer: it may ask all others first.
const CellTimeout = 5 * time.Second

// AskReplica does one exchange with the replica of the negotiator at an address.
func AskReplica(ctx context.Context, addr string, id *rpc.Identity, patience time.Duration,
	do func(context.Context, wire.ReplicaClient) error) error {
	conn, err := rpc.Dial(addr, id, peer.Negotiator)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return DecodeError(do(ctx, wire.NewReplicaClient(conn)))
}
