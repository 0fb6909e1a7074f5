package frame

import (
	"context"
	"errors"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// AskCell asks the negotiators, through the schedd of this node or directly. A central
// manager without a schedd needs the direct way: somebody has to be able to name the
// first administrators there.
func (c *Invocation) AskCell(req *scheddapi.CellRequest) (reply *scheddapi.CellReply, err error) {
	err = c.CallSchedd(AskTimeout, func(ctx context.Context, s *scheddapi.ScheddClient) error {
		reply, err = s.Cell(ctx, req)
		return err
	})
	if err == nil || c.client != nil || !errors.Is(err, roost.Unavailable) {
		return reply, err
	}
	if direct, derr := c.Dialer.AskNegotiators(c, req); direct != nil || derr != nil {
		return direct, derr
	}
	return nil, err
}
