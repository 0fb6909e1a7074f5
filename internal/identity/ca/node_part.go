package ca

import (
	"github.com/roost-batch/roost/internal/identity/peer"
)

// NodePart is the part of a machine in the pool. A token is for one part.
type NodePart string

// The parts.
const (
	Server  NodePart = "server"  // users submit there, and it runs jobs of the pool
	Desktop NodePart = "desktop" // users submit there, and it runs jobs while its owner does not need it
	Central NodePart = "central" // runs collector and negotiator, and users submit there
	Submit  NodePart = "submit"  // users submit there, and no jobs run there
	Pilot   NodePart = "pilot"   // it runs jobs of one user, in an allocation of another batch system
	guest   NodePart = "guest"   // it is a schedd of another pool; no token is for one
)

// Parts lists the parts that an administrator chooses from.
func Parts() []NodePart { return []NodePart{Server, Desktop, Central, Submit} }

// Roles returns the roles in the certificate of a machine with this part.
func (p NodePart) Roles() []peer.Role {
	switch p {
	case Server, Desktop:
		return []peer.Role{peer.Schedd, peer.Startd}
	case Central:
		return []peer.Role{peer.Collector, peer.Negotiator, peer.Schedd}
	case Submit:
		return []peer.Role{peer.Schedd}
	case Pilot:
		return []peer.Role{peer.Pilot}
	case guest:
		return []peer.Role{peer.Guest}
	}
	return nil
}
