package audit

import (
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

var (
	taskOne = roost.JobID{Seq: 1, Host: "s1"}
	taskTwo = roost.JobID{Seq: 2, Host: "s1"}
	oneCore = roost.Resources{CPU: 1000}
)

// idShown and the functions below build the events of the histories in these tests. Each
// event comes a second after the previous one, unless it has a time.
func idShown(key string, id roost.JobID) Event {
	return Event{Type: IDShown, Key: key, Job: id, Tasks: 1, Resources: oneCore}
}

func machineEvent(what EventType, attempt roost.AttemptNumber, node string) Event {
	return Event{Type: what, Job: taskOne, Attempt: attempt, Node: node, Claim: uint64(attempt), Resources: oneCore}
}

func claimLeased(what EventType, node string, claim uint64, until time.Duration) Event {
	return Event{Type: what, Node: node, Claim: claim, Resources: oneCore, Until: until}
}

func machineOffered(node string, cores roost.MilliCPU) Event {
	return Event{Type: Offered, Node: node, Resources: roost.Resources{CPU: 1000 * cores}}
}

func usageSeen(node string, entry uint64, until time.Duration, amount float64) Event {
	return Event{Type: UsageReported, Node: node, Submitter: "ann", Entry: entry, Until: until, Amount: amount}
}

func usageRate(entry uint64, until time.Duration, cores float64) Event {
	return Event{Type: UsageRateSet, Submitter: "ann", Entry: entry, Until: until, Amount: cores}
}

func entryDigestSeen(node string, entry, digest uint64) Event {
	return Event{Type: Digested, Node: node, Entry: entry, Digest: digest}
}

// entryAt returns a log entry with a ledger time.
func entryAt(entry uint64, until time.Duration) Event {
	return Event{Type: Digested, Node: "n1", Entry: entry, Digest: entry, Until: until}
}

// charged returns a history in which the claims of a submitter are worth one core. One of
// them is inside another.
func charged(cores float64) []Event {
	lease := func(claim, inside uint64) Event {
		s := claimLeased(Leased, "m1", claim, time.Hour)
		s.Submitter, s.Inside = "ann", inside
		return s
	}
	return joinHistories(machineOffered("m1", 4), lease(1, 0), lease(2, 1), entryAt(1, 0), usageRate(1, 0, cores),
		Event{Type: FaultsEnded})
}

// sizeWanted says that the tasks of a service are to get a revision with so much memory.
func sizeWanted(revision uint32, memory roost.Bytes) Event {
	return Event{Type: UpdateMoves, Job: taskOne, Revision: revision,
		Resources: roost.Resources{CPU: 1000, Memory: memory * roost.GiB}}
}

// taskEvent returns an event about a task of a service.
func taskEvent(what EventType, index int) Event { return Event{Type: what, Job: taskOne, Index: index} }

// taskBegins is the begin of an attempt with an environment.
func taskBegins(attempt roost.AttemptNumber, environment string) Event {
	s := machineEvent(Began, attempt, "m1")
	s.Claim, s.Detail = 7, environment
	return s
}

// restartAt returns the events of an attempt that ends by itself at once. The time is by
// the schedd's clock.
func restartAt(attempt roost.AttemptNumber, at time.Duration) []Event {
	recorded, ended := machineEvent(Assigned, attempt, "m1"), machineEvent(EndedByItself, attempt, "")
	recorded.Until, ended.Until = at, at
	return []Event{recorded, taskBegins(attempt, "A=1"), machineEvent(Ended, attempt, "m1"), ended}
}

// twoTasksRun returns the events by which the two tasks of a service run.
func twoTasksRun() (all []Event) {
	for i := range 2 {
		recorded, begins := machineEvent(Assigned, 1, "m1"), taskBegins(1, "A=1")
		recorded.Index, begins.Index = i, i
		begins.Claim += uint64(i)
		all = append(all, recorded, begins)
	}
	return all
}

func updateMoves(revision uint32) Event {
	return Event{Type: UpdateMoves, Job: taskOne, Detail: "A=1", Revision: revision}
}

// stopOfUpdate is that a task is to become another revision.
func stopOfUpdate(index int) Event {
	return Event{Type: PlannedStop, Job: taskOne, Index: index, Detail: OfUpdate}
}

// revisionSet is that the tasks of the service are to get a revision.
func revisionSet(revision uint32, digest uint64, tasks int) Event {
	return Event{Type: RevisionSet, Job: taskOne, Revision: revision, Digest: digest, Tasks: tasks}
}

// runStored is that the run of the first job for an instant is on disk.
func runStored(seq uint64, instant int64) Event {
	id := roost.JobID{Seq: seq, Host: "s1"}
	return Event{Type: SubmissionStored, Node: "s1", Key: id.String(), Job: id, Tasks: 1, Of: taskOne, Instant: instant}
}

func runDecided(seq uint64, instant int64) Event {
	return Event{Type: RunDecided, Job: taskOne, Instant: instant, Of: roost.JobID{Seq: seq, Host: "s1"}}
}

// countSet is that the service is to have so many tasks.
func countSet(tasks, extra int) Event {
	return Event{Type: CountSet, Job: taskOne, Tasks: tasks, Extra: extra}
}

// claimSized is that the limits of the task's first claim are others.
func claimSized(cores roost.MilliCPU) Event {
	return Event{Type: Sized, Node: "m1", Claim: 1, Resources: roost.Resources{CPU: cores}}
}

func sizeRecorded(cores roost.MilliCPU) Event {
	return Event{Type: SizeRecorded, Job: taskOne, Attempt: 1, Resources: roost.Resources{CPU: cores}}
}

// nameSet is that the name of the first task points to an attempt at the collector n1.
func nameSet(attempt roost.AttemptNumber, state string) Event {
	return Event{Type: NameSet, Node: "n1", Job: taskOne, Attempt: attempt, Detail: state}
}

func eventAt(t time.Duration, s Event) Event { s.At = t; return s }

// taskRun returns the events of a task that runs and completes as it should.
func taskRun(attempt roost.AttemptNumber, node string) []Event {
	return []Event{
		claimLeased(Leased, node, uint64(attempt), time.Hour), machineEvent(Assigned, attempt, node),
		machineEvent(Began, attempt, node), machineEvent(Ended, attempt, node),
		machineEvent(OutputStored, attempt, node), machineEvent(Completed, attempt, node),
		claimLeased(Freed, node, uint64(attempt), 0),
	}
}

func joinHistories(parts ...any) (all []Event) {
	for _, p := range parts {
		switch p := p.(type) {
		case Event:
			all = append(all, p)
		case []Event:
			all = append(all, p...)
		}
	}
	return all
}

// observeAll returns an auditor that has observed a history.
func observeAll(history []Event) *Auditor {
	a := New(DefaultRules())
	now := time.Duration(0)
	for _, s := range history {
		if now += time.Second; s.At > 0 {
			now = s.At
		}
		s.At = now
		a.Observe(s)
	}
	return a
}

// TestEachGuaranteeViolated checks for each guarantee that a history violates it and no
// other one.
func TestEachGuaranteeViolated(t *testing.T) {
	begin := joinHistories(machineOffered("m1", 2), machineOffered("m2", 2), idShown("k", taskOne))
	hold := Event{Type: HeldByUser, Job: taskOne, Index: AllTasks}
	twoTasks := idShown("k", taskOne)
	twoTasks.Tasks = 2
	service := joinHistories(machineOffered("m1", 2), twoTasks, Event{Type: ServiceStored, Job: taskOne,
		Service: &ServiceTerms{MaxDown: 1, Surge: 2, Restarts: 2, BackoffFirst: time.Second,
			BackoffMax: 20 * time.Second,
			Progress:   time.Minute, Environment: "A=1"}})
	scheduled := joinHistories(machineOffered("m1", 2), Event{Type: SubmissionStored, Node: "s1", Key: "k",
		Job: taskOne, Tasks: 1, Resources: oneCore,
		Schedule: &ScheduleTerms{Every: time.Minute, Steady: true, Complete: true}})
	scaled := Event{Type: ServiceStored, Job: taskOne, Service: &ServiceTerms{Surge: 1, MinTasks: 1, MaxTasks: 4}}
	served := joinHistories(Event{Type: NamesServed, Node: "n1"}, service, machineEvent(Assigned, 1, "m1"),
		taskBegins(1, "A=1"), taskEvent(TaskReady, 0))
	for _, c := range []struct {
		name      string
		guarantee Guarantee
		says      string
		history   []Event
	}{
		{"too many are down by plan", BudgetGuarantee, "2 tasks of 1.s1 are down by plan, and 1 may be",
			joinHistories(service, taskEvent(PlannedStop, 0), taskEvent(TaskReady, 0), taskEvent(PlannedStop, 1),
				taskEvent(PlannedStop, 0))},
		{"a task that stands in for another goes", BudgetGuarantee, "2 tasks of 1.s1 are down by plan, and 1 may be",
			joinHistories(service, countSet(2, 1), taskEvent(TaskReady, 2), taskEvent(PlannedStop, 0),
				taskEvent(TaskUnready, 2), taskEvent(PlannedStop, 1))},
		{"an update adds too many", SurgeGuarantee, "3 tasks of 1.s1 are to run beyond 2, and 2 may be",
			joinHistories(service, countSet(2, 3))},
		{"a load makes too many", ScaleGuarantee, "1.s1 is to have 5 tasks, and from 1 to 4 may be",
			joinHistories(service, scaled, countSet(4, 0), countSet(1, 1), countSet(5, 0))},
		{"a use makes tasks too large", ScaleGuarantee,
			"each task of 1.s1 is to have 5GiB of memory, and from 1GiB to 4GiB may be",
			joinHistories(service, Event{Type: ServiceStored, Job: taskOne,
				Service: &ServiceTerms{MinMemory: roost.GiB, MaxMemory: 4 * roost.GiB}}, sizeWanted(2, 4),
				sizeWanted(3, 5))},
		{"what is inside an alloc is charged twice", 6,
			"ann is charged for 2 to 2 cores for 1m0s, and has claims that are worth 1 to 1",
			joinHistories(charged(2), eventAt(3*time.Minute, entryAt(2, 0)), eventAt(5*time.Minute, entryAt(3, 0)))},
		{"what is leased is not charged", 6, "ann is charged for 0 to 0 cores",
			joinHistories(charged(0), eventAt(3*time.Minute, entryAt(2, 0)), eventAt(5*time.Minute, entryAt(3, 0)))},
		{"a surplus task lives on", SurgeGuarantee, "1.s1 has 0 tasks and 0 beyond them, and attempt 1 of task 0 lives",
			joinHistories(service, machineEvent(Assigned, 1, "m1"), taskBegins(1, "A=1"), countSet(0, 0),
				Event{Type: FaultsEnded}, eventAt(10*time.Second, entryAt(1, 0)),
				eventAt(80*time.Second, entryAt(2, 0)))},
		{"a size is taken for granted", SizeGuarantee, "has 2 cores by the job queue, 1 cores by the books of m1",
			joinHistories(begin, taskRun(1, "m1")[:3], sizeRecorded(2000))},
		{"limits change without the books", SizeGuarantee, "and its limits are 2 cores",
			joinHistories(begin, taskRun(1, "m1")[:3], claimSized(2000), sizeRecorded(1000))},
		{"limits become too large", SizeGuarantee, "by what lives there m1 has given away 3 cores, and has 2 cores",
			joinHistories(begin, taskRun(1, "m1")[:3], claimSized(3000))},
		{"a claim becomes too large", SizeGuarantee, "by its books m1 has given away 3 cores, and has 2 cores",
			joinHistories(begin, taskRun(1, "m1")[:3], Event{Type: Leased, Node: "m1", Claim: 1, Until: time.Hour,
				Resources: roost.Resources{CPU: 3000}})},
		{"an update leaves a task its size", RevisionGuarantee, "its task 0 has 1 cores on m1, not 2 cores",
			joinHistories(service, machineEvent(Assigned, 1, "m1"), taskBegins(1, "A=1"),
				Event{Type: UpdateDone, Job: taskOne, Detail: "A=1", Resources: roost.Resources{CPU: 2000}})},
		{"an update leaves a task behind", RevisionGuarantee, "runs on m1 with A=1, not A=2",
			joinHistories(service, machineEvent(Assigned, 1, "m1"), taskBegins(1, "A=1"),
				Event{Type: UpdateMoves, Job: taskOne, Detail: "A=2"},
				Event{Type: UpdateDone, Job: taskOne, Detail: "A=2"})},
		{"an update stops too many", DisruptionGuarantee, "stops attempt 1 of task 1, the 2. that runs, and 1 may be",
			joinHistories(service, Event{Type: ServiceStored, Job: taskOne, Service: &ServiceTerms{MaxDown: 2,
				Disruptions: 1}}, twoTasksRun(), updateMoves(2), stopOfUpdate(0), stopOfUpdate(0), stopOfUpdate(1))},
		{"an undo brings back another ad", UndoGuarantee,
			"with the ad 0000000000000009 and 2 tasks, and it was 0000000000000007 with 2",
			joinHistories(service, revisionSet(1, 7, 2), revisionSet(2, 8, 3), revisionSet(1, 9, 2))},
		{"an undo brings back another count", UndoGuarantee, "and 3 tasks, and it was 0000000000000007 with 2",
			joinHistories(service, revisionSet(1, 7, 2), revisionSet(2, 8, 3), revisionSet(1, 7, 3))},
		{"an instant has two runs", ScheduleGuarantee,
			"2.s1 and 3.s1 are runs of 1.s1 for the instant 1970-01-01T00:01:00Z",
			joinHistories(scheduled, runStored(2, 60), runStored(3, 60))},
		{"a run is lost", ScheduleGuarantee, "is decided with the run 2.s1, which is not in the log",
			joinHistories(scheduled, runDecided(2, 60))},
		{"an instant is left out", ScheduleGuarantee,
			"gets a run for the instant 1970-01-01T00:03:00Z, and the one before was for 1970-01-01T00:01:00Z",
			joinHistories(scheduled, runStored(2, 60), runDecided(2, 60), runStored(3, 180), runDecided(3, 180))},
		{"an instant is skipped", ScheduleGuarantee, "1.s1 gets no run for the instant 1970-01-01T00:01:00Z: missed",
			joinHistories(scheduled, Event{Type: RunSkipped, Job: taskOne, Instant: 60, Detail: "missed"})},
		{"a schedule stops", ScheduleGuarantee, "no instant of 1.s1 was decided for 2m0s",
			joinHistories(scheduled, Event{Type: FaultsEnded}, eventAt(3*time.Minute, entryAt(1, 0)))},
		{"a restart does not wait", BackoffGuarantee, "begins 1.000s after the last one, which was the 2. in a row",
			joinHistories(service, restartAt(1, 0), restartAt(2, 800*time.Millisecond),
				restartAt(3, 1800*time.Millisecond))},
		{"too many restarts on a claim", BackoffGuarantee, "is the 3. restart on claim 7 of m1, and 2 may be",
			joinHistories(service, restartAt(1, 0), restartAt(2, time.Minute), restartAt(3, 2*time.Minute),
				restartAt(4, 3*time.Minute))},
		{"a name points to what has ended", EndedNameGuarantee,
			"at n1 the name of 1[0].s1 points to attempt 1, which ended at 9.000s on m1",
			joinHistories(served, nameSet(1, "ready"), machineEvent(Ended, 1, "m1"),
				eventAt(30*time.Second, entryAt(1, 0)))},
		{"a ready task has no name", ReadyNameGuarantee, "attempt 1 of 1[0].s1 is ready since 7.000s, and its name",
			joinHistories(served, nameSet(1, "lost"), Event{Type: FaultsEnded},
				eventAt(80*time.Second, entryAt(1, 0)))},
		{"a name goes back", NewestNameGuarantee, "point to attempt 1, and had it point to attempt 2 before",
			joinHistories(served, nameSet(2, "ready"), nameSet(1, "ready"))},
		{"an update does not end", UpdateGuarantee, "should have come to an end within 4m0s",
			joinHistories(service, Event{Type: HeldByUser, Job: taskOne, Index: AllTasks},
				Event{Type: UpdateMoves, Job: taskOne, Detail: "A=2"}, Event{Type: FaultsEnded},
				eventAt(5*time.Minute, entryAt(1, 0)))},
		{"a printed id is not on disk", 1, "1.s1 was shown to a user, and the schedd knows nothing of it",
			joinHistories(begin, Event{Type: Recovered, Node: "s1", Jobs: []roost.JobID{taskTwo}})},
		{"an id is given twice", 1, "1.s1 was the job of the key k, and is that of the key l now",
			joinHistories(begin, idShown("l", taskOne))},
		{"a job goes that has not ended", 1, "its task 0 has not come to an end",
			joinHistories(begin, Event{Type: Archived, Job: taskOne})},
		{"a key makes two jobs", 2, "the key k has made 1.s1 and 2.s1", joinHistories(begin, idShown("k", taskTwo))},
		{"a key makes a job on disk that nobody is shown", 2, "the key k has made 1.s1 and 2.s1",
			joinHistories(begin, Event{Type: SubmissionStored, Node: "s1", Key: "k", Job: taskTwo, Tasks: 1})},
		{"two completions", 3, "attempt 1 of 1[0].s1 is recorded as its last, and attempt 1 was before",
			joinHistories(begin, taskRun(1, "m1"), machineEvent(Completed, 1, "m1"))},
		{"a start after completion", 3, "attempt 2 of 1[0].s1 begins after attempt 1 was recorded as its last",
			joinHistories(begin, taskRun(1, "m1"), machineEvent(Began, 2, "m1"))},
		{"a record after completion", 3, "attempt 2 of 1[0].s1 is recorded, which was over",
			joinHistories(begin, taskRun(1, "m1"), machineEvent(Assigned, 2, "m1"))},
		{"an old attempt completes", 3, "attempt 1 of 1[0].s1 is recorded as its last, and attempt 2 is",
			joinHistories(begin, taskRun(1, "m1")[:5], machineEvent(Assigned, 2, "m2"),
				machineEvent(Completed, 1, "m1"))},
		{"completion of what lives", 3, "while attempt 1 lives on m1",
			joinHistories(begin, taskRun(1, "m1")[:3], machineEvent(OutputStored, 1, "m1"),
				machineEvent(Completed, 1, "m1"))},
		{"completion of what never ran", 3, "and never ran", joinHistories(begin, machineEvent(Assigned, 1, "m1"),
			machineEvent(OutputStored, 1, "m1"), machineEvent(Completed, 1, "m1"))},
		{"completion with another code", 3, "is recorded with code 7, and ended with 0",
			joinHistories(begin, taskRun(1, "m1")[:5], Event{Type: Completed, Job: taskOne, Attempt: 1, Code: 7})},
		{"two live", 4, "attempt 2 of 1[0].s1 begins on m2, and attempt 1 lives on m1",
			joinHistories(begin, taskRun(1, "m1")[:3], machineEvent(Assigned, 2, "m2"), machineEvent(Began, 2, "m2"))},
		{"a number falls", 4, "attempt 1 of 1[0].s1 is recorded after attempt 1, and numbers only rise",
			joinHistories(begin, machineEvent(Assigned, 1, "m1"), machineEvent(Assigned, 1, "m2"))},
		{"one that slept lives on beside another",
			4, "attempt 1 of 1[0].s1 lived on m1 until 2.000s after it woke, and attempt 2 had begun",
			joinHistories(begin, taskRun(1, "m1")[:3], Event{Type: Slept, Node: "m1"}, machineEvent(Assigned, 2, "m2"),
				machineEvent(Began, 2, "m2"), Event{Type: Woke, Node: "m1"},
				Event{Type: Injected}, machineEvent(Ended, 1, "m1"))},
		{"books give away too much", 5, "by its books m1 has given away 3 cores, and has 2 cores",
			joinHistories(begin, claimLeased(Leased, "m1", 1, time.Hour), claimLeased(Leased, "m1", 2, time.Hour),
				claimLeased(Leased, "m1", 3, time.Hour))},
		{"more lives than there is", 5, "by what lives there m1 has given away 2 cores, and has 1 cores",
			joinHistories(machineOffered("m1", 1), idShown("k", taskOne), idShown("l", taskTwo), taskRun(1, "m1")[:3],
				claimLeased(Freed, "m1", 1, 0),
				Event{Type: Began, Job: taskTwo, Attempt: 1, Node: "m1", Resources: oneCore})},
		{"negative usage", 6, "ann has used -1 core-seconds by n1", joinHistories(usageSeen("n1", 1, 0, -1))},
		{"usage falls", 6, "ann had used 20.000 core-seconds by n1, and has used 10.000 now",
			joinHistories(usageRate(1, 0, 2), usageSeen("n1", 1, 10*time.Second, 20),
				usageSeen("n1", 2, 10*time.Second, 10))},
		{"charged twice", 6, "ann has used 60.000 core-seconds by n1, and by what the log says 40.000",
			joinHistories(usageRate(1, 0, 2), usageSeen("n1", 2, 10*time.Second, 20),
				usageSeen("n1", 3, 20*time.Second, 60))},
		{"never charged", 6, "ann has used 0.000 core-seconds by n1, and by what the log says 20.000",
			joinHistories(usageRate(1, 0, 2), usageSeen("n1", 2, 10*time.Second, 0))},
		{"replicas differ", 7, "after entry 5 n1 has the state 000000000000000a, and n2 000000000000000b",
			joinHistories(entryDigestSeen("n1", 5, 10), entryDigestSeen("n2", 5, 11))},
		{"a start after a hold", 8, "attempt 1 of 1[0].s1 is recorded after a user was told that none starts",
			joinHistories(begin, hold, machineEvent(Assigned, 1, "m1"))},
		{"a hold that only the schedd knows of", 8,
			"attempt 2 of 1[0].s1 begins after a user was told that none starts",
			joinHistories(begin, taskRun(1, "m1")[:4], hold, machineEvent(Began, 2, "m1"))},
		{"a task hangs", 9, "1[0].s1 could run since 4.000s, m1 has had room for it since 5.000s",
			joinHistories(begin, Event{Type: FaultsEnded}, eventAt(5*time.Second, entryDigestSeen("n1", 1, 1)),
				eventAt(66*time.Second, entryDigestSeen("n1", 2, 1)))},
		{"a lease is over", 10, "attempt 1 of 1[0].s1 lives on m1, and the lease of claim 1 was over at 60.000s",
			joinHistories(begin, claimLeased(Leased, "m1", 1, time.Minute), machineEvent(Began, 1, "m1"),
				eventAt(71*time.Second, machineEvent(Ended, 1, "m1")))},
		{"a lease is over when a machine wakes", 10, "the lease of claim 1 was over at 60.000s",
			joinHistories(begin, claimLeased(Leased, "m1", 1, time.Minute), machineEvent(Began, 1, "m1"),
				Event{Type: Slept, Node: "m1"}, eventAt(time.Hour, Event{Type: Woke, Node: "m1"}),
				eventAt(time.Hour+11*time.Second, machineEvent(Ended, 1, "m1")))},
		{"no output", 11, "attempt 1 of 1[0].s1 is recorded as its last, and its output is not at the submit side",
			joinHistories(begin, taskRun(1, "m1")[:4], machineEvent(Completed, 1, "m1"))},
		{"output is lost", 11, "its output is not at the submit side", joinHistories(begin, taskRun(1, "m1")[:5],
			machineEvent(OutputLost, 1, "m1"), machineEvent(Completed, 1, "m1"))},
		{"a task runs on beside an owner", OwnerGuarantee,
			"attempt 1 of 1[0].s1 runs on m1, and somebody has used that since 7.000s",
			joinHistories(begin, taskRun(1, "m1")[:3], Event{Type: OwnerCame, Node: "m1"},
				machineEvent(Ended, 1, "m1"))},
		{"one goes on too early", OwnerGuarantee,
			"attempt 1 of 1[0].s1 runs on m1, and somebody has used that since 7.000s",
			joinHistories(begin, taskRun(1, "m1")[:3], Event{Type: OwnerCame, Node: "m1"},
				eventAt(7250*time.Millisecond, machineEvent(Suspended, 1, "m1")), machineEvent(Resumed, 1, "m1"),
				Event{Type: OwnerLeft, Node: "m1"})},
		{"one begins beside an owner", OwnerGuarantee,
			"attempt 1 of 1[0].s1 runs on m1, and somebody has used that since 4.000s",
			joinHistories(begin, Event{Type: OwnerCame, Node: "m1"}, taskRun(1, "m1")[:4])},
		{"one runs when its machine wakes", OwnerGuarantee,
			"attempt 1 of 1[0].s1 runs on m1, and somebody has used that since 8.000s",
			joinHistories(begin, taskRun(1, "m1")[:3], Event{Type: Slept, Node: "m1"},
				Event{Type: OwnerCame, Node: "m1"}, Event{Type: Woke, Node: "m1"}, machineEvent(Ended, 1, "m1"))},
		{"one runs on when a guard has looked", OwnerGuarantee,
			"attempt 1 of 1[0].s1 runs on m1, and somebody has used that since 8.000s",
			joinHistories(begin, taskRun(1, "m1")[:3], Event{Type: GuardDied, Node: "m1"}, Event{Type: OwnerCame,
				Node: "m1"}, Event{Type: GuardWatching, Node: "m1"}, machineEvent(Ended, 1, "m1"))},
		{"one runs on without a guard", OwnerGuarantee,
			"attempt 1 of 1[0].s1 runs on m1, and nothing is heard of its guard since 8.000s",
			joinHistories(begin, taskRun(1, "m1")[:3], Event{Type: GuardDied, Node: "m1"},
				Event{Type: GuardMissed, Node: "m1"}, machineEvent(Ended, 1, "m1"))},
		{"one begins without a guard", OwnerGuarantee,
			"attempt 1 of 1[0].s1 runs on m1, and nothing is heard of its guard since 4.000s",
			joinHistories(begin, Event{Type: GuardMissed, Node: "m1"}, taskRun(1, "m1")[:4])},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := observeAll(c.history).Violations()
			if len(all) == 0 || all[0].Guarantee != c.guarantee || !strings.Contains(all[0].Description, c.says) {
				t.Fatalf("got %v, want %v: %s", all, c.guarantee, c.says)
			}
			for _, b := range all {
				if b.Guarantee != c.guarantee {
					t.Errorf("besides: %v", b)
				}
			}
			if text := all[0].String(); !strings.Contains(text, all[0].Guarantee.Sentence()) ||
				len(all[0].History) == 0 {
				t.Errorf("it is told as\n%s", text)
			}
		})
	}
}

