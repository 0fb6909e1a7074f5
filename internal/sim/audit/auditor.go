package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// TimingRules are the times by which a pool is judged.
type TimingRules struct {
	// KillGrace is how long a machine may take to kill what it must: by then no process
	// outlives its lease (P10).
	KillGrace time.Duration

	// WakeTime is how long a machine that wakes may take until tasks whose leases are
	// over are dead. Until then they stand still, as since it fell asleep, and do not
	// count as living beside others (P4).
	WakeTime time.Duration

	// StartWait is how long after the last fault a task that could run may wait for a
	// machine that has room for it (P9).
	StartWait time.Duration

	// FreezeTime is how long a task may go on after the owner of its machine has touched
	// it, or it has woken (the design, §7).
	FreezeTime time.Duration
}

// DefaultRules are those of a real pool.
func DefaultRules() TimingRules {
	return TimingRules{KillGrace: 10 * time.Second, WakeTime: time.Second, StartWait: time.Minute,
		FreezeTime: 250 * time.Millisecond}
}

// Guarantee numbers what Roost promises, from 1. 0 is what its cores promise themselves.
type Guarantee int

// guarantees are the sentences of the design, §5, by number.
var guarantees = [...]string{
	0:  "no core's books contradict themselves, and a run comes out the same again",
	1:  "an id that was printed is never lost",
	2:  "one submit key, one job",
	3:  "exactly one recorded completion per task, and none starts after it",
	4:  "attempts of one task never overlap in time",
	5:  "leased resources of a machine never exceed what it has",
	6:  "usage is never negative, and every attempt is charged once",
	7:  "replicas at the same raft index hold the same state",
	8:  "after a hold or a removal is acknowledged no new attempt starts",
	9:  "within a minute of the last fault everything runnable moves again with no hand laid on",
	10: "no process of a task outlives its lease",
	11: "a reported completion has its output complete at the submit side",
	12: "while somebody uses his machine, or nothing is heard of the guard that would see him, no task runs on it",
}

// OwnerGuarantee is what is promised to those whose machines are lent, beside the eleven.
const OwnerGuarantee = Guarantee(len(guarantees) - 1)

// Promises is how many there are with a number.
const Promises = int(OwnerGuarantee) - 1

// Sentence is what is promised.
func (p Guarantee) Sentence() string { return guarantees[p] }

func (p Guarantee) String() string {
	if p == OwnerGuarantee {
		return "the promise to owners"
	}
	return fmt.Sprintf("P%d", int(p))
}

// CoreContradiction says that a core has found what its books must never say.
func (a *Auditor) CoreContradiction(at time.Duration, text string) {
	a.now = max(a.now, at)
	a.violations = append(a.violations,
		Violation{At: a.now, Description: text, History: slices.Clone(a.log[max(len(a.log)-maxHistory, 0):])})
}

// Violation is a promise that was broken.
type Violation struct {
	Guarantee   Guarantee
	At          time.Duration
	Description string  // how
	History     []Event // what was seen of the matter, what broke it last
}

// String tells the breach on several lines.
func (b *Violation) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%v is broken at %s: %s\n%v: %s\n", b.Guarantee, ClockText(b.At), b.Description, b.Guarantee,
		b.Guarantee.Sentence())
	for _, s := range b.History {
		fmt.Fprintf(&text, "  %10s  %v\n", ClockText(s.At), s)
	}
	return text.String()
}

// Auditor holds what was seen against the promises.
type Auditor struct {
	rules           TimingRules
	now             time.Duration
	log             []Event // all that was seen
	violations      []Violation
	jobs            map[roost.JobID]*auditedJob
	keys            map[string]roost.JobID // as they were shown or written, whichever came first
	machines        map[string]*auditedMachine
	entries         map[uint64]entryDigest
	lastEntry       uint64                   // the last of the log that anybody has
	ledgerTime      time.Duration            // the ledger's then
	accounts        map[string]*usageAccount // by who
	usageReports    map[usageReport]Event
	faultsEnded     time.Duration // when the last fault was over
	hasFaultsEnded  bool
	progressChecked time.Duration // when P9 was looked after last
	waiting         map[roost.TaskID]time.Duration
	nextExpiry      dueInstant // when somebody may next outlive a lease
	ownedNow        int        // machines that somebody uses himself
	guardMissing    int        // machines of whose guards nothing is heard
}

