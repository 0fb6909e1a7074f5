package queue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// mpiArrayTest is an array of three programs of two machines each: 1[10], 1[20] and
// 1[30]. The second machine has to be larger.
type mpiArrayTest struct {
	*testing.T
	queue *Queue
}

func newMPIArrayTest(t *testing.T, more string) *mpiArrayTest {
	t.Helper()
	ad, err := classad.Parse(
		`[Cmd = "/bin/true"; Out = "o.$(ArrayIndex).$(TaskIndex)"; GangSize = 2; GangLed = true; ` +
			`Array = true; ArrayIndexes = "10-30:10"; PBS = []` + more + "]",
	)
	if err != nil {
		t.Fatal(err)
	}
	q := New("h")
	columns := []jobad.TaskColumn{{Name: roost.AttrRequestCpus, Values: []string{"1", "4", "1", "4", "1", "4"}}}
	events, _, _, err := q.SubmitJobs(time.Unix(1, 0), CallerIdentity{User: "ann", UID: 1}, "k",
		[]jobad.SubmitSpec{{Ad: ad, Count: 6, Columns: columns}}, SubmitLimits{})
	if err != nil {
		t.Fatal(err)
	}
	a := &mpiArrayTest{T: t, queue: q}
	a.apply(events...)
	return a
}

func (a *mpiArrayTest) apply(events ...eventlog.JobEvent) {
	a.Helper()
	for _, e := range events {
		a.queue.Apply(e)
	}
	a.queue.Check()
}

// target is what a user means by some words.
func (a *mpiArrayTest) target(stated string) TaskSelector {
	a.Helper()
	t, err := ParseSelector(stated, "h")
	if err == nil {
		t, err = a.queue.LocateTasks(t)
	}
	if err != nil {
		a.Fatal(err)
	}
	return t
}

// start assigns and starts the first of the array's gangs that is offered.
func (a *mpiArrayTest) start() (attempts []roost.AttemptID) {
	a.Helper()
	for _, id := range a.queue.Requests() {
		lead, mixed := a.queue.GangRequest(id)
		size, ok := a.queue.NextGang(id)
		if !mixed || !ok || size == 0 || lead != id {
			continue
		}
		var seats []GangClaim
		for n, i := range a.queue.jobs[1].nextGang(a.queue.requests[id]) {
			seats = append(seats, GangClaim{Node: fmt.Sprintf("n%d", n), Claim: uint64(n + 1),
				Request: a.queue.jobs[1].class(i).request.ID})
		}
		events, attempts, ok := a.queue.AssignGang(time.Unix(2, 0), id, seats)
		if !ok {
			a.Fatalf("request %d has a gang of %d and none to start", id, size)
		}
		a.apply(events...)
		for _, one := range attempts {
			if e, ok := a.queue.RecordStarted(time.Unix(3, 0), one); ok {
				a.apply(e)
			}
		}
		return attempts
	}
	return nil
}

func (a *mpiArrayTest) end(attempt roost.AttemptID, x eventlog.AttemptExit) {
	a.Helper()
	e, err := a.queue.RecordEnded(time.Unix(4, 0), attempt, &x)
	if err != nil {
		a.Fatal(err)
	}
	a.apply(e)
}

func (a *mpiArrayTest) status() JobStatus {
	a.Helper()
	s, ok := a.queue.Status(1)
	if !ok || s.Tasks != 3 || !s.Array {
		a.Fatalf("%+v is not told as an array of three", s)
	}
	return s
}

