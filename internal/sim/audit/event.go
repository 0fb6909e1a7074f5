package audit

import (
	"fmt"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// EventType is the type of an event.
type EventType uint8

// The types of events. The brackets list the fields of [Event] that a type uses. With
// Index [AllTasks], Job stands for all tasks of the job.
const (
	IDShown EventType = iota + 1 // a user was shown the id of a job [Key Job Tasks Resources: of each task]
	// a submission is on a schedd's disk [Node Key Job Tasks Resources Inside: not 0 if
	// its tasks are to run inside allocs; Schedule; Of: the job of whose schedule it is a
	// run, Instant: for which it is made]
	SubmissionStored
	// a schedd has read its disk [Node Jobs: those in its job queue or history]
	Recovered
	Archived // a job has moved from the job queue into the history [Job]
	Offered  // a machine offers these resources from now on [Node Resources]
	// a machine has granted a claim, or it has another size now [Node Claim Resources
	// Until Inside Submitter]
	Leased
	Renewed // the lease of a claim was renewed [Node Claim Until]
	Freed   // the resources of a claim are free for others [Node Claim]
	// the schedd has recorded the next attempt of a task [Job Index Attempt Node Until:
	// by the schedd's clock]
	Assigned
	// the first process of an attempt lives [Job Index Attempt Node Claim Resources
	// Inside Detail: the environment of its program]
	Began
	Ended // the last process of an attempt has ended [Job Index Attempt Node Code]
	// the whole output of an attempt is on disk at the submit side [Job Index Attempt;
	// Note: a file in it that nobody requested]
	OutputStored
	OutputLost // the output at the submit side is lost [Job Index Attempt]
	Completed  // the completion of a task is recorded durably [Job Index Attempt Code]
	Removed    // the removal of a task is recorded durably [Job Index]
	Reopened   // a user runs a finished task again [Job Index]
	HeldByUser // a hold or removal was acknowledged [Job Index Detail: Removal, or empty]
	Released   // a user released a task [Job Index]
	// a repair of a schedd's disk has named the job: the last records of a task may be
	// lost [Job Index]
	RecordLost
	// by an entry of the log a submitter uses this many cores from now on [Entry Until:
	// ledger time, Submitter Amount]
	UsageRateSet
	// the usage of a submitter in a replica's ledger [Node Entry Until Submitter Amount:
	// core-seconds]
	UsageReported
	// a replica's state after an entry of the log; comes before the UsageRateSet of the
	// entry [Node Entry Digest Until: ledger time; Key: the queue whose log it is, empty
	// for that of the central managers]
	Digested
	Slept         // a machine suspends and nothing runs there any more [Node]
	Woke          // the machine runs again [Node]
	OwnerCame     // the machine owner begins to use the machine [Node]
	OwnerLeft     // the machine owner stops using the machine [Node]
	GuardDied     // the guard has died and nothing observes the owner [Node]
	GuardWatching // the guard observes the owner again [Node]
	GuardMissed   // the startd knows that it has lost contact with the guard [Node]
	GuardHeard    // the startd has contact with the guard again [Node]
	Suspended     // a live attempt is frozen [Job Index Attempt Node]
	Resumed       // a frozen attempt runs again [Job Index Attempt Node]
	// a fault was injected [Node Detail; Peer Until: what these nodes do may come late
	// until then]
	Injected
	FaultsEnded   // the last fault is over
	ServiceStored // a submission on disk is of a service [Job Service]
	// the update of a service goes on, or begins to [Job Detail: the environment that its
	// tasks are to get, Resources: the size likewise, Revision: the number of that]
	UpdateMoves
	UpdateWaits // it waits for its user, or is given up [Job Detail: its state]
	UpdateDone  // it has ended, and every task has these [Job Detail Resources]
	// a ready task is recorded to be stopped, for another revision or machine, or for a
	// check [Job Index Detail: OfUpdate, or empty]
	PlannedStop
	// a task that is down, or on its way to be, is recorded to be of another revision or
	// for another machine [Job Index Detail: OfUpdate, or empty]
	Replaced
	StopRequested // a user's hold or removal of tasks of a service is recorded [Job Index]
	TaskFailed    // such a task is recorded as failed [Job Index]
	TaskReady     // an attempt of a service is recorded as ready [Job Index Attempt]
	// an attempt of a service is recorded to have ended by itself [Job Index Attempt
	// Until: by the schedd's clock]
	EndedByItself
	// a task of a service is recorded as not ready any more, or without an attempt [Job
	// Index Attempt: if it has ended, or its machine is silent]
	TaskUnready
	// so many tasks of a service are to run from now on [Job Tasks: that its user or its
	// load asks for, Extra: beyond them]
	CountSet
	// the limits of a claim, and of what runs on it, are these from now on [Node Claim
	// Resources]
	Sized
	// the answer of a machine to a resize is recorded, after which an attempt has this
	// size by the job queue [Job Index Attempt Resources]
	SizeRecorded
	// the tasks of a service are to get this revision [Job Revision Digest: of its ad,
	// Tasks]
	RevisionSet
	RunDecided // an instant of a schedule is recorded to have its run [Job Instant Of: the run]
	RunSkipped // instants up to that one are recorded to have none [Job Instant Detail]
	// the job of a part of a flow is on disk [Job Key Tasks Resources Of: the flow,
	// Index: the node, Attempt: of the node]
	FlowPartStored
	// an attempt of a node is recorded to have begun [Job Index Attempt Of: its job]
	FlowPartBegun
	FlowPartEnded // one has ended [Job Index Attempt Code]
	FlowEnded     // a flow has ended by itself [Job Code]
	NamesServed   // a collector begins to serve names, and has none [Node]
	NamesGone     // a collector serves none any more [Node]
	// the name of a task points to an attempt from now on, or to none [Node: the
	// collector, Job Index Attempt: 0 for none, Detail: the state of the attempt there]
	NameSet
)

// Removal is the Detail of HeldByUser for a removal.
const Removal = "removal"

// OfUpdate is the Detail of PlannedStop and Replaced for another revision.
const OfUpdate = "another revision"

// AllTasks is the index that stands for every task of a job.
const AllTasks = -1

// Event is one observation.
type Event struct {
	At        time.Duration // since the beginning, by the observer's clock
	Type      EventType
	Node      string
	Key       string
	Job       roost.JobID
	Index     int
	Attempt   roost.AttemptNumber
	Tasks     int
	Extra     int
	Resources roost.Resources
	Claim     uint64
	Inside    uint64 // the claim of the alloc inside which Claim is; 0: it is a part of the machine
	// by the observer's clock; for UsageRateSet and UsageReported by the ledger's, for
	// Assigned and EndedByItself by the schedd's, both of any origin
	Until     time.Duration
	Service   *ServiceTerms
	Jobs      []roost.JobID
	Entry     uint64 // index in the replicated log
	Digest    uint64
	Revision  uint32
	Of        roost.JobID
	Instant   int64 // unix seconds
	Schedule  *ScheduleTerms
	Flow      *FlowTerms // of SubmissionStored: the job is a flow
	Submitter string
	Amount    float64
	Code      int32
	Detail    string
	Peer      string
}

// taskID returns the task that the event is about.
func (s *Event) taskID() roost.TaskID { return s.Job.Task(s.Index) }

// subject returns the id of the event's job or task as text.
func (s *Event) subject() string {
	if s.Index == AllTasks {
		return s.Job.String()
	}
	return s.taskID().String()
}

// String describes the event in one line, without its time.
func (s Event) String() string {
	try := fmt.Sprintf("attempt %d of %s", s.Attempt, s.subject())
	switch s.Type {
	case IDShown:
		return fmt.Sprintf("a user is shown the id %v for the key %s", s.Job, s.Key)
	case SubmissionStored:
		return fmt.Sprintf("%s: job %v is on disk, with the key %s and %d tasks", s.Node, s.Job, s.Key, s.Tasks)
	case Recovered:
		return fmt.Sprintf("%s: its disk is read, and has %s", s.Node, jobList(s.Jobs))
	case Archived:
		return fmt.Sprintf("job %v leaves the queue", s.Job)
	case Offered:
		return fmt.Sprintf("%s: lends %s", s.Node, resourceText(s.Resources))
	case Leased:
		return fmt.Sprintf("%s: gives claim %d with %s until %s%s", s.Node, s.Claim, resourceText(s.Resources),
			ClockText(s.Until), s.insideText())
	case Renewed:
		return fmt.Sprintf("%s: claim %d lives on until %s", s.Node, s.Claim, ClockText(s.Until))
	case Freed:
		return fmt.Sprintf("%s: what claim %d held is free", s.Node, s.Claim)
	case Assigned:
		return fmt.Sprintf("%s is recorded for %s", try, s.Node)
	case Began:
		return fmt.Sprintf("%s: %s begins on claim %d", s.Node, try, s.Claim)
	case Ended:
		return fmt.Sprintf("%s: %s has no process any more, code %d", s.Node, try, s.Code)
	case OutputStored:
		return fmt.Sprintf("all output of %s is at the submit side", try)
	case OutputLost:
		return fmt.Sprintf("the output of %s is lost at the submit side", try)
	case Completed:
		return fmt.Sprintf("%s is recorded as its task's last, code %d", try, s.Code)
	default:
		return s.restText()
	}
}

// insideText says inside which alloc the claim of an event is.
func (s *Event) insideText() string {
	if s.Inside == 0 {
		return ""
	}
	return fmt.Sprintf(", inside claim %d", s.Inside)
}

// restText is String for events that are not about attempts.
func (s *Event) restText() string {
	switch s.Type {
	case Removed:
		return fmt.Sprintf("%s is out of the queue", s.subject())
	case Reopened:
		return fmt.Sprintf("%s is to run again", s.subject())
	case HeldByUser:
		return fmt.Sprintf("a user is told that %s starts no more%s", s.subject(),
			strings.TrimSuffix(", for its "+s.Detail, ", for its "))
	case Released:
		return fmt.Sprintf("a user lets %s go on", s.subject())
	case RecordLost:
		return fmt.Sprintf("what was recorded last of %s may be lost", s.subject())
	case UsageRateSet:
		return fmt.Sprintf("entry %d: %s uses %g cores from %s on", s.Entry, s.Submitter, s.Amount, ClockText(s.Until))
	case UsageReported:
		return fmt.Sprintf("%s: after entry %d %s has used %.3f core-seconds by %s", s.Node, s.Entry, s.Submitter,
			s.Amount, ClockText(s.Until))
	case Digested:
		return fmt.Sprintf("%s: after entry %d its state is %016x", s.Node, s.Entry, s.Digest)
	case Slept:
		return s.Node + ": sleeps"
	case Woke:
		return s.Node + ": wakes"
	case OwnerCame:
		return s.Node + ": somebody sits down at it"
	case OwnerLeft:
		return s.Node + ": he leaves"
	case GuardDied:
		return s.Node + ": its guard dies"
	case GuardWatching:
		return s.Node + ": a guard has looked at it"
	case GuardMissed:
		return s.Node + ": nothing is heard of its guard"
	case GuardHeard:
		return s.Node + ": its guard is heard of again"
	case Suspended:
		return fmt.Sprintf("%s: attempt %d of %s stands still", s.Node, s.Attempt, s.subject())
	case Resumed:
		return fmt.Sprintf("%s: attempt %d of %s goes on", s.Node, s.Attempt, s.subject())
	case Injected:
		return strings.TrimPrefix(s.Node+": ", ": ") + s.Detail
	case FaultsEnded:
		return "no more faults from now on"
	}
	return s.serviceText()
}

// serviceText is String for events about services.
func (s *Event) serviceText() string {
	switch s.Type {
	case ServiceStored:
		return fmt.Sprintf("job %v is a service", s.Job)
	case UpdateMoves:
		return fmt.Sprintf("job %v: its tasks are to get %s", s.Job, s.Detail)
	case UpdateWaits:
		return fmt.Sprintf("job %v: its update is %s", s.Job, s.Detail)
	case UpdateDone:
		return fmt.Sprintf("job %v: all its tasks have %s", s.Job, s.Detail)
	case PlannedStop:
		return fmt.Sprintf("%s is to be stopped for another revision", s.subject())
	case Replaced:
		return fmt.Sprintf("%s is of another revision", s.subject())
	case StopRequested:
		return fmt.Sprintf("%s is to stop, as its user asks", s.subject())
	case TaskFailed:
		return fmt.Sprintf("%s has failed in the update", s.subject())
	case TaskReady:
		return fmt.Sprintf("attempt %d of %s is ready", s.Attempt, s.subject())
	case EndedByItself:
		return fmt.Sprintf("attempt %d of %s has ended by itself", s.Attempt, s.subject())
	case TaskUnready:
		return fmt.Sprintf("%s is not ready", s.subject())
	case CountSet:
		return fmt.Sprintf("job %v is to have %d tasks, and %d more", s.Job, s.Tasks, s.Extra)
	case Sized:
		return fmt.Sprintf("%s: claim %d is limited to %s", s.Node, s.Claim, resourceText(s.Resources))
	case SizeRecorded:
		return fmt.Sprintf("attempt %d of %s is recorded with %s", s.Attempt, s.subject(), resourceText(s.Resources))
	case RevisionSet:
		return fmt.Sprintf("job %v: its tasks are to get revision %d, whose ad has the digest %016x, and are %d", s.Job,
			s.Revision, s.Digest, s.Tasks)
	case RunDecided:
		return fmt.Sprintf("job %v: %v is its run of %s", s.Job, s.Of, instantText(s.Instant))
	case RunSkipped:
		return fmt.Sprintf("job %v: it has no run of %s: %s", s.Job, instantText(s.Instant), s.Detail)
	}
	return s.flowText()
}

// flowText is String for events about flows.
func (s *Event) flowText() string {
	switch s.Type {
	case FlowPartStored:
		return fmt.Sprintf("%s: %v is on disk, attempt %d of node %d of %v", s.Node, s.Job, s.Attempt, s.Index, s.Of)
	case FlowPartBegun:
		return fmt.Sprintf("job %v: attempt %d of node %d has begun, with %v", s.Job, s.Attempt, s.Index, s.Of)
	case FlowPartEnded:
		return fmt.Sprintf("job %v: attempt %d of node %d has ended with %d", s.Job, s.Attempt, s.Index, s.Code)
	case FlowEnded:
		return fmt.Sprintf("job %v: the flow has ended with %d", s.Job, s.Code)
	}
	return s.nameText()
}

// nameText is String for events about names.
func (s *Event) nameText() string {
	switch s.Type {
	case NamesServed:
		return s.Node + ": it serves names, and has none yet"
	case NamesGone:
		return s.Node + ": its names are gone"
	case NameSet:
		if s.Attempt == 0 {
			return fmt.Sprintf("%s: the name of %s points to nothing", s.Node, s.subject())
		}
		return fmt.Sprintf("%s: the name of %s points to attempt %d, which is %s", s.Node, s.subject(), s.Attempt,
			s.Detail)
	}
	return fmt.Sprintf("what(%d)", s.Type)
}

// ClockText formats a time since the beginning in seconds, with milliseconds.
func ClockText(t time.Duration) string { return fmt.Sprintf("%.3fs", t.Seconds()) }

// resourceText formats resources and leaves out those that are zero.
func resourceText(r roost.Resources) string {
	text := fmt.Sprintf("%v cores", r.CPU)
	if r.Memory != 0 {
		text += fmt.Sprintf(", %v", r.Memory)
	}
	if r.GPUs != 0 {
		text += fmt.Sprintf(", %d GPUs", r.GPUs)
	}
	return text
}

// jobList formats a list of job ids.
func jobList(jobs []roost.JobID) string {
	if len(jobs) == 0 {
		return "no job"
	}
	names := make([]string, len(jobs))
	for i, j := range jobs {
		names[i] = j.String()
	}
	return strings.Join(names, ", ")
}
