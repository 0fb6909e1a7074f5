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

// Node is the configuration of one host in a pool.
type Node struct {
	File             string   // path of the node file; daemons are started with it
	Name             string   // the host's name in the pool, and the host in the ids of jobs submitted here
	Pool             string   // for display; the node's name by default
	Dir              string   // directory of everything that the daemons store; absolute
	FileSystemDomain string   // hosts with the same value see the same files under the same names
	Collectors       []string // addresses of all collectors of the pool, in the form of internal/rpc
	Negotiators      []string // addresses of all negotiators of the pool
	Collector        *CollectorSettings
	Negotiator       *NegotiatorSettings
	CellQueue        *CellQueueSettings
	Schedd           *ScheddSettings
	Startds          []StartdSettings
	Images           *CheckpointServerSettings // the checkpoint server on this node
	// address of the checkpoint server for this node's startds; empty: images go to the
	// schedds
	ImageServer string
	Accountant  *AccountantSettings // the accountant on this node
	// address of the pool's accountant, to which this node's schedd sends what users ask
	// it; empty: the pool has none, or it calls the schedd
	AccountantAt string
	Authority    *AuthoritySettings // the authority on this node
	Web          *WebSettings       // the web daemon on this node
	// address of the pool's authority, which renews this node's certificate; empty: the
	// certificate was made by hand
	AuthorityAt string
	TLS         *TLSFiles // nil: unix sockets only
	// that jobs which are submitted here may name
	ObjectStores []ObjectStore
	Metrics      *MetricsSettings
	Owner        OwnerFile // the machine owner's own file
	Warnings     []string  // settings that may not be intended, for display; not an error
}

// TLSFiles names the files of a node's key and certificates.
type TLSFiles struct{ CA, Certificate, Key string }

// CollectorSettings configures the collector on this node.
type CollectorSettings struct {
	Listen []string
	DNS    *DNSSettings // nil: names of services are not served over DNS
}

// NegotiatorSettings configures the negotiator on this node.
type NegotiatorSettings struct {
	Listen []string
	Cycle  time.Duration // the longest time between two cycles; a change starts a cycle at once

	// Election is how long the other replicas wait for a silent leader before they elect
	// another; 0: the default of internal/replica.
	Election time.Duration
}

// CellQueueSettings configures the member on this node of the queue of the cell, which
// the central managers have together.
type CellQueueSettings struct {
	Listen  []string // addresses of the queue's schedd for other daemons, open while this member leads
	Member  string   // address of this member for the others
	Members []string // the addresses of all members, with this one

	JobLease    time.Duration // how long running tasks live without a message from the schedd; 40 minutes by default
	KeepHistory time.Duration // how long the history is stored; 0: for ever
	MaxQueued   int           // the most tasks in the queue, of all users
	MaxOfUser   int           // the most tasks in the queue, of one user; half of MaxQueued by default
	Trust       TrustList     // empty: every submit node of the pool may name every user
}

// ScheddSettings configures the schedd on this node.
type ScheddSettings struct {
	Socket     string      // address for users' commands, "unix:/path"
	SocketMode fs.FileMode // 0600 in a personal pool, 0666 in one for all users of the host
	// addresses for the other schedds of the pool and for users who logged in; empty:
	// none
	Listen   []string
	JobLease time.Duration // how long running tasks live without a message from the schedd; 40 minutes by default
	// likewise for services that state no lease; 0: JobLease
	ServiceLease time.Duration
	KeepHistory  time.Duration // how long the history is stored; 0: for ever
	AllowRoot    bool          // jobs of root and system users are accepted
	MaxQueued    int           // the most tasks in the queue, of all users
	MaxOfUser    int           // the most tasks in the queue, of one user; half of MaxQueued by default
	Notify       NotifySettings
	Filter       SubmitFilter
	Hooks        JobHooks
	SubmitTo     QueueChoice // of jobs that say nothing
	Flock        []string    // names of the pools whose machines tasks may have, in the order of preference
	// how long tasks find no room at home before the first of these is asked, and again
	// before each further one; a minute by default
	FlockWait time.Duration

	Dialect       roost.PBSDialect // dialect of the users' PBS commands; OpenPBS by default
	KeepCompleted time.Duration    // how long Torque's commands show jobs that have ended; 5 minutes by default
}

