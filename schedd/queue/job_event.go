package queue

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// EventType says what happened.
type EventType uint8

// What can happen to jobs. The numbers stand in logs on disk: they are never used for
// anything else.
const (
	Submitted EventType = iota + 1
	Assigned            // an attempt is recorded, on its way to a machine
	Started             // its processes run
	Ended               // its processes are gone, its output is home
	Lost                // it is gone without an exit status
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
	OwnerSuspended   // a running task stands still for the owner of its machine
	OwnerResumed     // and does not any more
	Signalled        // running tasks are sent a signal
	Requeued         // active tasks are to be killed and run again
	Altered          // it asks for something else
	Ordered          // its place among others is another
	Returned         // a job of the history is in the queue again; what is done with it comes next
	RunRequested     // tasks that wait ask for a machine before all others
	RunDenied        // and do not any more: none can take them now
)

var eventTypeNames = [...]string{
	Submitted: "submitted", Assigned: "assigned", Started: "started", Ended: "ended", Lost: "lost", Held: "held",
	Released:         "released",
	RemovalRequested: "removed", Dropped: "dropped", Retried: "retried", Unblocked: "unblocked", Purged: "purged",
	Checkpointed: "checkpointed", CheckpointFailed: "checkpoint-failed", CheckpointBad: "checkpoint-bad",
	Suspended: "suspended", Resumed: "resumed",
	Admitted:       "admitted",
	OwnerSuspended: "suspended", OwnerResumed: "resumed", Signalled: "signalled", Requeued: "requeued",
	Altered: "altered", Ordered: "reordered", Returned: "returned",
	RunRequested: "run-now", RunDenied: "run-denied",
}

func (w EventType) String() string {
	if int(w) < len(eventTypeNames) && eventTypeNames[w] != "" {
		return eventTypeNames[w]
	}
	return fmt.Sprintf("what(%d)", uint8(w))
}

// JobEvent is a fact about one job. Which fields are set depends on What.
type JobEvent struct {
	Type EventType
	Time int64 // unix nanoseconds
	Job  uint64
	// Held, Released, RemovalRequested, Dropped, Retried, Suspended, Resumed, Signalled,
	// Requeued, RunRequested, RunDenied: which tasks; none means all
	Ranges []IndexRange
	Index  int // Assigned, Started, Ended, Lost, OwnerSuspended, OwnerResumed, and of checkpoints
	// Held: where the job's record was damaged, the highest number that an attempt of it
	// may have had; 0 otherwise
	Attempt roost.AttemptNumber
	Node    string // Assigned, OwnerSuspended, OwnerResumed
	Address string
	Claim   uint64
	// Started: what the attempt was given of its node, in a form that the queue does not
	// look into; empty for nothing to tell
	Placement   string
	Exit        *AttemptExit // Ended
	RequestedBy string       // who asked; empty for Roost itself
	Reason      string
	// RemovalRequested: without notice; Held: also what is held already, see LockTasks;
	// Ended, Lost: a task that may not be run twice ends with its attempt, and is not
	// held
	Force bool
	// Submitted; Altered: what changes, and as an ad of changes, and counts of 0 for what
	// does not
	Submission *SubmittedJob
	Image      *CheckpointImage // Checkpointed, CheckpointBad; Assigned and Started: what the attempt goes on from
	OrderRank  uint64           // Ordered: its place
	OrderTime  int64            // Ordered: its age, unix nanoseconds
	Snapshot   []byte           // Returned: the job, as Queue.Snapshot has it
	Hosts      []string         // RunRequested: the only machines for it; none: any
}

// AttemptExit is how an attempt ended.
type AttemptExit struct {
	Code   int32
	Signal int32
	Core   bool
	Cause  ExitCause
	Reason string
	Wall   int64 // nanoseconds
	User   int64
	System int64
	MaxRSS int64 // bytes, of its largest process
	Used   ResourceUsage
}

// ResourceUsage is what an attempt used beside time, in bytes, as its machine measured
// it; 0 where it could not. On their way into the queue the amounts are rounded up to
// whole KiB.
type ResourceUsage struct {
	Peak    int64 // memory that cannot be dropped, at its highest
	Read    int64 // from block devices
	Written int64
	PeakGPU int64 // memory of all its GPUs together, at its highest
	Disk    int64 // in its scratch directory
}

// ExitCause says why an attempt ended. The numbers are those of the wire.
type ExitCause uint8

// The causes.
const (
	CauseExited ExitCause = iota
	CauseWalltime
	CauseRemoval
	CauseVacate
	CauseLease
	CauseLaunch
	CauseMachine
	CauseMemory
	CauseGPUMemory
	CauseDisk
	CauseRestore    // the image that it was to go on from could not be restored
	CausePreemption // its place was needed by somebody who comes before it
	CauseCPUTime
	CauseVirtualMemory // its processes addressed too much memory
	CausePrologue      // the prologue of its machine would not have it
)

// IsSuccess reports whether the program ended by itself with exit code 0.
func (e *AttemptExit) IsSuccess() bool { return e.Cause == CauseExited && e.Code == 0 && e.Signal == 0 }

