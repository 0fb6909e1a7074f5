package authority

import (
	"github.com/roost-batch/roost/internal/auth"
)

// Part is what a machine is to be in the pool. A token is for one of them.
type Part string

// The parts.
const (
	Server  Part = "server"  // people submit there, and it runs what the pool sends
	Desktop Part = "desktop" // likewise, while its owner does not need it
	Central Part = "central" // it keeps the list of machines, decides who gets what, and people submit there
	Submit  Part = "submit"  // people submit there, and nothing runs there
)

// Parts lists them.
func Parts() []Part { return []Part{Server, Desktop, Central, Submit} }

// Roles are what the certificate of such a machine allows.
func (p Part) Roles() []auth.Role {
	switch p {
	case Server, Desktop:
		return []auth.Role{auth.Schedd, auth.Startd}
	case Central:
		return []auth.Role{auth.Collector, auth.Negotiator, auth.Schedd}
	case Submit:
		return []auth.Role{auth.Schedd}
	}
	return nil
}
