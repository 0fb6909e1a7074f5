package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// Rules are the times by which a pool is judged.
type Rules struct {
	// KillGrace is how long a machine may take to kill what it must: by then no process outlives its lease (P10).
	KillGrace time.Duration

	// Waking is how long a machine that wakes may take until tasks whose leases are over are dead. Until then they stand still, as since it fell asleep, and
	// do not count as living beside others (P4).
	Waking time.Duration

	// Patience is how long after the last fault a task that could run may wait for a machine that has room for it (P9).
	Patience time.Duration

	// Freezing is how long a task may go on after the owner of its machine has touched it, or it has woken (the design, §7).
	Freezing time.Duration
}

// DefaultRules are those of a real pool.
func DefaultRules() Rules {
	return Rules{KillGrace: 10 * time.Second, Waking: time.Second, Patience: time.Minute, Freezing: 250 * time.Millisecond}
}

// Promise numbers what Roost promises, from 1. 0 is what its cores promise themselves.
type Promise int

// promises are the sentences of the design, §5, by number.
var promises = [...]string{
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

// ToOwners is what is promised to those whose machines are lent, beside the eleven.
const ToOwners = Promise(len(promises) - 1)

// Promises is how many there are with a number.
const Promises = int(ToOwners) - 1

// Sentence is what is promised.
func (p Promise) Sentence() string { return promises[p] }

func (p Promise) String() string {
	if p == ToOwners {
		return "the promise to owners"
	}
	return fmt.Sprintf("P%d", int(p))
}

// Contradiction says that a core has found what its books must never say.
func (a *Auditor) Contradiction(at time.Duration, text string) {
	a.now = max(a.now, at)
	a.broken = append(a.broken, Breach{At: a.now, Text: text, History: slices.Clone(a.log[max(len(a.log)-maxHistory, 0):])})
}

// Breach is a promise that was broken.
type Breach struct {
	Promise Promise
	At      time.Duration
	Text    string // how
	History []Seen // what was seen of the matter, what broke it last
}

// String tells the breach on several lines.
func (b *Breach) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%v is broken at %s: %s\n%v: %s\n", b.Promise, Clock(b.At), b.Text, b.Promise, b.Promise.Sentence())
	for _, s := range b.History {
		fmt.Fprintf(&text, "  %10s  %v\n", Clock(s.At), s)
	}
	return text.String()
}

// Auditor holds what was seen against the promises.
type Auditor struct {
	rules    Rules
	now      time.Duration
	log      []Seen // all that was seen
	broken   []Breach
	jobs     map[roost.JobID]*job
	keys     map[string]roost.JobID // as they were shown or written, whichever came first
	machines map[string]*machine
	entries  map[uint64]digested
	entry    uint64              // the last of the log that anybody has
	clock    time.Duration       // the ledger's then
	accounts map[string]*account // by who
	used     map[usage]Seen
	calm     time.Duration // when the last fault was over
	isCalm   bool
	looked   time.Duration // when P9 was looked after last
	waiting  map[roost.TaskID]time.Duration
	doomed   deadline // when somebody may next outlive a lease
	seated   int      // machines that somebody uses himself
	missed   int      // machines of whose guards nothing is heard
}

// New returns an auditor who has seen nothing.
func New(rules Rules) *Auditor {
	return &Auditor{
		rules: rules, jobs: map[roost.JobID]*job{}, keys: map[string]roost.JobID{}, machines: map[string]*machine{}, entries: map[uint64]digested{},
		accounts: map[string]*account{}, used: map[usage]Seen{}, waiting: map[roost.TaskID]time.Duration{}, doomed: never,
	}
}

// Broken lists the promises that were broken so far, in the order in which that was seen.
func (a *Auditor) Broken() []Breach { return a.broken }

// Log is all that was seen, in order. The caller only reads it.
func (a *Auditor) Log() []Seen { return a.log }

// See takes in what was seen next. Time does not run backwards.
func (a *Auditor) See(s Seen) {
	if s.At < a.now {
		panic(fmt.Sprintf("audit: %v was seen at %v, and it is %v", s, s.At, a.now))
	}
	a.pass(s.At)
	a.log = append(a.log, s)
	a.now = s.At
	switch s.What {
	case Printed, Taken, Recovered, Left:
		a.seeJob(&s)
	case Offered, Leased, Renewed, Freed, Froze, Woke:
		a.seeMachine(&s)
	case Seated, Away, Unwatched, Watched, Missed, Heard, Stood, WentOn:
		a.seeOwner(&s)
	case Assigned, Began, Ended, Stored, Unstored, Completed, Removed, Reopened, HeldBack, LetGo, Doubted:
		a.seeTask(&s)
	case Rated, Used:
		a.seeUse(&s)
	case Digested:
		a.seeDigest(&s)
	case Injected:
		a.isCalm = false
	case Calm:
		a.isCalm, a.calm, a.looked = true, s.At, s.At
		clear(a.waiting)
	default:
		panic(fmt.Sprintf("audit: %v", s.What))
	}
}

// Finish says that nothing more will be seen after at. Whatever was submitted must have ended by then, or be held.
func (a *Auditor) Finish(at time.Duration) {
	a.pass(at)
	a.now = at
	a.unfinished()
}

// pass looks after what time alone can break.
func (a *Auditor) pass(at time.Duration) {
	a.overdue(at)
	a.disturbed(at)
	a.progress(at)
}

// breach notes that a promise is broken, with all that was seen of what keep says.
func (a *Auditor) breach(p Promise, keep func(*Seen) bool, text string, args ...any) {
	b := Breach{Promise: p, At: a.now, Text: fmt.Sprintf(text, args...)}
	for i := range a.log {
		if keep(&a.log[i]) {
			b.History = append(b.History, a.log[i])
		}
	}
	if extra := len(b.History) - maxHistory; extra > 0 {
		b.History = slices.Delete(b.History, maxHistory/2, maxHistory/2+extra)
	}
	a.broken = append(a.broken, b)
}

// maxHistory bounds what is told of one breach: of more the middle is left out.
const maxHistory = 40

// ofTask keeps what was seen of a task, and what was done to all of its job.
func ofTask(t roost.TaskID) func(*Seen) bool {
	return func(s *Seen) bool {
		return s.Job == t.Job && (s.What == Printed || s.What == Taken || s.What == Left || s.Index == t.Index || s.Index == All && s.What != Recovered)
	}
}

// ofJob keeps what was seen of jobs as such.
func ofJob(ids ...roost.JobID) func(*Seen) bool {
	return func(s *Seen) bool {
		for _, id := range ids {
			if s.What == Recovered && s.Node == id.Host {
				return true
			}
			if s.Job == id && (s.What == Printed || s.What == Taken || s.What == Left || s.What == Completed || s.What == Removed) {
				return true
			}
		}
		return false
	}
}

// ofMachine keeps what was seen of a machine's books and of what ran there.
func ofMachine(node string) func(*Seen) bool {
	return func(s *Seen) bool {
		return s.Node == node && s.What != Used && s.What != Digested && s.What != Assigned && s.What != Renewed
	}
}

// byTask orders tasks.
func byTask(s, t roost.TaskID) int {
	return cmp.Or(s.Job.Compare(t.Job), cmp.Compare(s.Index, t.Index))
}