// TestMPIGangArray checks that the user of an array of MPI programs sees one task for
// each program.
func TestMPIGangArray(t *testing.T) {
	a := newMPIArrayTest(t, "")
	if s := a.status(); s.Counts[roost.Idle] != 3 || a.queue.WaitingIndexes(1) != "10-30:10" {
		t.Errorf("%+v, and %q remain", s.Counts, a.queue.WaitingIndexes(1))
	}
	first := a.start()
	if len(first) != 2 || first[0].Task.Index != 0 || first[1].Task.Index != 1 {
		t.Fatalf("started: %v", first)
	}
	second := a.start()
	p, err := a.queue.Program(second[0])
	if err != nil || p.PBS != "1[20].h" || p.Out != "o.20.1" || len(p.Hosts) != 2 || p.Hosts[1].Node != "n1" ||
		p.IsSecondary {
		t.Errorf("%+v, %v", p, err)
	}
	if q, err := a.queue.Program(second[1]); err != nil || !q.IsSecondary ||
		a.queue.TaskName(second[1].Task) != "1[20].h" || a.queue.UserIndex(second[1].Task) != 20 {
		t.Errorf("%+v, %v", q, err)
	}
	one, ok := a.queue.SingleTask(a.target("1[20]"))
	if st, _ := a.queue.TaskStatus(one); !ok || st.Task.UserIndex != 20 || st.Task.State != roost.Running ||
		len(st.Placements) != 2 || st.Resources.CPU != 5000 {
		t.Errorf("%v, %+v", ok, st)
	}
	// One ends while its other machine is still on its way back.
	a.end(first[0], eventlog.AttemptExit{Code: 3})
	if s := a.status(); s.Counts[roost.Running] != 2 || s.Counts[roost.Completed] != 0 || s.Failed != 0 {
		t.Errorf("%v, %d failed", s.Counts, s.Failed)
	}
	if v := a.queue.TakeVacates(); len(v) != 1 || v[0].Attempt != first[1] {
		t.Fatalf("told to end: %v", v)
	}
	a.end(first[1], eventlog.AttemptExit{Cause: eventlog.CauseRemoval})
	if s := a.status(); s.Counts[roost.Completed] != 1 || s.Failed != 1 || s.Reason != "1 of 3 tasks failed" ||
		a.queue.WaitingIndexes(1) != "30" {
		t.Errorf("%v, %d failed, %q", s.Counts, s.Failed, s.Reason)
	}
	var listed []int
	a.queue.EachTask(a.target("1[10-30]"), func(s JobStatus) bool {
		listed = append(listed, s.Task.UserIndex)
		return true
	})
	if !slices.Equal(listed, []int{10, 20, 30}) {
		t.Errorf("listed: %v", listed)
	}
	// What is asked of one is asked of all of it, and of no other.
	who := CallerIdentity{User: "ann", UID: 1}
	held, err := a.queue.HoldTasks(time.Unix(5, 0), who, a.target("1[30]"), "")
	if err != nil {
		t.Fatal(err)
	}
	if a.apply(held...); a.status().Counts[roost.Held] != 1 || a.queue.jobs[1].counts[roost.Held] != 2 ||
		a.start() != nil {
		t.Errorf("held: %v", a.queue.jobs[1].state)
	}
	again, err := a.queue.RetryTasks(time.Unix(6, 0), who, a.target("1"))
	if err != nil {
		t.Fatal(err)
	}
	if a.apply(again...); a.status().Counts[roost.Idle] != 1 || a.status().Failed != 0 || a.start()[0].Attempt != 2 {
		t.Errorf("run again: %v", a.queue.jobs[1].state)
	}
}

// TestMPIGangArrayMaxRunning holds that so many of such an array run at once as may.
func TestMPIGangArrayMaxRunning(t *testing.T) {
	a := newMPIArrayTest(t, "; MaxRunning = 1")
	first := a.start()
	if more := a.start(); len(first) != 2 || more != nil {
		t.Fatalf("%v and %v run at once", first, more)
	}
	a.end(first[0], eventlog.AttemptExit{})
	a.end(first[1], eventlog.AttemptExit{Cause: eventlog.CauseRemoval})
	if next := a.start(); len(next) != 2 || next[0].Task.Index != 2 {
		t.Errorf("then %v", next)
	}
}

// TestMPIGangArrayRandomly plays all that can happen to such an array, in any order. A
// restart knows it as well, and it comes to an end.
func TestMPIGangArrayRandomly(t *testing.T) {
	for seed := range uint64(200) {
		a := newMPIArrayTest(t, "")
		rng := rand.New(rand.NewPCG(seed, 2))
		for range 60 {
			a.step(rng)
			again := New("h")
			if snapshot, ok := a.queue.Snapshot(1); !ok || again.RestoreSnapshot(snapshot) != nil {
				t.Fatalf("seed %d: its snapshot is of no use", seed)
			}
			again.Check()
			if was, is := a.status(), (&mpiArrayTest{t, again}).status(); was.Counts != is.Counts ||
				was.Failed != is.Failed {
				t.Fatalf("seed %d: a restart makes %+v of %+v", seed, is, was)
			}
		}
		job := a.queue.jobs[1]
		for tries := 0; !job.isFinal(); tries++ {
			if tries > 40 {
				t.Fatalf("seed %d: it comes to no end: %v, %d active", seed, job.state, job.active)
			}
			if released, err := a.queue.ReleaseTasks(time.Unix(7, 0), CallerIdentity{User: "ann", UID: 1},
				TaskSelector{Job: job.id("h")}); err == nil {
				a.apply(released...)
			}
			a.start()
			a.queue.RepairGangs()
			a.endWanted()
			for i := 0; i < 6; i += 2 {
				if r := job.records.Own(i); r != nil && r.Live {
					a.end(a.queue.attemptOf(job, i), eventlog.AttemptExit{})
				}
			}
			a.endWanted()
		}
	}
}

// endWanted ends what the queue wants ended.
func (a *mpiArrayTest) endWanted() {
	a.Helper()
	for vacates := a.queue.TakeVacates(); len(vacates) > 0; vacates = a.queue.TakeVacates() {
		for _, v := range vacates {
			if a.queue.IsLive(v.Attempt) {
				a.end(v.Attempt, eventlog.AttemptExit{Cause: eventlog.CauseRemoval})
			}
		}
	}
}