// StartdSettings configures one startd. Several startds on one host share its kernel and
// are distinguished by name.
type StartdSettings struct {
	Name       string
	Dir        string
	Listen     []string          // never empty; AdvertisedAddress selects the one to advertise
	Resources  roost.Resources   // resources for tasks; zero fields are measured
	Start      string            // ClassAd expression over MY machine and TARGET job; "true" by default
	Rank       string            // ClassAd expression over MY machine and TARGET job
	Attributes map[string]string // more attributes of the machine ad: name to expression
	AllowRoot  bool
	CRIU       string // path of the program that takes checkpoints; empty: Roost searches for one
	GPUs       GPUSettings
	Layout     gpu.LayoutConfig // how the machine is cut into resource units
	Queue      NodeQueue
	Pin        bool // tasks that request whole cores get cores of their own
	Limits     LimitSettings
	Policy     OwnerPolicy
	StopNotice time.Duration // the longest notice period of tasks when the daemons are stopped
	// how long a preempted task may delay the one that takes its place: drain and notice
	PreemptionDelay time.Duration
	Ports           PortRange

	Spares   *int // the number of spare starters; nil: SpareStarters selects it
	Scripts  AttemptScripts
	Accounts TaskAccounts

	Containers ContainerSettings
	InputCache InputCacheSettings
	Pilot      *PilotSettings // nil: it is no pilot
}

// SpareStarters is how many starters are made before there are claims for them.
func (d *StartdSettings) SpareStarters() int {
	switch {
	case d.Spares != nil:
		return *d.Spares
	case d.NeedsGuard(): // the memory is its owner's
		return 1
	}
	return 2
}

// MaxSpareStarters bounds SpareStarters.
const MaxSpareStarters = 64

// CheckpointServerSettings configures the checkpoint server on a node.
type CheckpointServerSettings struct {
	Listen []string
	Dir    string      // directory of the images
	Max    roost.Bytes // the most bytes of all images; 0: what the disk has room for

	MaxFilesOfUser roost.Bytes // the most bytes of the files of a user of a node; 0: 10 GiB

	// The startds of this node send their checkpoint images to the submit nodes, as they
	// do where there is no checkpoint server.
	CheckpointsAtSubmitNode bool

	Objects *ObjectSettings // nil: images and packages stay in the directory
}

// AccountantSettings configures the accountant on a node.
type AccountantSettings struct {
	Listen   []string
	Dir      string // directory of its database
	Database string // address of a PostgreSQL database; empty: SQLite in Dir

	// time between two samples of the negotiator's ledger, with which the accounts are
	// compared
	ReconcileEvery time.Duration
}

// Roles lists the roles of the node.
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
	if n.Accountant != nil {
		roles = append(roles, peer.Accountant)
	}
	if n.Authority != nil {
		roles = append(roles, peer.Authority)
	}
	if n.CellQueue != nil {
		roles = append(roles, peer.CellQueue)
	}
	return roles
}

// RunDir returns the directory of the node's sockets.
func (n *Node) RunDir() string { return filepath.Join(n.Dir, "run") }

// GuardAddress returns the address of the node's guard, "unix:/path". For the host's own
// pool it is in /run/roost, and for another pool in that pool's directory.
func (n *Node) GuardAddress() string {
	run := n.RunDir()
	if n.Dir == SystemDir {
		run = SystemRunDir
	}
	return "unix:" + filepath.Join(run, GuardSocket)
}

// OwnerDir returns the directory where the guard stores the machine owner's pause.
func (n *Node) OwnerDir() string { return filepath.Join(n.Dir, "owner") }

// LogDir returns the directory of the daemons' logs.
func (n *Node) LogDir() string { return filepath.Join(n.Dir, "log") }

// OwnNegotiator returns the address by which the pool knows the negotiator on this node.
// It is the listening address that is also in Negotiators.
func (n *Node) OwnNegotiator() string {
	for _, addr := range n.Negotiator.Listen {
		if slices.Contains(n.Negotiators, addr) {
			return addr
		}
	}
	return AdvertisedAddress(n.Negotiator.Listen)
}

// Startd returns the settings of a startd by its name, without regard to case.
func (n *Node) Startd(name string) (*StartdSettings, bool) {
	for i := range n.Startds {
		if strings.EqualFold(n.Startds[i].Name, name) {
			return &n.Startds[i], true
		}
	}
	return nil, false
}
