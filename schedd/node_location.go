package schedd

import (
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/mutant"
	"github.com/roost-batch/roost/internal/wire"
)

// formatLocation writes where a machine is as the dispatcher and the log keep it: its
// address, and before that its node where the machine is not called like it, as in
// "n1@10.0.0.1:9703". The node comes from the machine's ad, of which the collector has
// compared it with the certificate.
func formatLocation(machine, host, address string) string {
	if named, _ := parseLocation(machine, address); named == machine && (host == "" || host == machine) {
		return address
	}
	if host == "" {
		host = machine
	}
	return host + "@" + address
}

// parseLocation is the node of a machine, whose certificate it has to show, and the
// address where it is. No address begins with the name of a node and "@".
func parseLocation(machine, text string) (host, address string) {
	if host, address, ok := strings.Cut(text, "@"); ok && config.IsValidName(host) {
		return host, address
	}
	return machine, text
}

// hasMoved reports whether a machine is said to be of another node than the one that it
// is dialled at. That one would say that nothing runs there.
func (p *nodeConn) hasMoved(text string) bool {
	before, _ := parseLocation(p.name, p.address)
	now, _ := parseLocation(p.name, text)
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
