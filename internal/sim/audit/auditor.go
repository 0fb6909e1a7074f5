package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// TimingRules holds the time limits that the auditor applies.
type TimingRules struct {
	// KillGrace is how long a machine may take to kill processes after their lease (P10).
	KillGrace time.Duration

	// WakeTime is how long a machine that wakes may take to kill tasks whose leases have
	// expired. Until then they are frozen, as they were while it slept, and do not
	// overlap with other attempts (P4).
	WakeTime time.Duration

	// StartWait is how long after the last fault a runnable task may wait while a machine
	// has room for it (P9).
	StartWait time.Duration

	// FreezeTime is how long tasks may run on after the machine owner comes back or the
	// machine wakes (the design, §7).
	FreezeTime time.Duration

	// NameDelay is how long a name may point to an attempt that has ended. Then a machine
	// that says nothing is known to be silent (S6).
	NameDelay time.Duration
}

// DefaultRules returns the time limits of a real pool.
func DefaultRules() TimingRules {
	return TimingRules{KillGrace: 10 * time.Second, WakeTime: time.Second, StartWait: time.Minute,
		FreezeTime: 250 * time.Millisecond, NameDelay: roost.SilentAfter + 2*time.Second}
}

// Guarantee is the number of a guarantee, from 1. 0 stands for the cores' own invariants.
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
	13: "no more tasks of a service are down by plan than may be",
	14: "after an update every task is what it was to become",
	15: "a restart waits as long as it has to, and there are no more on a claim than may be",
	16: "when the faults are over every update ends",
	17: "a service has no more tasks than were asked for and its updates may add",
	18: "what a claim has is the same at its machine and by the job queue, and all claims fit into the machine",
	19: "a service whose tasks follow its load in number or size stays from its min to its max, whatever is seen",
	20: "an update stops no more running tasks than it may",
	21: "an instant of a schedule has one run",
	22: "to undo an update brings back what was before, bit for bit",
	23: "no name points to an attempt for long after its end",
	24: "a ready task has its name soon at every collector that lives",
	25: "two attempts of a task live together only where its job allows that, and its name points to the newest",
	26: "each part of a flow runs once and after what it waits for, and a flow ends as without faults",
}

// OwnerGuarantee is the guarantee to machine owners, in addition to the eleven of the
// design.
const OwnerGuarantee Guarantee = 12

// Guarantees is the number of guarantees that have a number in the design.
const Guarantees = int(OwnerGuarantee) - 1

// Sentence returns the text of a guarantee.
func (p Guarantee) Sentence() string { return guarantees[p] }

func (p Guarantee) String() string {
	switch p {
	case OwnerGuarantee:
		return "the promise to owners"
	case BudgetGuarantee:
		return "S1"
	case RevisionGuarantee:
		return "S4"
	case BackoffGuarantee:
		return "S13"
	case UpdateGuarantee:
		return "S14"
	case SurgeGuarantee:
		return "S2"
	case SizeGuarantee:
		return "S9"
	case ScaleGuarantee:
		return "S15"
	case DisruptionGuarantee:
		return "S3"
	case ScheduleGuarantee:
		return "S10"
	case UndoGuarantee:
		return "S5"
	case EndedNameGuarantee:
		return "S6"
	case ReadyNameGuarantee:
		return "S7"
	case NewestNameGuarantee:
		return "S8"
	case FlowGuarantee:
		return "F1"
	}
	return fmt.Sprintf("P%d", int(p))
}

// CoreContradiction records that a core has found one of its invariants broken.
func (a *Auditor) CoreContradiction(at time.Duration, text string) {
	a.now = max(a.now, at)
	a.violations = append(a.violations,
		Violation{At: a.now, Description: text, History: slices.Clone(a.log[max(len(a.log)-maxHistory, 0):])})
}

// Violation is an event that contradicts a guarantee.
type Violation struct {
	Guarantee   Guarantee
	At          time.Duration
	Description string  // what happened
	History     []Event // the related events; the last one is the violation
}

// String describes the violation in several lines.
func (b *Violation) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%v is broken at %s: %s\n%v: %s\n", b.Guarantee, ClockText(b.At), b.Description, b.Guarantee,
		b.Guarantee.Sentence())
	for _, s := range b.History {
		fmt.Fprintf(&text, "  %10s  %v\n", ClockText(s.At), s)
	}
	return text.String()
}