// TestNoViolation checks a history in which every permitted failure happens: no violation
// is found.
func TestNoViolation(t *testing.T) {
	hold := Event{Type: HeldByUser, Job: taskOne, Index: AllTasks}
	history := joinHistories(
		machineOffered("m1", 1), machineOffered("m2", 1),
		// the same key again
		Event{Type: SubmissionStored, Node: "s1", Key: "k", Job: taskOne, Tasks: 1, Resources: oneCore},
		idShown("k", taskOne), idShown("k", taskOne),
		// recorded before the hold
		claimLeased(Leased, "m1", 1, 30*time.Second), machineEvent(Assigned, 1, "m1"), hold,
		machineEvent(Began, 1, "m1"),
		claimLeased(Renewed, "m1", 1, 60*time.Second), Event{Type: Recovered, Node: "s1", Jobs: []roost.JobID{taskOne}},
		eventAt(69*time.Second, machineEvent(Ended, 1, "m1")), claimLeased(Freed, "m1", 1, 0),
		Event{Type: Released, Job: taskOne, Index: AllTasks},
		claimLeased(Leased, "m1", 2, 100*time.Second), machineEvent(Assigned, 2, "m1"), machineEvent(Began, 2, "m1"),
		Event{Type: Slept, Node: "m1"}, // beyond its lease
		eventAt(120*time.Second, claimLeased(Leased, "m2", 3, time.Hour)), machineEvent(Assigned, 3, "m2"),
		machineEvent(Began, 3, "m2"), machineEvent(Ended, 3, "m2"), machineEvent(OutputStored, 3, "m2"),
		machineEvent(OutputLost, 3, "m2"), machineEvent(OutputStored, 3, "m2"), machineEvent(Completed, 3, "m2"),
		Event{Type: Woke, Node: "m1"}, machineEvent(Ended, 2, "m1"), Event{Type: Archived, Job: taskOne},
		entryDigestSeen("n1", 3, 6), usageRate(3, 0, 1), entryAt(4, 10*time.Second), usageRate(4, 10*time.Second, 3),
		usageSeen("n1", 4, 20*time.Second, 40), entryDigestSeen("n2", 3, 6), usageRate(3, 0, 1),
		// a wrong clock is corrected at that entry
		usageSeen("n2", 3, 8*time.Second, 8), entryAt(5, 100*time.Second), usageSeen("n1", 5, 100*time.Second, 280),
		entryAt(6, 30*time.Second), usageSeen("n1", 6, 30*time.Second, 70), entryAt(7, 40*time.Second),
		usageRate(7, 40*time.Second, 0), usageSeen("n1", 7, 50*time.Second, 100),
		idShown("l", taskTwo), Event{Type: Injected, Node: "m2", Detail: "cut off"}, Event{Type: FaultsEnded},
		machineOffered("m1", 0), machineOffered("m2", 0),
		eventAt(time.Hour, Event{Type: Removed, Job: taskTwo}),
		Event{Type: OwnerCame, Node: "m1"}, Event{Type: Began, Job: taskTwo, Attempt: 1, Node: "m2",
			Resources: oneCore}, Event{Type: OwnerCame, Node: "m2"},
		eventAt(3603250*time.Millisecond, Event{Type: Suspended, Job: taskTwo, Attempt: 1, Node: "m2"}),
		Event{Type: OwnerLeft, Node: "m2"}, Event{Type: Resumed, Job: taskTwo, Attempt: 1, Node: "m2"},
		// the guard is dead, so the visit goes unnoticed
		Event{Type: GuardDied, Node: "m2"}, Event{Type: OwnerCame, Node: "m2"}, Event{Type: GuardMissed, Node: "m2"},
		eventAt(3608500*time.Millisecond, Event{Type: Suspended, Job: taskTwo, Attempt: 1, Node: "m2"}),
		Event{Type: GuardWatching, Node: "m2"}, Event{Type: OwnerLeft, Node: "m2"}, Event{Type: GuardHeard, Node: "m2"},
		Event{Type: Resumed, Job: taskTwo, Attempt: 1, Node: "m2"},
		Event{Type: OwnerLeft, Node: "m1"}, Event{Type: Recovered, Node: "s1", Jobs: []roost.JobID{taskOne, taskTwo}},
	)
	a := observeAll(history)
	a.Finish(2 * time.Hour)
	for _, b := range a.Violations() {
		t.Error(b.String())
	}
}

