package peer

import (
	"context"
	"os"
	"slices"
	"strconv"

	"google.golang.org/grpc/credentials"
	grpcpeer "google.golang.org/grpc/peer"
)

// Role is a role of a peer. A node's certificate contains its roles.
type Role string

// The roles. User is any user on the same machine, Anonymous any peer on the network
// without a certificate; the others are daemons.
const (
	User       Role = "user"
	Anonymous  Role = "stranger"
	Collector  Role = "collector"
	Negotiator Role = "negotiator"
	Schedd     Role = "schedd"
	Startd     Role = "startd"

	// a startd in an allocation of another batch system, for tasks of one user
	Pilot Role = "pilot"
	// a schedd of another pool, to which this pool lends machines
	Guest            Role = "guest"
	CheckpointServer Role = "checkpoint-server"
	CellQueue        Role = "cell-queue"
	Accountant       Role = "accountant"
	Authority        Role = "authority"
)

// DaemonRoles returns the roles that nodes of a pool can have.
func DaemonRoles() []Role {
	return []Role{Collector, Negotiator, Schedd, Startd, Pilot, Guest, CheckpointServer, Accountant, Authority,
		CellQueue}
}

// Peer is the other end of a connection. It implements credentials.AuthInfo.
type Peer struct {
	Local     bool   // over a unix socket: UID, GID and PID come from the kernel
	UID, GID  uint32 //
	PID       int32  //
	Name      string // over TLS: the node's name, from its certificate
	Certified []Role // over TLS: the roles in the certificate
	Serial    string // over TLS: the certificate's serial number, in hexadecimal digits
	// over TLS: the name of the cell's queue, if the certificate has the role CellQueue
	CellQueue string
	// over TLS: whose tasks a pilot runs, from its certificate: a user's name, or
	// "user@schedd"; empty: it is no pilot
	Owner string
	// over TLS: the pool of a guest, as this pool calls it, from its certificate; empty:
	// it is no guest
	GuestOf string
	// over TLS: the user of the schedd's own host whose login this is; such a peer has
	// role User and no other
	User          string
	SecurityLevel credentials.SecurityLevel
}

// String returns the peer's name for logs.
func (p Peer) String() string {
	if p.Local {
		return "uid " + strconv.FormatUint(uint64(p.UID), 10)
	}
	if p.User != "" {
		return "login of " + p.User
	}
	if p.Name == "" {
		return "stranger"
	}
	return p.Name
}

// AuthType returns the name of the transport for gRPC.
func (p Peer) AuthType() string {
	if p.Local {
		return "unix"
	}
	return "mtls"
}

// GetCommonAuthInfo returns gRPC's security level of the connection.
func (p Peer) GetCommonAuthInfo() credentials.CommonAuthInfo {
	return credentials.CommonAuthInfo{SecurityLevel: p.SecurityLevel}
}

// Plays reports whether the peer has a role. On a unix socket, root and the daemons' own
// user have the roles of all daemons, because they could read their memory anyway.
func (p Peer) Plays(role Role) bool {
	if p.Local {
		return role == User || p.UID == 0 || p.UID == uint32(os.Geteuid())
	}
	if p.User != "" || role == User {
		// no certificate of a node makes a user, and no login of a user makes a node
		return p.User != "" && role == User
	}
	return slices.Contains(p.Certified, role)
}

// SpeaksFor reports whether the peer may speak as the schedd of that name. A node speaks
// for its own schedd, and a central manager with the role CellQueue for that of the
// cell's queue too. Local daemons have no name, and may speak for any.
func (p Peer) SpeaksFor(schedd string) bool {
	return p.Local || p.Name != "" && p.Name == schedd || p.CellQueue != "" && p.CellQueue == schedd
}

// FromContext returns the peer of a call that is being served.
func FromContext(ctx context.Context) (Peer, bool) {
	p, ok := grpcpeer.FromContext(ctx)
	if !ok {
		return Peer{}, false
	}
	info, ok := p.AuthInfo.(Peer)
	return info, ok
}
