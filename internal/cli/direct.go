package cli

import (
	"context"
	"errors"
	"os/user"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/auth"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// cell asks the negotiators, through the schedd of this node, or on a central manager that has none directly: there somebody has to be able to say who
// the administrators are.
func (c *call) cell(req *wire.CellRequest) (reply *wire.CellReply, err error) {
	err = c.ask(askPatience, func(ctx context.Context, s wire.ScheddClient) error {
		reply, err = s.Cell(ctx, req)
		return err
	})
	if err == nil || c.client != nil || !errors.Is(err, roost.Unavailable) {
		return reply, err
	}
	n, nerr := c.node()
	if nerr != nil || n.Negotiator == nil {
		return nil, err
	}
	return c.cellDirectly(n, req)
}

// cellDirectly speaks as the negotiator of this node, whose key it has to read: who can do that may do everything.
func (c *call) cellDirectly(n *config.Node, req *wire.CellRequest) (reply *wire.CellReply, err error) {
	id, err := identityOf(n)
	if err != nil {
		return nil, err
	}
	who, err := user.Current()
	if err != nil {
		return nil, err
	}
	req.Who, req.Trusted = who.Username+"@"+n.Name, true
	own := n.OwnNegotiator()
	addresses := append([]string{own}, slices.DeleteFunc(slices.Clone(n.Negotiators), func(a string) bool { return a == own })...)
	err = c.persist(askPatience, func(ctx context.Context, _ func()) (err error) { // nobody may lead for a moment
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
	conn, err := rpc.Dial(addr, id, auth.Negotiator)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, cellPatience)
	defer cancel()
	reply, err := wire.NewNegotiatorClient(conn).Cell(ctx, req)
	return reply, fromWire(err)
}
