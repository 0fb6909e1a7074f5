package queue

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/roost-batch/roost"
)

// What says what happened.
type What uint8

// What can happen to jobs. The numbers stand in logs on disk: they are never used for anything else.
const (
	Submitted What = iota + 1
	Assigned       // an attempt is recorded, on its way to a machine
	Started        // its processes run
	Ended          // its processes are gone, its output is home
	Lost           // it is gone without an exit status
	Held
	Released
	RemovalRequested // of active tasks: they end first
	Dropped          // removed by Roost itself: what the job waited for cannot come
	Retried
	Unblocked        // what the job waited for has come
	Purged           // the job is in the history
	Checkpointed     // an image of an attempt is kept
	CheckpointFailed // none could be taken, or kept
	CheckpointBad    // an image that was kept cannot be used
	Suspended        // active tasks are to be frozen
	Resumed          // and thawed
	Admitted         // quotas allow a job that was taken while nobody could be asked
	OwnerBack        // a running task stands still for the owner of its machine
	OwnerAway        // and does not any more
	Signalled        // running tasks are sent a signal
	Requeued         // active tasks are to be killed and run again
	Altered          // it asks for something else
	Ordered          // its place among others is another
	Returned         // a job of the history is in the queue again; what is done with it comes next
	RunRequested     // tasks that wait ask for a machine before all others
	RunDenied        // and do not any more: none can take them now
)

var whatNames = [...]string{
	Submitted: "submitted", Assigned: "assigned", Started: "started", Ended: "ended", Lost: "lost", Held: "held", Released: "released",
	RemovalRequested: "removed", Dropped: "dropped", Retried: "retried", Unblocked: "unblocked", Purged: "purged",
	Checkpointed: "checkpointed", CheckpointFailed: "checkpoint-failed", CheckpointBad: "checkpoint-bad", Suspended: "suspended", Resumed: "resumed",
	Admitted:  "admitted",
	OwnerBack: "suspended", OwnerAway: "resumed", Signalled: "signalled", Requeued: "requeued",
	Altered: "altered", Ordered: "reordered", Returned: "returned",
	RunRequested: "run-now", RunDenied: "run-denied",
}

func (w What) String() string {
	if int(w) < len(whatNames) && whatNames[w] != "" {
		return whatNames[w]
	}
	return fmt.Sprintf("what(%d)", uint8(w))
}

// Event is a fact about one job. Which fields are set depends on What.
type Event struct {
	What       What
	Time       int64 // unix nanoseconds
	Job        uint64
	Ranges     []Range       // Held, Released, RemovalRequested, Dropped, Retried, Suspended, Resumed, Signalled, Requeued, RunRequested, RunDenied: which tasks; none means all
	Index      int           // Assigned, Started, Ended, Lost, OwnerBack, OwnerAway, and of checkpoints
	Attempt    roost.Attempt // Held: where the job's record was damaged, the highest number that an attempt of it may have had; 0 otherwise
	Node       string        // Assigned, OwnerBack, OwnerAway
	Address    string
	Claim      uint64
	Place      string // Started: what the attempt was given of its node, in a form that the queue does not look into; empty for nothing to tell
	Exit       *Exit  // Ended
	By         string // who asked; empty for Roost itself
	Reason     string
	Force      bool        // RemovalRequested: without notice; Held: also what is held already, see Lock; Ended, Lost: a task that may not be run twice ends with its attempt, and is not held
	Submission *Submission // Submitted; Altered: what changes, and as an ad of changes, and counts of 0 for what does not
	Image      *Image      // Checkpointed, CheckpointBad; Assigned and Started: what the attempt goes on from
	Rank       uint64      // Ordered: its place
	Since      int64       // Ordered: its age, unix nanoseconds
	Snapshot   []byte      // Returned: the job, as Queue.Snapshot has it
	Hosts      []string    // RunRequested: the only machines for it; none: any
}

// Exit is how an attempt ended.
type Exit struct {
	Code   int32
	Signal int32
	Core   bool
	Cause  Cause
	Reason string
	Wall   int64 // nanoseconds
	User   int64
	System int64
	MaxRSS int64 // bytes, of its largest process
	Used   Used
}

// Used is what an attempt used beside time, in bytes, as its machine measured it; 0 where it could not. On their way into the queue the amounts
// are rounded up to whole KiB.
type Used struct {
	Peak    int64 // memory that cannot be dropped, at its highest
	Read    int64 // from block devices
	Written int64
	PeakGPU int64 // memory of all its GPUs together, at its highest
	Disk    int64 // in its scratch directory
}

// Cause says why an attempt ended. The numbers are those of the wire.
type Cause uint8

// The causes.
const (
	ByItself Cause = iota
	ByWalltime
	ByRemoval
	ByVacating
	ByLease
	ByLaunch
	ByMachine
	ByMemory
	ByGPUMemory
	ByDisk
	ByRestore    // the image that it was to go on from could not be restored
	ByPreemption // its place was needed by somebody who comes before it
	ByCPUTime
	ByVirtual // its processes addressed too much memory
	ByRefusal // the prologue of its machine would not have it
)

