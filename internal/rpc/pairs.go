package rpc

import (
	"fmt"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/auth"
)

// Proof is what a caller compares before it says anything to the other end of a connection.
type Proof uint8

// The proofs. An address proves nothing: whoever takes it answers there.
const (
	ByName   Proof = iota + 1 // the certificate is of the pool, has the role, and has the name of the node that is wanted
	ByRole                    // it is of the pool and has the role: the node file names addresses only, and every node of that role is trusted alike
	ByPin                     // the authority that signed it is the one whose certificate or digest the caller holds, and which signs for nobody else
	BySocket                  // nothing over the network: the directory of the unix socket says who may be there
)

// Pair is one row of the table of who calls whom.
type Pair struct {
	Caller  auth.Role
	Service string    // of internal/wire
	Served  auth.Role // that the certificate of the other end must have
	Proof   Proof
	Says    string // what the first message of the other end says of itself, and is compared with its certificate or with what was wanted
}

// Pairs is the table: one row for each role and service of auth.Methods. DialNode and Dial obey it, and a test tries each row.
func Pairs() []Pair {
	return []Pair{
		{auth.User, "Schedd", auth.Schedd, ByPin, "a login names the schedd's node, which is compared, too; on the schedd's host BySocket"},
		{auth.Stranger, "Schedd", auth.Schedd, ByPin, "the token has the digest of the schedd's own authority"},
		{auth.Schedd, "Neighbour", auth.Schedd, ByName, "ids of jobs end in the name of its node"},

		{auth.Schedd, "Collector", auth.Collector, ByRole, "nothing"},
		{auth.Startd, "Collector", auth.Collector, ByRole, "nothing"},
		{auth.Negotiator, "Collector", auth.Collector, ByRole, "nothing"},
		{auth.Collector, "Collector", auth.Collector, ByRole, "nothing"},

		{auth.Schedd, "Negotiator", auth.Negotiator, ByRole, "nothing: grants carry the epoch, and only the startd's key makes them good"},
		{auth.Negotiator, "Negotiator", auth.Negotiator, ByRole, "nothing"},
		{auth.Negotiator, "Replica", auth.Negotiator, ByRole, "Traffic: it is the replica of the id that was wanted, of the same cell"},

		{auth.Schedd, "Startd", auth.Startd, ByName, "SessionWelcome.node, which is the machine that was wanted"},

		{auth.Startd, "CheckpointServer", auth.CheckpointServer, ByRole, "nothing: an image is authenticated with the job's key"},
		{auth.Schedd, "CheckpointServer", auth.CheckpointServer, ByRole, "nothing"},

		{auth.Startd, "Guard", "", BySocket, "nothing"},
		{auth.User, "Guard", "", BySocket, "nothing"},

		{auth.Stranger, "Authority", auth.Authority, ByPin, "the token has the digest of the pool's authority"},
		{auth.Collector, "Authority", auth.Authority, ByRole, "nothing: only the authority has a certificate of that role"},
		{auth.Negotiator, "Authority", auth.Authority, ByRole, "nothing"},
		{auth.Schedd, "Authority", auth.Authority, ByRole, "nothing"},
		{auth.Startd, "Authority", auth.Authority, ByRole, "nothing"},
		{auth.CheckpointServer, "Authority", auth.Authority, ByRole, "nothing"},
		{auth.Authority, "Authority", auth.Authority, BySocket, "nothing"},
	}
}

// named reports whether the table has every node that calls a role name the node that it wants.
func named(role auth.Role) bool {
	return slices.ContainsFunc(Pairs(), func(p Pair) bool { return p.Served == role && p.Proof == ByName })
}

// dialable says why no connection can be made to such a one, before any is tried.
func dialable(network, addr string, id *Identity, role auth.Role, node string) error {
	switch {
	case network == "unix" && id != nil && node != "" && node != id.Name:
		return fmt.Errorf("%s of %s: %w: its address %s is a socket of this host, where only %s is", role, node, roost.PermissionDenied, addr, id.Name)
	case network != "unix" && id != nil && !id.Pinned && node == "" && named(role):
		return fmt.Errorf("%s at %s: %w: whoever calls one names its node: another node may have that address", role, addr, roost.Invalid)
	}
	return nil
}
