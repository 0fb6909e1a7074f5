package rpc

import (
	"fmt"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
)

// PeerProof is how a caller verifies the other end of a connection before it sends
// anything.
type PeerProof uint8

// The proofs. An address proves nothing: any process may answer at it.
const (
	// the certificate is of the pool and has the wanted role and node name
	ProofByName PeerProof = iota + 1
	// the certificate is of the pool and has the wanted role: the node file has only
	// addresses, and every node of the role is trusted
	ProofByRole
	// the certificate was signed by the authority whose certificate or digest the caller
	// has, and which signs for no other server
	ProofByPin
	// nothing over the network: the directory of the unix socket restricts who may be
	// there
	ProofBySocket
)

// CallRule is one row of the table of calls.
type CallRule struct {
	Caller     peer.Role
	Service    string    // of internal/wire
	ServerRole peer.Role // that the certificate of the other end must have
	Proof      PeerProof
	// what the first message of the other end states about itself, which is compared with
	// its certificate or with the wanted node
	Claims string
}

// CallRules returns the table, with one row for each role and service of
// auth.MethodAccess. DialNode and Dial follow it, and a test tries each row.
func CallRules() []CallRule {
	return []CallRule{
		{peer.User, "Schedd", peer.Schedd, ProofByPin,
			"a login names the schedd's node, which is compared, too; on the schedd's host BySocket"},
		{peer.Anonymous, "Schedd", peer.Schedd, ProofByPin, "the token has the digest of the schedd's own authority"},
		{peer.Schedd, "Neighbour", peer.Schedd, ProofByName, "ids of jobs end in the name of its node"},

		{peer.Schedd, "Collector", peer.Collector, ProofByRole, "nothing"},
		{peer.Startd, "Collector", peer.Collector, ProofByRole, "nothing"},
		{peer.Negotiator, "Collector", peer.Collector, ProofByRole, "nothing"},
		{peer.Collector, "Collector", peer.Collector, ProofByRole, "nothing"},

		{peer.Schedd, "Negotiator", peer.Negotiator, ProofByRole,
			"nothing: grants carry the epoch, and only the startd's key makes them good"},
		{peer.Negotiator, "Negotiator", peer.Negotiator, ProofByRole, "nothing"},
		{peer.CellQueue, "CellQueue", peer.CellQueue, ProofByRole, "nothing: members have the whole queue"},
		{peer.Negotiator, "Replica", peer.Negotiator, ProofByRole,
			"Traffic: it is the replica of the id that was wanted, of the same cell"},

		{peer.Startd, "Relay", peer.Collector, ProofByRole,
			"nothing: it sees ciphertext only, and both ends authenticate each other inside"},
		{peer.Pilot, "Relay", peer.Collector, ProofByRole, "nothing: likewise"},
		{peer.Schedd, "Relay", peer.Collector, ProofByRole, "nothing: likewise"},

		{peer.Guest, "Negotiator", peer.Negotiator, ProofByRole, "nothing: as for a schedd; the authority is the " +
			"host's"},
		{peer.Guest, "Startd", peer.Startd, ProofByName, "SessionWelcome.node, which is the machine that was wanted"},
		{peer.Guest, "Relay", peer.Collector, ProofByRole, "nothing: likewise"},
		{peer.Guest, "Authority", peer.Authority, ProofByRole, "nothing: the list is signed"},

		{peer.Pilot, "Collector", peer.Collector, ProofByRole, "nothing"},
		{peer.Pilot, "CheckpointServer", peer.CheckpointServer, ProofByRole,
			"nothing: an image is authenticated with the job's key"},
		{peer.Pilot, "Authority", peer.Authority, ProofByRole, "nothing"},
		{peer.Schedd, "Startd", peer.Startd, ProofByName, "SessionWelcome.node, which is the machine that was wanted"},

		{peer.Startd, "Startd", peer.Startd, ProofByName, "nothing: each chunk is compared with its digest"},

		{peer.Startd, "CheckpointServer", peer.CheckpointServer, ProofByRole,
			"nothing: an image is authenticated with the job's key"},
		{peer.Schedd, "CheckpointServer", peer.CheckpointServer, ProofByRole, "nothing"},

		{peer.Accountant, "Collector", peer.Collector, ProofByRole, "nothing"},
		{peer.Accountant, "Negotiator", peer.Negotiator, ProofByRole, "nothing"},
		{peer.Accountant, "Feed", peer.Schedd, ProofByName, "FeedBatch.host, which is the node that was wanted"},
		{peer.Schedd, "Accountant", peer.Accountant, ProofByRole, "nothing"},

		{peer.Startd, "Guard", "", ProofBySocket, "nothing"},
		{peer.User, "Guard", "", ProofBySocket, "nothing"},

		{peer.Anonymous, "Authority", peer.Authority, ProofByPin, "the token has the digest of the pool's authority"},
		{peer.Collector, "Authority", peer.Authority, ProofByRole,
			"nothing: only the authority has a certificate of that role"},
		{peer.Negotiator, "Authority", peer.Authority, ProofByRole, "nothing"},
		{peer.Schedd, "Authority", peer.Authority, ProofByRole, "nothing"},
		{peer.Startd, "Authority", peer.Authority, ProofByRole, "nothing"},
		{peer.CheckpointServer, "Authority", peer.Authority, ProofByRole, "nothing"},
		{peer.Accountant, "Authority", peer.Authority, ProofByRole, "nothing"},
		{peer.Authority, "Authority", peer.Authority, ProofBySocket, "nothing"},
	}
}

// requiresNodeName reports whether the table requires every caller of a role to name the
// node that it wants.
func requiresNodeName(role peer.Role) bool {
	return slices.ContainsFunc(CallRules(), func(p CallRule) bool {
		return p.ServerRole == role && p.Proof == ProofByName
	})
}

// checkDialable returns why no connection to an address can be permitted, before any is
// tried.
func checkDialable(network, addr string, id *Identity, role peer.Role, node string) error {
	switch {
	case network == "unix" && id != nil && node != "" && node != id.Name:
		return fmt.Errorf("%s of %s: %w: its address %s is a socket of this host, where only %s is", role, node,
			roost.PermissionDenied, addr, id.Name)
	case network != "unix" && id != nil && !id.PinnedAuthority && node == "" && requiresNodeName(role):
		return fmt.Errorf("%s at %s: %w: whoever calls one names its node: another node may have that address", role,
			addr, roost.Invalid)
	}
	return nil
}