// Auditor checks events against the guarantees.
type Auditor struct {
	rules           TimingRules
	now             time.Duration
	log             []Event // all events so far
	violations      []Violation
	jobs            map[roost.JobID]*auditedJob
	keys            map[string]roost.JobID // submit keys, as first shown to a user or stored
	machines        map[string]*auditedMachine
	entries         map[logEntry]entryDigest
	lastEntry       uint64                   // highest index of a log entry that any replica has
	ledgerTime      time.Duration            // ledger time at that entry
	accounts        map[string]*usageAccount // by submitter
	usageReports    map[usageReport]Event
	charges         map[string]*chargeWindow // by submitter
	faultsEnded     time.Duration            // when the last fault was over
	hasFaultsEnded  bool
	progressChecked time.Duration // when P9 was checked last
	waiting         map[roost.TaskID]time.Duration
	nextExpiry      dueInstant               // when an attempt may next outlive its lease
	ownedNow        int                      // number of machines in use by their owners
	nameServers     map[string]*auditedNames // by collector
	lateUntil       map[string]time.Duration // by node: until when what it does may come late
	namesChecked    time.Duration            // when S6 was checked last
	guardMissing    int                      // number of machines whose startd has lost contact with the guard
}

// New returns an auditor without events.
func New(rules TimingRules) *Auditor {
	return &Auditor{
		rules: rules, jobs: map[roost.JobID]*auditedJob{}, keys: map[string]roost.JobID{},
		machines: map[string]*auditedMachine{}, entries: map[logEntry]entryDigest{},
		accounts: map[string]*usageAccount{}, usageReports: map[usageReport]Event{},
		charges: map[string]*chargeWindow{},
		waiting: map[roost.TaskID]time.Duration{}, nextExpiry: noDeadline,
		nameServers: map[string]*auditedNames{}, lateUntil: map[string]time.Duration{},
	}
}

// Violations lists the violations so far, in the order in which they were found.
func (a *Auditor) Violations() []Violation { return a.violations }

// Log returns all events so far, in order. The caller must not modify it.
func (a *Auditor) Log() []Event { return a.log }

// Observe processes the next event. It panics if time runs backwards.
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
	case Offered, Leased, Renewed, Freed, Sized, Slept, Woke:
		a.checkMachine(&s)
	case OwnerCame, OwnerLeft, GuardDied, GuardWatching, GuardMissed, GuardHeard, Suspended, Resumed:
		a.checkOwner(&s)
	case Assigned, Began, Ended, OutputStored, OutputLost, Completed, Removed, Reopened, HeldByUser, Released,
		RecordLost:
		a.checkTask(&s)
	case ServiceStored, UpdateMoves, UpdateWaits, UpdateDone, PlannedStop, Replaced, StopRequested, TaskFailed,
		TaskReady, EndedByItself, TaskUnready, CountSet, RevisionSet:
		a.checkService(&s)
	case SizeRecorded:
		a.checkSize(&s)
	case RunDecided, RunSkipped:
		a.checkDecided(&s)
	case FlowPartStored:
		a.checkPartStored(&s)
	case FlowPartBegun:
		a.checkPartBegun(&s)
	case FlowPartEnded:
		a.checkPartEnded(&s)
	case FlowEnded:
		a.noteFlowEnded(&s)
	case UsageRateSet, UsageReported:
		a.checkUsage(&s)
	case Digested:
		a.checkDigest(&s)
	case NamesServed, NamesGone, NameSet:
		a.checkNames(&s)
	case Injected:
		a.hasFaultsEnded = false
		a.noteLate(&s)
	case FaultsEnded:
		a.hasFaultsEnded, a.faultsEnded, a.progressChecked = true, s.At, s.At
		clear(a.waiting)
	default:
		panic(fmt.Sprintf("audit: %v", s.Type))
	}
}

// Finish ends the audit at a time. Every submitted task must have ended by then, or be
// held.
func (a *Auditor) Finish(at time.Duration) {
	a.checkTime(at)
	a.now = at
	a.checkUnfinished()
}

// checkTime checks the guarantees that the passing of time alone can violate.
func (a *Auditor) checkTime(at time.Duration) {
	a.checkExpired(at)
	a.checkDisturbed(at)
	a.checkEndedNames(at)
	a.checkProgress(at)
}

// addViolation records a violation together with the events so far that matches selects.
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

// maxHistory is the most events that a violation has; from longer histories the middle is
// left out.
const maxHistory = 40

// taskHistory selects the events about a task, and those about all tasks of its job.
func taskHistory(t roost.TaskID) func(*Event) bool {
	return func(s *Event) bool {
		return s.Job == t.Job && (s.Type == IDShown || s.Type == SubmissionStored || s.Type == Archived ||
			s.Index == t.Index || s.Index == AllTasks && s.Type != Recovered)
	}
}

// jobHistory selects the events about jobs as a whole.
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

// machineHistory selects the events about a machine's claims and processes.
func machineHistory(node string) func(*Event) bool {
	return func(s *Event) bool {
		return s.Node == node && s.Type != UsageReported && s.Type != Digested && s.Type != Assigned &&
			s.Type != Renewed
	}
}

// byTask orders tasks by job and index.
func byTask(s, t roost.TaskID) int {
	return cmp.Or(s.Job.Compare(t.Job), cmp.Compare(s.Index, t.Index))
}
