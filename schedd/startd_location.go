package schedd

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/mutant"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/negotiation"
)

// hasMoved reports whether a machine is said to be of another node than the one that it
// is dialled at. That one would say that nothing runs there.
func (p *nodeConn) hasMoved(text string) bool {
	before, _ := negotiation.ParseLocation(p.Name, p.address)
	now, _ := negotiation.ParseLocation(p.Name, text)
	return before != now
}

// checkWelcome says why the first message of a session does not make it one with that
// machine. Another one's knows nothing of what runs there, and everything would be taken
// for gone.
func checkWelcome(machine string, w *wire.SessionWelcome) error {
	switch {
	case w == nil:
		return fmt.Errorf("machine %s: %w: its first message is no welcome", machine, roost.Invalid)
	case w.GetNode() != machine && !mutant.Active(mutant.NodeNotVerified):
		return fmt.Errorf("machine %s: %w: %q answers in its place", machine, roost.Unauthenticated, w.GetNode())
	}
	return nil
}