// TestUnfinishedReported checks that each unfinished task is reported once at the end.
func TestUnfinishedReported(t *testing.T) {
	a := observeAll(joinHistories(idShown("k", taskOne), idShown("l", taskTwo),
		Event{Type: HeldByUser, Job: taskOne, Index: AllTasks, Detail: Removal}, Event{Type: FaultsEnded}))
	a.Finish(time.Hour)
	if all := a.Violations(); len(all) != 2 || all[0].Guarantee != 9 ||
		!strings.HasPrefix(all[1].Description, "2[0].s1 has not come to its end by 3600.000s") {
		t.Errorf("%v", all)
	}
}

// TestReservedRoom checks that free room may be reserved for a larger task. That holds as
// long as it waits for running tasks; when none runs any more, a task must start.
func TestReservedRoom(t *testing.T) {
	large := Event{Type: IDShown, Key: "l", Job: taskTwo, Tasks: 1, Resources: roost.Resources{CPU: 2000}}
	begin := joinHistories(machineOffered("m1", 2), idShown("k", taskOne), taskRun(1, "m1")[:3], large,
		idShown("m", roost.JobID{Seq: 3, Host: "s1"}), Event{Type: FaultsEnded})
	look := func(seconds time.Duration) Event {
		return eventAt(seconds*time.Second, entryDigestSeen("n1", uint64(seconds), 1))
	}
	if all := observeAll(joinHistories(begin, look(10), look(200))).Violations(); len(all) != 0 {
		t.Errorf("while it waits for what runs: %v", all)
	}
	ends := joinHistories(eventAt(200*time.Second, machineEvent(Ended, 1, "m1")), look(203), look(270))
	if all := observeAll(joinHistories(begin, look(10), ends)).Violations(); len(all) == 0 || all[0].Guarantee != 9 {
		t.Errorf("when all is free: %v", all)
	}
}