// SubmittedJob is what was submitted, as it is kept.
type SubmittedJob struct {
	Key               string
	PartIndex         int // of the submission that had this key
	PartCount         int
	Owner             string
	UID               uint32
	GID               uint32
	Ad                string
	Count             int
	Columns           []jobad.TaskColumn
	Dependencies      []JobDependency // what it says of other jobs, as far as that was not met at submit
	DeferredAdmission bool            // nobody could say whether quotas allow it
	// that the keys of the images of its tasks are derived from; it is shown to nobody
	Secret []byte
}

// IndexRange is the indexes First to Last, both included.
type IndexRange struct{ First, Last int }

// The fields of an event on disk, as protobuf would lay them out: unknown ones are
// skipped, so an older Roost can read what a newer one wrote.
const (
	fType = iota + 1
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
	fPlacement
	fRank
	fSince
	fSnapshot
	fHosts
)

// AppendEvent adds the event's form on disk to buf.
func AppendEvent(buf []byte, e *JobEvent) []byte {
	buf = appendNumber(buf, fType, uint64(e.Type))
	buf = appendNumber(buf, fTime, uint64(e.Time))
	buf = appendNumber(buf, fJob, e.Job)
	for _, r := range e.Ranges {
		buf = appendMessage(buf, fRange, func(b []byte) []byte {
			return appendNumber(appendNumber(b, 1, uint64(r.First)), 2, uint64(r.Last))
		})
	}
	buf = appendNumber(buf, fIndex, uint64(e.Index))
	buf = appendNumber(buf, fAttempt, uint64(e.Attempt))
	buf = appendText(buf, fNode, e.Node)
	buf = appendText(buf, fAddress, e.Address)
	buf = appendNumber(buf, fClaim, e.Claim)
	if e.Exit != nil {
		buf = appendMessage(buf, fExit, e.Exit.append)
	}
	buf = appendText(buf, fBy, e.RequestedBy)
	buf = appendText(buf, fReason, e.Reason)
	buf = appendBool(buf, fForce, e.Force)
	if e.Submission != nil {
		buf = appendMessage(buf, fSubmission, e.Submission.append)
	}
	if e.Image != nil {
		buf = appendMessage(buf, fImage, e.Image.append)
	}
	buf = appendText(buf, fPlacement, e.Placement)
	buf = appendNumber(appendNumber(buf, fRank, e.OrderRank), fSince, uint64(e.OrderTime))
	return appendHosts(appendText(buf, fSnapshot, string(e.Snapshot)), e.Hosts)
}

func (e *AttemptExit) append(b []byte) []byte {
	b = appendNumber(b, 1, uint64(uint32(e.Code)))
	b = appendNumber(b, 2, uint64(uint32(e.Signal)))
	b = appendBool(b, 3, e.Core)
	b = appendNumber(b, 4, uint64(e.Cause))
	b = appendText(b, 5, e.Reason)
	b = appendNumber(b, 6, uint64(e.Wall))
	b = appendNumber(b, 7, uint64(e.User))
	b = appendNumber(b, 8, uint64(e.System))
	b = appendNumber(b, 9, uint64(e.MaxRSS))
	b = appendNumber(b, 10, uint64(e.Used.Peak))
	b = appendNumber(b, 11, uint64(e.Used.Read))
	b = appendNumber(b, 12, uint64(e.Used.Written))
	b = appendNumber(b, 13, uint64(e.Used.PeakGPU))
	return appendNumber(b, 14, uint64(e.Used.Disk))
}

func (s *SubmittedJob) append(b []byte) []byte {
	b = appendText(b, 1, s.Key)
	b = appendNumber(b, 2, uint64(s.PartIndex))
	b = appendNumber(b, 3, uint64(s.PartCount))
	b = appendText(b, 4, s.Owner)
	b = appendNumber(b, 5, uint64(s.UID))
	b = appendNumber(b, 6, uint64(s.GID))
	b = appendText(b, 7, s.Ad)
	b = appendNumber(b, 8, uint64(s.Count))
	for _, c := range s.Columns {
		b = appendMessage(b, 9, func(b []byte) []byte {
			b = appendText(b, 1, c.Name)
			for _, v := range c.Values {
				b = protowire.AppendString(protowire.AppendTag(b, 2, protowire.BytesType), v)
			}
			return b
		})
	}
	for _, w := range s.Dependencies {
		b = appendMessage(b, 10, func(b []byte) []byte { return w.append(b) })
	}
	b = appendText(b, 11, string(s.Secret))
	return appendBool(b, 12, s.DeferredAdmission)
}

func appendNumber(b []byte, field protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func appendBool(b []byte, field protowire.Number, v bool) []byte {
	if !v {
		return b
	}
	return appendNumber(b, field, 1)
}

func appendText(b []byte, field protowire.Number, v string) []byte {
	if v == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), v)
}

func appendMessage(b []byte, field protowire.Number, body func([]byte) []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), body(nil))
}
