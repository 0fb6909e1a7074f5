package peer

import (
	"context"
	"os"
	"slices"
	"strconv"

	"google.golang.org/grpc/credentials"
	grpcpeer "google.golang.org/grpc/peer"
)

// Role is a part that a peer plays. A node's certificate carries its roles.
type Role string

// The roles. User is anybody on the same machine, Anonymous anybody on the network who
// has no certificate; the others are Roost's own.
const (
	User       Role = "user"
	Anonymous  Role = "stranger"
	Collector  Role = "collector"
	Negotiator Role = "negotiator"
	Schedd     Role = "schedd"
	Startd     Role = "startd"

	CheckpointServer Role = "checkpoint-server"
	Authority        Role = "authority"
)

// DaemonRoles are the roles that the machines of a pool can have.
func DaemonRoles() []Role {
	return []Role{Collector, Negotiator, Schedd, Startd, CheckpointServer, Authority}
}

// Peer is who is at the other end of a connection. It implements credentials.AuthInfo.
type Peer struct {
	Local     bool   // over a unix socket: UID, GID and PID come from the kernel
	UID, GID  uint32 //
	PID       int32  //
	Name      string // over TLS: the node's name, from its certificate
	Certified []Role // over TLS: the roles in the certificate
	Serial    string // over TLS: the certificate's number, in hexadecimal
	// over TLS: the user of the schedd's own host who has this login; such a peer plays
	// User and no other role
	User          string
	SecurityLevel credentials.SecurityLevel
}

// String names the peer for logs.
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

// AuthType names the transport for gRPC.
func (p Peer) AuthType() string {
	if p.Local {
		return "unix"
	}
	return "mtls"
}

// GetCommonAuthInfo tells gRPC how well the connection is protected.
func (p Peer) GetCommonAuthInfo() credentials.CommonAuthInfo {
	return credentials.CommonAuthInfo{SecurityLevel: p.SecurityLevel}
}

// Plays reports whether the peer may act as that role. On a unix socket the daemon's own
// user and root are every daemon: they could read its memory anyway.
func (p Peer) Plays(role Role) bool {
	if p.Local {
		return role == User || p.UID == 0 || p.UID == uint32(os.Geteuid())
	}
	if p.User != "" || role == User {
		return p.User != "" && role == User // no certificate of a node makes a user, and none of a user a node
	}
	return slices.Contains(p.Certified, role)
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
