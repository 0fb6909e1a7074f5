package guard

import (
	"context"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/desktop/idle"
)

// Present receives the report of a session's agent. Only a change in the source's reading
// reaches the loop.
func (g *daemonContext) Present(ctx context.Context, req *wire.PresentRequest) (*wire.PresentReply, error) {
	p, atSeat, err := g.authorizeReport(ctx, sessionsDir)
	if err != nil {
		return nil, err
	}
	g.agents.Report(p.UID, userName(p.UID), atSeat, idle.SessionPresence{Input: roost.BootTime(req.GetInput()),
		InUseReason: req.GetBusy(), Game: req.GetGame(), Origin: req.GetBy()})
	return &wire.PresentReply{}, nil
}
