package guard

import (
	"context"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/idle"
)

// Present hears from the agent of a session. Reports are no news for the loop by themselves: the source tells what has changed.
func (g *guard) Present(ctx context.Context, req *wire.PresentRequest) (*wire.PresentReply, error) {
	p, atSeat, err := g.mayReport(ctx, sessionsDir)
	if err != nil {
		return nil, err
	}
	g.agents.Report(p.UID, nameOf(p.UID), atSeat, idle.Presence{Input: idle.Instant(req.GetInput()), Busy: req.GetBusy(), Game: req.GetGame(), By: req.GetBy()})
	return &wire.PresentReply{}, nil
}
