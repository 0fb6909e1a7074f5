package criu

import (
	"time"

	"github.com/roost-batch/roost/internal/userfiles"
)

// Files of a staging directory, beside those that package image knows, and bounds.
const (
	metadataName  = "roost.json" // in the images: what CRIU does not keep
	dumpLog       = "dump.log"
	restoreLog    = "restore.log"
	maxGhostBytes = 1 << 30 // bytes of an open file without a name
	logLevel      = 4
	maxLog        = 16 << 20
	AgentName     = "checkpoint-agent" // the first argument of a program that is to call ServeAgent
	maxSpecSize   = 1 << 20
)

// ExternalMount is a mount of the task's that comes from outside, and that CRIU therefore
// is not to make anew.
type ExternalMount struct {
	Key    string // names it in the image; the path inside, unless set
	Inside string // where the task sees it
}

// DumpSpec says what to dump. Paths are absolute.
type DumpSpec struct {
	CRIU string // the program; see Find
	PID  int    // of the first process of the task's PID namespace, as seen from here
	Dir  string // the staging directory: empty, and ours alone. criu/, io/ and scratch.tar come into it
	// cgroup directory that all processes of the task are in, of version 2 or of the
	// freezer; "" for none
	Group   string
	Mounts  []ExternalMount `json:",omitempty"` // nil: all but those that CRIU can make itself
	Scratch string          // directory to pack, with the user's rights; "" for none
	IO      string          // directory with captured output, where only root can make files; "" for none
	// files outside of both, as the task sees them, that only this task appends to
	Streams []string `json:",omitempty"`
	User    userfiles.UserCredential
	Limit   int64 // bytes of the scratch directory; 0 for no bound
	// the first process dies with its parent, and heeds SIGUSR2 and SIGUSR1 as the one of
	// startd/starter; see Detach
	InitStop bool
	Timeout  time.Duration // 0 for ten minutes
}

// DumpResult says how a dump went.
type DumpResult struct {
	Frozen  time.Duration // how long the task stood still
	Memory  time.Duration // the part of that in which CRIU wrote the images
	Total   time.Duration
	Bytes   int64 // of all files in the staging directory
	Entries int
	Scratch userfiles.TreeCount
	failure *CheckpointError
}

// RestoreSpec says what to bring back. Paths are absolute.
type RestoreSpec struct {
	CRIU string
	Dir  string // the staging directory, as it was unpacked and verified
	Root string // an empty directory for the agent to mount on
	// for mounts from outside, by key: what is mounted. Those not named come from where
	// they were
	External map[string]string `json:",omitempty"`
	Streams  []OutputStream    `json:",omitempty"`
	User     userfiles.UserCredential
	InitStop bool // the first process is one as in DumpSpec
	// its program, as the machine has it: it must be just that. Empty: the first process
	// is the task's own, with its user's rights
	Init      string        `json:",omitempty"`
	InitFiles []string      `json:",omitempty"` // what it may have open beside /dev/null
	PIDFile   string        // gets the pid of the first process, as seen from here, before success is told
	Timeout   time.Duration // 0 for ten minutes

	// that the claim has of each process, by their numbers (getrlimit(2)): what is
	// restored has no higher ones
	Limits map[int]uint64 `json:",omitempty"`
	Nice   int            `json:",omitempty"` // that it has at least
}

// OutputStream is a file outside of scratch and captured output that the task appends to.
type OutputStream struct {
	Inside string // as the task saw it
	Path   string // as it is to be opened, with the user's rights; it is cut to the length that it had
}

// RestoreResult says how a restore went.
type RestoreResult struct {
	PID     int
	Total   time.Duration
	Closed  bool // connections of the task were closed, because they could not be brought back
	failure *CheckpointError
}

// CheckpointError is the error that says why a task could not be dumped or restored, for
// the task's owner and for whoever looks into it.
type CheckpointError struct {
	Class  RetryClass
	Reason string   // a sentence
	Detail []string `json:",omitempty"` // what CRIU said
	Forged bool     `json:",omitempty"` // of a restore: no honest machine makes such an image
}

// RetryClass says whether it is worth trying again.
type RetryClass uint8

// The classes of failures.
const (
	Retry     RetryClass = iota // it may work another time
	Permanent                   // the program uses something that cannot be saved
)

func (f *CheckpointError) Error() string { return f.Reason }
