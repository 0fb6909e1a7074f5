package ca

import (
	"github.com/roost-batch/roost/internal/identity/peer"
)

// NodePart is what a machine is to be in the pool. A token is for one of them.
type NodePart string

// The parts.
const (
	Server  NodePart = "server"  // people submit there, and it runs what the pool sends
	Desktop NodePart = "desktop" // likewise, while its owner does not need it
	Central NodePart = "central" // it keeps the list of machines, decides who gets what, and people submit there
	Submit  NodePart = "submit"  // people submit there, and nothing runs there
)

// Parts lists them.
func Parts() []NodePart { return []NodePart{Server, Desktop, Central, Submit} }

// Roles are what the certificate of such a machine allows.
func (p NodePart) Roles() []peer.Role {
	switch p {
	case Server, Desktop:
		return []peer.Role{peer.Schedd, peer.Startd}
	case Central:
		return []peer.Role{peer.Collector, peer.Negotiator, peer.Schedd}
	case Submit:
		return []peer.Role{peer.Schedd}
	}
	return nil
}