// Success reports whether the program ended by itself with exit code 0.
func (e *Exit) Success() bool { return e.Cause == ByItself && e.Code == 0 && e.Signal == 0 }

// Submission is what was submitted, as it is kept.
type Submission struct {
	Key     string
	Part    int // of the submission that had this key
	Parts   int
	Owner   string
	UID     uint32
	GID     uint32
	Ad      string
	Count   int
	Columns []Column
	Waits   []Wait // what it says of other jobs, as far as that was not met at submit
	Unasked bool   // nobody could say whether quotas allow it
	Secret  []byte // that the keys of the images of its tasks are derived from; it is shown to nobody
}

// Column holds one value for each task.
type Column struct {
	Name   string
	Values []string
}

// Range is the indexes First to Last, both included.
type Range struct{ First, Last int }

// The fields of an event on disk, as protobuf would lay them out: unknown ones are skipped, so an older Roost can read what a newer one wrote.
const (
	fWhat = iota + 1
	fTime
	fJob
	fRange
	fIndex
	fAttempt
	fNode
	fAddress
	fClaim
	fExit
	fBy
	fReason
	fForce
	fSubmission
	fImage
	fPlace
	fRank
	fSince
	fSnapshot
	fHosts
)

// AppendEvent adds the event's form on disk to buf.
func AppendEvent(buf []byte, e *Event) []byte {
	buf = number(buf, fWhat, uint64(e.What))
	buf = number(buf, fTime, uint64(e.Time))
	buf = number(buf, fJob, e.Job)
	for _, r := range e.Ranges {
		buf = message(buf, fRange, func(b []byte) []byte { return number(number(b, 1, uint64(r.First)), 2, uint64(r.Last)) })
	}
	buf = number(buf, fIndex, uint64(e.Index))
	buf = number(buf, fAttempt, uint64(e.Attempt))
	buf = text(buf, fNode, e.Node)
	buf = text(buf, fAddress, e.Address)
	buf = number(buf, fClaim, e.Claim)
	if e.Exit != nil {
		buf = message(buf, fExit, e.Exit.append)
	}
	buf = text(buf, fBy, e.By)
	buf = text(buf, fReason, e.Reason)
	buf = truth(buf, fForce, e.Force)
	if e.Submission != nil {
		buf = message(buf, fSubmission, e.Submission.append)
	}
	if e.Image != nil {
		buf = message(buf, fImage, e.Image.append)
	}
	buf = text(buf, fPlace, e.Place)
	buf = number(number(buf, fRank, e.Rank), fSince, uint64(e.Since))
	return appendHosts(text(buf, fSnapshot, string(e.Snapshot)), e.Hosts)
}

func (e *Exit) append(b []byte) []byte {
	b = number(b, 1, uint64(uint32(e.Code)))
	b = number(b, 2, uint64(uint32(e.Signal)))
	b = truth(b, 3, e.Core)
	b = number(b, 4, uint64(e.Cause))
	b = text(b, 5, e.Reason)
	b = number(b, 6, uint64(e.Wall))
	b = number(b, 7, uint64(e.User))
	b = number(b, 8, uint64(e.System))
	b = number(b, 9, uint64(e.MaxRSS))
	b = number(b, 10, uint64(e.Used.Peak))
	b = number(b, 11, uint64(e.Used.Read))
	b = number(b, 12, uint64(e.Used.Written))
	b = number(b, 13, uint64(e.Used.PeakGPU))
	return number(b, 14, uint64(e.Used.Disk))
}

func (s *Submission) append(b []byte) []byte {
	b = text(b, 1, s.Key)
	b = number(b, 2, uint64(s.Part))
	b = number(b, 3, uint64(s.Parts))
	b = text(b, 4, s.Owner)
	b = number(b, 5, uint64(s.UID))
	b = number(b, 6, uint64(s.GID))
	b = text(b, 7, s.Ad)
	b = number(b, 8, uint64(s.Count))
	for _, c := range s.Columns {
		b = message(b, 9, func(b []byte) []byte {
			b = text(b, 1, c.Name)
			for _, v := range c.Values {
				b = protowire.AppendString(protowire.AppendTag(b, 2, protowire.BytesType), v)
			}
			return b
		})
	}
	for _, w := range s.Waits {
		b = message(b, 10, func(b []byte) []byte { return w.append(b) })
	}
	b = text(b, 11, string(s.Secret))
	return truth(b, 12, s.Unasked)
}

func number(b []byte, field protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func truth(b []byte, field protowire.Number, v bool) []byte {
	if !v {
		return b
	}
	return number(b, field, 1)
}

func text(b []byte, field protowire.Number, v string) []byte {
	if v == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), v)
}

func message(b []byte, field protowire.Number, body func([]byte) []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), body(nil))
}
