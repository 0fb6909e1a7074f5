package eventlog

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/flow"
	"github.com/roost-batch/roost/schedd/queue/update"
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
	NodesReleased    // a gang that runs gives machines back
	BecameReady      // a task of a service: its checks pass, or it runs and has none
	BecameUnready    // such a task is not ready any more; ServiceState says how it is
	Ticked           // a run of a schedule was made
	TickSkipped      // or was not
	BackoffEnded     // such a task has waited for its restart
	Revised          // a service is to run another revision of itself
	UpdateChanged    // its update is in another state
	Replaced         // tasks of a service get the revision that is wanted; active ones end first
	Evicted          // an attempt is ended because its machine is drained
	SurgeChanged     // a service has another number of tasks beyond its own, for an update
	ResizeRequested  // the live attempts of tasks are to become larger or smaller where they run
	Resized          // such an attempt has its new size
	ResizeRefused    // or stays as it is; Reason is the machine's
	Scaled           // a service is to have another number of tasks, as its load asks for
	FlowAdvanced     // something has happened to a flow, or begins in it
	GangSaved        // an epoch of a gang is committed: the images of all of its tasks are home
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
	RunRequested: "run-now", RunDenied: "run-denied", NodesReleased: "nodes-released",
	BecameReady: "ready", BecameUnready: "unready", BackoffEnded: "restart-due",
	Ticked: "ticked", TickSkipped: "skipped",
	Revised: "revised", UpdateChanged: "update", Replaced: "replaced", Evicted: "evicted", SurgeChanged: "surge",
	ResizeRequested: "resizing", Resized: "resized", ResizeRefused: "resize-refused",
	Scaled: "scaled", FlowAdvanced: "flow", GangSaved: "gang-saved",
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
	// Requeued, RunRequested, RunDenied, Replaced, ResizeRequested: which tasks; none
	// means all; NodesReleased: the secondary tasks there
	Ranges []IndexRange
	// Assigned, Started, Ended, Lost, OwnerSuspended, OwnerResumed, BecameReady,
	// BecameUnready, BackoffEnded, Evicted, Resized, ResizeRefused, and of checkpoints;
	// NodesReleased: the primary task
	Index int
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
	// held; BecameUnready: the attempt is ended for that
	Force bool
	// Submitted; Altered, Revised, Scaled: what changes, and as an ad of changes, and
	// counts of 0 for what does not; SurgeChanged: the count of tasks with those of the
	// surge
	Submission *SubmittedJob
	Image      *CheckpointImage // Checkpointed, CheckpointBad; Assigned and Started: what the attempt goes on from
	OrderRank  uint64           // Ordered: its place
	OrderTime  int64            // Ordered: its age, unix nanoseconds
	Snapshot   []byte           // Returned: the job, as Queue.Snapshot has it
	// RunRequested: the only machines for it, none: any; NodesReleased: those given back
	Hosts []string
	// Started: whose attempts were told to end so that the claim had room
	Displaced    []roost.PreemptionParty
	ServiceState roost.ServiceState // BecameReady, BecameUnready
	HealthCheck  string             // likewise: the name of the check that says so; empty for none
	Instant      int64              // Ticked, TickSkipped: the last instant that is decided, unix seconds
	Run          uint64             // Ticked: the job that was made
	Update       *update.Update     // Revised, UpdateChanged: as it is from then on
	Planned      bool               // Replaced, Evicted: the tasks were ready, and the budget is charged
	// Assigned, of a task inside an alloc set: the index of its alloc, and the attempt
	// that holds that; 0: the task is inside none
	AllocIndex   int
	AllocAttempt roost.AttemptNumber
	// BecameUnready with Force: the end counts as one of the task's own, and the next
	// attempt waits. Events of older schedds have it false.
	CountsRestart bool
	FlowEvents    []flow.FlowEvent // FlowAdvanced
	Epoch         uint64           // GangSaved: the epoch, of the gang whose first task is Index
}

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
	fDisplaced
	fServiceState
	fHealthCheck
	fInstant
	fRun
	fUpdate
	fPlanned
	fAllocIndex
	fAllocAttempt
	fCountsRestart
	fFlowEvents
	fEpoch
)

// AppendEvent adds the event's form on disk to buf.
func AppendEvent(buf []byte, e *JobEvent) []byte {
	buf = appendNumber(buf, fType, uint64(e.Type))
	buf = appendNumber(buf, fTime, uint64(e.Time))
	buf = appendNumber(buf, fJob, e.Job)
	buf = appendRanges(buf, fRange, e.Ranges)
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
	buf = appendHosts(appendText(buf, fSnapshot, string(e.Snapshot)), e.Hosts)
	buf = appendNumber(appendNumber(buf, fInstant, uint64(e.Instant)), fRun, e.Run)
	for _, p := range e.Displaced {
		buf = appendMessage(buf, fDisplaced, func(b []byte) []byte { return appendParty(b, p) })
	}
	buf = appendText(appendNumber(buf, fServiceState, uint64(e.ServiceState)), fHealthCheck, e.HealthCheck)
	if e.Update != nil {
		buf = appendMessage(buf, fUpdate, func(b []byte) []byte { return appendUpdate(b, e.Update) })
	}
	buf = appendNumber(appendNumber(buf, fAllocIndex, uint64(e.AllocIndex)), fAllocAttempt, uint64(e.AllocAttempt))
	buf = appendBool(appendBool(buf, fPlanned, e.Planned), fCountsRestart, e.CountsRestart)
	if len(e.FlowEvents) > 0 {
		buf = appendMessage(buf, fFlowEvents, e.appendFlow)
	}
	return appendNumber(buf, fEpoch, e.Epoch)
}

// appendHosts adds the machines that an event names.
func appendHosts(b []byte, hosts []string) []byte {
	for _, h := range hosts {
		b = protowire.AppendString(protowire.AppendTag(b, fHosts, protowire.BytesType), h)
	}
	return b
}
