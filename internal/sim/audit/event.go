package audit

import (
	"fmt"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// EventType says what was seen.
type EventType uint8

// What can be seen. In brackets: what of a [Event] says more of it. Job stands for all
// tasks of a job with Index [AllTasks].
const (
	IDShown          EventType = iota + 1 // a user was shown the id of a job [Key Job Tasks Resources: of each task]
	SubmissionStored                      // a submission is on a schedd's disk [Node Key Job Tasks Resources]
	// a schedd has read its disk [Node Jobs: what stands in its queue, or its history]
	Recovered
	Archived // a job has gone from a queue into the history [Job]
	Offered  // a machine lends so much of itself from now on [Node Resources]
	Leased   // a machine has given a claim [Node Claim Resources Until]
	Renewed  // the lease of a claim was made longer [Node Claim Until]
	Freed    // what a claim held is given to others [Node Claim]
	// an attempt is recorded, and so the next of its task [Job Index Attempt Node]
	Assigned
	// the first process of an attempt lives [Job Index Attempt Node Claim Resources]
	Began
	Ended // the last one has gone [Job Index Attempt Node Code]
	// the whole output of an attempt is at the submit side, on disk [Job Index Attempt;
	// Note: a file in it that nobody has asked for]
	OutputStored
	OutputLost // and is lost there [Job Index Attempt]
	Completed  // the end of a task is recorded, for good [Job Index Attempt Code]
	Removed    // a task is out of the queue, for good [Job Index]
	Reopened   // a user has a task that was over run again [Job Index]
	HeldByUser // a hold was acknowledged, or a removal [Job Index Detail: Removal, or empty]
	Released   // a release was asked for [Job Index]
	// a repair of a schedd's disk has named the job: what was recorded last of a task may
	// be lost [Job Index]
	RecordLost
	// by an entry of the log somebody uses so many cores from now on [Entry Until: the
	// ledger's time, Submitter Amount]
	UsageRateSet
	// what somebody has used, by a replica's ledger [Node Entry Until Submitter Amount:
	// core-seconds]
	UsageReported
	// a replica's state after an entry of the log, told before what is UsageRateSet by it
	// [Node Entry Digest Until: the ledger's time]
	Digested
	Slept         // nothing of a machine runs any more, as it sleeps [Node]
	Woke          // and does again [Node]
	OwnerCame     // somebody uses a machine himself from now on [Node]
	OwnerLeft     // and does no more [Node]
	GuardDied     // nobody sees whether somebody does: the guard of the machine has died [Node]
	GuardWatching // somebody sees it again, and has looked [Node]
	GuardMissed   // the startd of a machine knows that nothing is heard of its guard [Node]
	GuardHeard    // it has heard of it again [Node]
	Suspended     // an attempt that lives stands still [Job Index Attempt Node]
	Resumed       // and does no more [Job Index Attempt Node]
	Injected      // a fault [Node Detail]
	FaultsEnded   // the last fault is over
)

// Removal is the note of a removal that was acknowledged.
const Removal = "removal"

// AllTasks is the index that stands for every task of a job.
const AllTasks = -1

// Event is one thing that was seen.
type Event struct {
	At        time.Duration // since the beginning, by the observer's clock
	Type      EventType
	Node      string
	Key       string
	Job       roost.JobID
	Index     int
	Attempt   roost.AttemptNumber
	Tasks     int
	Resources roost.Resources
	Claim     uint64
	Until     time.Duration // by the observer's clock; of UsageRateSet and UsageReported: the ledger's, since whenever
	Jobs      []roost.JobID
	Entry     uint64 // of the replicated log
	Digest    uint64
	Submitter string
	Amount    float64
	Code      int32
	Detail    string
}

// taskID is the task that s speaks of.
func (s *Event) taskID() roost.TaskID { return s.Job.Task(s.Index) }

// subject names the job or task.
func (s *Event) subject() string {
	if s.Index == AllTasks {
		return s.Job.String()
	}
	return s.taskID().String()
}

// String is one line for people, without the time.
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
		return fmt.Sprintf("%s: gives claim %d with %s until %s", s.Node, s.Claim, resourceText(s.Resources),
			ClockText(s.Until))
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

// restText is String for what is not about attempts.
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
	return fmt.Sprintf("what(%d)", s.Type)
}

// ClockText writes a time since the beginning, in seconds to the millisecond.
func ClockText(t time.Duration) string { return fmt.Sprintf("%.3fs", t.Seconds()) }

// resourceText are what a task or a machine has, without what it has nothing of.
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

// jobList names jobs.
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
