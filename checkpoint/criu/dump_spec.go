package criu

import (
	"time"

	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/startd/starter/proto"
)

// Files of a staging directory beside those of package image, and bounds.
const (
	metadataName  = "roost.json" // among the images: what CRIU does not store
	dumpLog       = "dump.log"
	restoreLog    = "restore.log"
	maxGhostBytes = 1 << 30 // bytes of an open file without a name
	logLevel      = 4
	maxLog        = 16 << 20
	AgentName     = "checkpoint-agent" // the first argument of a program that must call ServeAgent
	maxSpecSize   = 1 << 20
)

// ExternalMount is a mount of the task that comes from outside of the sandbox. CRIU must
// not make it.
type ExternalMount struct {
	Key    string // its name in the image; by default the path inside
	Inside string // mount point as the task sees it
	// the task's user could not reach it, so that a machine need not have it
	Unreachable bool `json:",omitempty"`
}

// DumpSpec describes a dump. Paths are absolute.
type DumpSpec struct {
	CRIU string // path of the program; see Find
	PID  int    // of the first process of the task's PID namespace, in the caller's PID namespace
	Dir  string // staging directory, empty and accessible to root only; gets criu/, io/ and scratch.tar
	// cgroup directory of all processes of the task, of version 2 or of the freezer; ""
	// for none
	Group   string
	Mounts  []ExternalMount `json:",omitempty"` // nil: all mounts except those that CRIU can make itself
	Scratch string          // directory to pack, with the user's rights; "" for none
	IO      string          // directory with captured output, in which only root can make files; "" for none
	// files outside of both directories, as the task sees them, to which only this task
	// appends
	Streams []string `json:",omitempty"`
	User    userfiles.UserCredential
	Limit   int64 // most bytes of the scratch directory; 0 for no bound
	// the first process dies with its parent, and handles SIGUSR2 and SIGUSR1 like that
	// of startd/starter; see Detach
	InitStop bool
	Timeout  time.Duration // 0 for ten minutes
}

// DumpResult describes a completed dump.
type DumpResult struct {
	Frozen  time.Duration // how long the task was frozen
	Memory  time.Duration // the part of Frozen in which CRIU wrote the images
	Total   time.Duration
	Bytes   int64 // of all files in the staging directory
	Entries int
	Scratch userfiles.TreeCount
	failure *CheckpointError
}

// RestoreSpec describes a restore. Paths are absolute.
type RestoreSpec struct {
	CRIU string
	Dir  string // staging directory, unpacked and verified
	Root string // empty directory on which the agent mounts the root
	// sources of mounts from outside, by key; those not named come from where they were
	External map[string]string `json:",omitempty"`
	// of a task in a container image
	Container ContainerRoot  `json:",omitzero"`
	Streams   []OutputStream `json:",omitempty"`
	User      userfiles.UserCredential
	InitStop  bool // the first process is one as in DumpSpec
	// the program that the first process must be, as the machine has it; empty: the first
	// process is the task's own, with its user's rights
	Init      string   `json:",omitempty"`
	InitFiles []string `json:",omitempty"` // files that the first process may have open beside /dev/null
	// gets the pid of the first process, in the caller's PID namespace, before success is
	// reported
	PIDFile string

	// the claim's limits of each process, by number (getrlimit(2)): restored processes
	// have no higher ones
	Limits map[int]uint64 `json:",omitempty"`
	Nice   int            `json:",omitempty"` // the least nice value of restored processes
}

// ContainerRoot is the root of a task in a container image. The zero value is the
// machine's root.
type ContainerRoot struct {
	Root string             // directory with the whole root
	Dirs []proto.ImageMount `json:",omitempty"` // directories of the machine that the task has
}

// OutputStream is a file outside of scratch and captured output to which the task
// appends.
type OutputStream struct {
	Inside string // path as the task saw it
	Path   string // path to open, with the user's rights; the file is cut to its length at the dump
}

// RestoreResult describes a completed restore.
type RestoreResult struct {
	PID     int
	Total   time.Duration
	Closed  bool // connections of the task were closed, because they could not be restored
	failure *CheckpointError
}

// CheckpointError says why a task could not be dumped or restored. Reason is for the
// task's owner, Detail for an administrator.
type CheckpointError struct {
	Class  RetryClass
	Reason string   // a sentence
	Detail []string `json:",omitempty"` // messages of CRIU
	Forged bool     `json:",omitempty"` // of a restore: no honest machine makes such an image
}

// RetryClass tells whether trying again is useful.
type RetryClass uint8

// The classes of failures.
const (
	Retry     RetryClass = iota // a later try may succeed
	Permanent                   // the program uses a feature that cannot be checkpointed
)

func (f *CheckpointError) Error() string { return f.Reason }