// New returns an auditor who has seen nothing.
func New(rules TimingRules) *Auditor {
	return &Auditor{
		rules: rules, jobs: map[roost.JobID]*auditedJob{}, keys: map[string]roost.JobID{},
		machines: map[string]*auditedMachine{}, entries: map[uint64]entryDigest{},
		accounts: map[string]*usageAccount{}, usageReports: map[usageReport]Event{},
		waiting: map[roost.TaskID]time.Duration{}, nextExpiry: noDeadline,
	}
}

// Violations lists the promises that were broken so far, in the order in which that was
// seen.
func (a *Auditor) Violations() []Violation { return a.violations }

// Log is all that was seen, in order. The caller only reads it.
func (a *Auditor) Log() []Event { return a.log }

// Observe takes in what was seen next. Time does not run backwards.
func (a *Auditor) Observe(s Event) {
	if s.At < a.now {
		panic(fmt.Sprintf("audit: %v was seen at %v, and it is %v", s, s.At, a.now))
	}
	a.checkTime(s.At)
	a.log = append(a.log, s)
	a.now = s.At
	switch s.Type {
	case IDShown, SubmissionStored, Recovered, Archived:
		a.checkJob(&s)
	case Offered, Leased, Renewed, Freed, Slept, Woke:
		a.checkMachine(&s)
	case OwnerCame, OwnerLeft, GuardDied, GuardWatching, GuardMissed, GuardHeard, Suspended, Resumed:
		a.checkOwner(&s)
	case Assigned, Began, Ended, OutputStored, OutputLost, Completed, Removed, Reopened, HeldByUser, Released,
		RecordLost:
		a.checkTask(&s)
	case UsageRateSet, UsageReported:
		a.checkUsage(&s)
	case Digested:
		a.checkDigest(&s)
	case Injected:
		a.hasFaultsEnded = false
	case FaultsEnded:
		a.hasFaultsEnded, a.faultsEnded, a.progressChecked = true, s.At, s.At
		clear(a.waiting)
	default:
		panic(fmt.Sprintf("audit: %v", s.Type))
	}
}

// Finish says that nothing more will be seen after at. Whatever was submitted must have
// ended by then, or be held.
func (a *Auditor) Finish(at time.Duration) {
	a.checkTime(at)
	a.now = at
	a.checkUnfinished()
}

// checkTime looks after what time alone can break.
func (a *Auditor) checkTime(at time.Duration) {
	a.checkExpired(at)
	a.checkDisturbed(at)
	a.checkProgress(at)
}

// addViolation notes that a promise is broken, with all that was seen of what keep says.
func (a *Auditor) addViolation(p Guarantee, matches func(*Event) bool, text string, args ...any) {
	b := Violation{Guarantee: p, At: a.now, Description: fmt.Sprintf(text, args...)}
	for i := range a.log {
		if matches(&a.log[i]) {
			b.History = append(b.History, a.log[i])
		}
	}
	if extra := len(b.History) - maxHistory; extra > 0 {
		b.History = slices.Delete(b.History, maxHistory/2, maxHistory/2+extra)
	}
	a.violations = append(a.violations, b)
}

// maxHistory bounds what is told of one breach: of more the middle is left out.
const maxHistory = 40

// taskHistory keeps what was seen of a task, and what was done to all of its job.
func taskHistory(t roost.TaskID) func(*Event) bool {
	return func(s *Event) bool {
		return s.Job == t.Job && (s.Type == IDShown || s.Type == SubmissionStored || s.Type == Archived ||
			s.Index == t.Index || s.Index == AllTasks && s.Type != Recovered)
	}
}

// jobHistory keeps what was seen of jobs as such.
func jobHistory(ids ...roost.JobID) func(*Event) bool {
	return func(s *Event) bool {
		for _, id := range ids {
			if s.Type == Recovered && s.Node == id.Host {
				return true
			}
			if s.Job == id && (s.Type == IDShown || s.Type == SubmissionStored || s.Type == Archived ||
				s.Type == Completed || s.Type == Removed) {
				return true
			}
		}
		return false
	}
}

// machineHistory keeps what was seen of a machine's books and of what ran there.
func machineHistory(node string) func(*Event) bool {
	return func(s *Event) bool {
		return s.Node == node && s.Type != UsageReported && s.Type != Digested && s.Type != Assigned &&
			s.Type != Renewed
	}
}

// byTask orders tasks.
func byTask(s, t roost.TaskID) int {
	return cmp.Or(s.Job.Compare(t.Job), cmp.Compare(s.Index, t.Index))
}
