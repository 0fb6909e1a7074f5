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
	for _, addr := range addresses {
		conn, err := rpc.Dial(addr, id, auth.Negotiator)
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(c.ctx, cellPatience)
		reply, err = wire.NewNegotiatorClient(conn).Cell(ctx, req)
		cancel()
		conn.Close()
		if err = fromWire(err); err == nil || !errors.Is(err, roost.Unavailable) || c.ctx.Err() != nil {
			return reply, err
		}
	}
	return nil, advise(err, "is the negotiator of this node running? see: roost cell")
}
