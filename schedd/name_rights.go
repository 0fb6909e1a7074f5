package schedd

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/codec"
	"github.com/roost-batch/roost/schedd/dispatch"
)

// A right to a name lives longer than its attempt can live without this schedd, so that a
// schedd that is away takes no names away:
//
//	rightInterval < rightReserve, and a right is valid for the lease and rightReserve
const (
	rightReserve  = time.Hour
	rightInterval = 30 * time.Minute
)

// rightUntil returns the right that an attempt is given now, without its signature.
func rightUntil(s *Schedd, a roost.AttemptID) *wire.NameRight {
	return &wire.NameRight{ExpiresS: s.clock.now.Add(dispatch.LeaseOf(s.dispatch, a) + rightReserve).Unix()}
}

// addNameRight adds to a program the right of its attempt to be found by name. The
// session signs it.
func addNameRight(s *Schedd, a roost.AttemptID, program *wire.Program) {
	if s.identity != nil && program.GetService() != nil {
		program.Service.NameRight = rightUntil(s, a)
	}
}

// renewNameRights renews the rights of all attempts of services on a node. It does so at
// the beginning of a session, and then once in rightInterval.
func renewNameRights(s *Schedd, node string) {
	p := s.peers[node]
	if s.identity == nil || p == nil || p.session == nil || !p.session.rightsDue(s.clock.boot) {
		return
	}
	for _, a := range s.dispatch.AttemptsOn(node) {
		if owner, name, ok := s.queue.ServiceOf(a); ok {
			s.sendToLazily(node, &wire.ToStartd{Of: &wire.ToStartd_NameRight{NameRight: &wire.RenewNameRight{
				Attempt: codec.AttemptRef(a), Owner: owner, Name: name, Right: rightUntil(s, a)}}})
		}
	}
}

// rightsDue reports whether the rights of the node's attempts have to be renewed, and
// notes that they are.
func (n *startdSession) rightsDue(now roost.BootTime) bool {
	if n.rightsRenewed && now-n.rightsRenewedAt < rightInterval {
		return false
	}
	n.rightsRenewed, n.rightsRenewedAt = true, now
	return true
}