func (a *mpiArrayTest) step(rng *rand.Rand) {
	a.Helper()
	who, now := CallerIdentity{User: "ann", UID: 1}, time.Unix(5, 0)
	t := a.target([]string{"1", "1[10]", "1[20]", "1[30]", "1[15-40]"}[rng.IntN(5)])
	decide := func(events []eventlog.JobEvent, err error) {
		if err == nil {
			a.apply(events...)
		}
	}
	var live []roost.AttemptID
	for _, one := range a.queue.ActiveAttempts() {
		live = append(live, one.Attempt)
	}
	switch n := rng.IntN(12); {
	case n < 4:
		a.start()
	case n < 6 && len(live) > 0:
		a.end(live[rng.IntN(len(live))],
			eventlog.AttemptExit{Cause: eventlog.ExitCause(rng.IntN(int(eventlog.CausePreemption) + 1)),
				Code: int32(rng.IntN(2))})
	case n == 6 && len(live) > 0:
		if e, ok := a.queue.RecordLost(now, live[rng.IntN(len(live))], "gone"); ok {
			a.apply(e)
		}
	case n == 7:
		decide(a.queue.HoldTasks(now, who, t, ""))
	case n == 8:
		decide(a.queue.ReleaseTasks(now, who, t))
	case n == 9 && rng.IntN(4) == 0:
		decide(a.queue.RemoveTasks(now, who, t, "", false))
	case n == 10:
		decide(a.queue.RetryTasks(now, who, t))
	case n == 11 && rng.IntN(3) == 0:
		changes := classad.New()
		changes.SetInt(roost.AttrPriority, int64(rng.IntN(9)))
		changes.SetInt(roost.AttrRequestMemory, int64(100+rng.IntN(9)))
		decide(a.queue.AlterJob(now, who, TaskSelector{Job: t.Job},
			JobAlteration{Changes: changes, ExpectedVersion: -1}, SubmitLimits{}))
	default:
		a.endWanted()
	}
}

// TestMPIGangArrayOrder checks that of a long array only the first gangs ask for
// machines. Their turn comes as those before them start, are held and are released.
func TestMPIGangArrayOrder(t *testing.T) {
	q, err := gangQueue(t, "GangSize = 2; GangLed = true; Array = true", 400)
	if err != nil {
		t.Fatal(err)
	}
	asked := map[RequestID]bool{} // as whoever hears of each request that has changed knows them
	hear := func(events ...eventlog.JobEvent) {
		t.Helper()
		for _, e := range events {
			q.Apply(e)
		}
		q.Check()
		for _, id := range q.TakeDirtyRequests() {
			if r, ok := q.Request(id); ok && r.Ready > 0 && !q.WaitsForEarlierGang(id) {
				asked[id] = true
			} else {
				delete(asked, id)
			}
		}
		for n, open := 0, 0; n < 200; n++ {
			j := q.jobs[1]
			id := j.class(2 * n).request.ID
			want := j.gangs.wholeCount.Has(n) && open < maxRequestedGangs
			if j.gangs.wholeCount.Has(n) {
				open++
			}
			if asked[id] != want {
				t.Fatalf("gang %d, with %d ready before it, is asked for: %v", n, open, asked[id])
			}
		}
	}
	hear()
	who, rng := CallerIdentity{User: "ann", UID: 1}, rand.New(rand.NewPCG(1, 3))
	for range 300 {
		n := rng.IntN(200)
		one := TaskSelector{Job: roost.JobID{Seq: 1, Host: "h"},
			Ranges: []eventlog.IndexRange{{First: 2 * n, Last: 2*n + 2*rng.IntN(20) + 1}}}
		one.Ranges[0].Last = min(one.Ranges[0].Last, 399)
		switch rng.IntN(4) {
		case 0:
			if e, err := q.HoldTasks(time.Unix(2, 0), who, one, ""); err == nil {
				hear(e...)
			}
		case 1:
			if e, err := q.ReleaseTasks(time.Unix(2, 0), who, one); err == nil {
				hear(e...)
			}
		default:
			if id := q.jobs[1].class(2 * n).request.ID; asked[id] {
				if e, _, ok := q.AssignGang(time.Unix(3, 0), id,
					[]GangClaim{{Node: "a", Claim: 1}, {Node: "b", Claim: 2}}); ok {
					hear(e...)
				}
			}
		}
	}
	if s, ok := q.TaskStatus(roost.JobID{Seq: 1, Host: "h"}.Task(398)); ok && s.Task.State == roost.Idle &&
		s.Reason != earlierGangReason() {
		t.Errorf("the last waits: %q", s.Reason)
	}
}
