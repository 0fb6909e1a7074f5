package config

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/identity/peer"
)

// Node is one host's part in a pool.
type Node struct {
	File             string   // where this was read from; daemons are started with it
	Name             string   // the host's name in the pool, and the host in the ids of jobs submitted here
	Pool             string   // for people; the node's name unless set
	Dir              string   // everything the daemons keep lies under it; absolute
	FileSystemDomain string   // hosts with the same one see the same files under the same names
	Collectors       []string // addresses of all collectors of the pool, as internal/rpc reads them
	Negotiators      []string // addresses of all negotiators of the pool
	Collector        *CollectorSettings
	Negotiator       *NegotiatorSettings
	Schedd           *ScheddSettings
	Startds          []StartdSettings
	Images           *CheckpointServerSettings // that runs on this node
	// address of the checkpoint server that this node's startds send images to; empty:
	// they go to the schedds
	ImageServer string
	Authority   *AuthoritySettings // that runs on this node
	// address of the pool's authority, where this node's certificate is renewed; empty:
	// it was made by hand
	AuthorityAt string
	TLS         *TLSFiles // nil: unix sockets only
	Owner       OwnerFile // the owner's own file
	Warnings    []string  // what in the file may not be meant, for people; not an error
}

// TLSFiles names the files of a node's identity.
type TLSFiles struct{ CA, Certificate, Key string }

// CollectorSettings is the collector that runs on this node.
type CollectorSettings struct{ Listen []string }

// NegotiatorSettings is the negotiator that runs on this node.
type NegotiatorSettings struct {
	Listen []string
	Cycle  time.Duration // the longest time between two cycles; changes start one at once

	// Election is for how long the others hear nothing of the one that leads before they
	// elect another; 0: as internal/replica does it.
	Election time.Duration
}

// ScheddSettings is the schedd that runs on this node.
type ScheddSettings struct {
	Socket     string      // address for users' commands, "unix:/path"
	SocketMode fs.FileMode // 0600 in a personal pool, 0666 in one for all users of the host
	// addresses for the other schedds of the pool and for users who logged in; empty: it
	// listens to nobody
	Listen      []string
	JobLease    time.Duration // how long running tasks live on without a word from the schedd; 40 minutes unless set
	KeepHistory time.Duration // 0: for ever
	AllowRoot   bool          // jobs of root and system users are accepted
	MaxQueued   int           // tasks in the queue, of all users
	MaxOfUser   int           // tasks in the queue, of one user; half of MaxQueued unless set
	Notify      NotifySettings

	Dialect       roost.PBSDialect // that its users' PBS commands speak; OpenPBS unless set
	KeepCompleted time.Duration    // for how long Torque's commands show jobs that have ended; 5 minutes unless set
}

// StartdSettings is one execute node. Several on one host share its kernel and are told
// apart by name.
type StartdSettings struct {
	Name       string
	Dir        string
	Listen     []string          // never empty; Reach says which of them to advertise
	Resources  roost.Resources   // what it hands out; zero fields are measured
	Start      string            // ClassAd expression over MY machine and TARGET job; "true" unless set
	Rank       string            // likewise
	Attributes map[string]string // more attributes of the machine ad: name to expression
	AllowRoot  bool
	CRIU       string // path of the program that takes checkpoints; empty: it is looked for
	GPUs       GPUSettings
	Layout     gpu.LayoutConfig // how it is cut into resource units
	Queue      NodeQueue
	Pin        bool // tasks that ask for whole cores get cores of their own
	Limits     LimitSettings
	Policy     OwnerPolicy
	StopNotice time.Duration // at most, for tasks when the daemons are stopped
	Scripts    AttemptScripts
	Accounts   TaskAccounts
}

// CheckpointServerSettings is the checkpoint server that runs on a node.
type CheckpointServerSettings struct {
	Listen []string
	Dir    string      // where the images lie
	Max    roost.Bytes // of all images; 0: what the disk has room for
}

// Roles lists the roles that the node plays.
func (n *Node) Roles() []peer.Role {
	var roles []peer.Role
	if n.Collector != nil {
		roles = append(roles, peer.Collector)
	}
	if n.Negotiator != nil {
		roles = append(roles, peer.Negotiator)
	}
	if n.Schedd != nil {
		roles = append(roles, peer.Schedd)
	}
	if len(n.Startds) > 0 {
		roles = append(roles, peer.Startd)
	}
	if n.Images != nil {
		roles = append(roles, peer.CheckpointServer)
	}
	if n.Authority != nil {
		roles = append(roles, peer.Authority)
	}
	return roles
}

// RunDir is where the node's sockets are.
func (n *Node) RunDir() string { return filepath.Join(n.Dir, "run") }

// GuardAddress is where the node's guard serves the machine's owner and its startds,
// "unix:/path": for the host's own pool in /run/roost, where everybody finds it, and for
// another one in its directory.
func (n *Node) GuardAddress() string {
	run := n.RunDir()
	if n.Dir == SystemDir {
		run = SystemRunDir
	}
	return "unix:" + filepath.Join(run, GuardSocket)
}

// OwnerDir is where the guard keeps what it must not forget: the owner's pause.
func (n *Node) OwnerDir() string { return filepath.Join(n.Dir, "owner") }

// LogDir is where the daemons' logs are.
func (n *Node) LogDir() string { return filepath.Join(n.Dir, "log") }

// OwnNegotiator is the address by which the pool knows the negotiator on this node: of
// those that it listens on the one that is in Negotiators.
func (n *Node) OwnNegotiator() string {
	for _, addr := range n.Negotiator.Listen {
		if slices.Contains(n.Negotiators, addr) {
			return addr
		}
	}
	return AdvertisedAddress(n.Negotiator.Listen)
}

// Startd returns the execute node of that name, without regard to case.
func (n *Node) Startd(name string) (*StartdSettings, bool) {
	for i := range n.Startds {
		if strings.EqualFold(n.Startds[i].Name, name) {
			return &n.Startds[i], true
		}
	}
	return nil, false
}
