package queue

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

var (
	alice = CallerIdentity{User: "alice", UID: 1000, GID: 1000}
	root  = CallerIdentity{User: "root", Admin: true}
	bob   = CallerIdentity{User: "bob", UID: 1001, GID: 1001}
	epoch = time.Unix(1_700_000_000, 0)
)

func parseTestAd(t testing.TB, src string) *classad.Ad {
	t.Helper()
	a, err := classad.Parse("[Cmd = \"/bin/true\"; " + src + "]")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// testQueue is a queue and its log.
type testQueue struct {
	testing.TB
	queue *Queue
	log   []JobEvent
	keys  int
	now   time.Time
}

func newTestQueue(t testing.TB) *testQueue { return &testQueue{TB: t, queue: New("h"), now: epoch} }

func (d *testQueue) apply(events ...JobEvent) {
	for _, e := range events {
		decoded, err := DecodeEvent(AppendEvent(nil, &e))
		if err != nil {
			d.Fatalf("%v: %v", e, err)
		}
		d.queue.Apply(decoded)
		d.log = append(d.log, e)
		if _, bench := d.TB.(*testing.B); !bench {
			d.queue.Check()
		}
	}
}

func (d *testQueue) submit(count int, src string) roost.JobID {
	d.Helper()
	d.keys++
	events, ids, _, err := d.queue.SubmitJobs(d.now, alice, "k"+strconv.Itoa(d.keys),
		[]jobad.SubmitSpec{{Ad: parseTestAd(d, src), Count: count}}, SubmitLimits{})
	if err != nil {
		d.Fatal(err)
	}
	d.apply(events...)
	return ids[0]
}

// start assigns the next task of the only request that has one.
func (d *testQueue) start() roost.AttemptID {
	d.Helper()
	for _, r := range d.queue.Requests() {
		t, ok := d.queue.NextTask(r)
		if !ok {
			continue
		}
		e, a, err := d.queue.AssignNext(d.now, t, "n", "unix:/n", 1)
		if err != nil {
			d.Fatal(err)
		}
		d.apply(e)
		return a
	}
	d.Fatal("nothing is ready")
	return roost.AttemptID{}
}

func (d *testQueue) end(a roost.AttemptID, x AttemptExit) {
	d.Helper()
	e, err := d.queue.RecordEnded(d.now, a, &x)
	if err != nil {
		d.Fatal(err)
	}
	d.apply(e)
	d.apply(d.queue.Followups(d.now)...)
}

func (d *testQueue) checkState(id roost.JobID, want string) {
	d.Helper()
	s, _ := d.queue.Status(id.Seq)
	got := ""
	for state, n := range s.Counts {
		if n > 0 {
			got += fmt.Sprintf("%v %d ", roost.TaskState(state), n)
		}
	}
	if s.Failed > 0 {
		got += fmt.Sprintf("failed %d ", s.Failed)
	}
	if got != want+" " {
		d.Fatalf("%v: got %q (%s), want %q", id, got, s.Reason, want)
	}
}

// After a hold or a removal nothing starts, and what ran goes where it was wanted.
func TestHoldAndRemoveWhileRunning(t *testing.T) {
	d := newTestQueue(t)
	id := d.submit(2, "")
	first, second := d.start(), d.start()
	hold, err := d.queue.HoldTasks(d.now, alice, TaskSelector{Job: id, Ranges: []IndexRange{{0, 0}}}, "")
	if err != nil {
		t.Fatal(err)
	}
	d.apply(hold...)
	remove, err := d.queue.RemoveTasks(d.now, alice, TaskSelector{Job: id, Ranges: []IndexRange{{1, 1}}}, "", false)
	if err != nil {
		t.Fatal(err)
	}
	d.apply(remove...)
	if v := d.queue.TakeVacates(); len(v) != 2 {
		t.Fatalf("got %v, want both attempts vacated", v)
	}
	d.end(first, AttemptExit{Cause: CauseRemoval, Signal: 15})
	d.end(second, AttemptExit{Cause: CauseRemoval, Signal: 15})
	d.checkState(id, "held 1 removed 1")
	if _, err := d.queue.RemoveTasks(d.now, bob, TaskSelector{Job: id}, "", false); !errors.Is(err,
		roost.PermissionDenied) {
		t.Fatalf("bob removes alice's job: %v", err)
	}
	release, err := d.queue.ReleaseTasks(d.now, alice, TaskSelector{Job: id, Ranges: []IndexRange{{0, 0}}})
	if err != nil {
		t.Fatal(err)
	}
	d.apply(release...)
	if a := d.start(); a.Attempt != 2 {
		t.Fatalf("got attempt %d, want 2", a.Attempt)
	}
}

func TestOldEventsAreDropped(t *testing.T) {
	d := newTestQueue(t)
	d.submit(1, "MaxRetries = 5")
	first := d.start()
	d.end(first, AttemptExit{Code: 1})
	second := d.start()
	if _, err := d.queue.RecordEnded(d.now, first, &AttemptExit{}); !errors.Is(err, roost.Stale) {
		t.Fatalf("the end of the first attempt during the second: %v", err)
	}
	if _, ok := d.queue.RecordLost(d.now, first, "gone"); ok {
		t.Fatal("the first attempt was lost during the second")
	}
	if !d.queue.IsLive(second) {
		t.Fatal("the second attempt is not live")
	}
}

func TestDependencies(t *testing.T) {
	d := newTestQueue(t)
	parent := d.submit(2, "")
	ok := d.submit(1, `DependsOn = {"afterok:1"}`)
	notok := d.submit(1, `DependsOn = {"afternotok:1"}`)
	whatever := d.submit(1, `DependsOn = {"afterany:1"}`)
	chained := d.submit(1, `DependsOn = {"afterok:2"}`)
	d.checkState(ok, "blocked 1")
	d.end(d.start(), AttemptExit{})
	d.checkState(ok, "blocked 1")
	d.end(d.start(), AttemptExit{Code: 1})
	d.checkState(parent, "completed 2 failed 1")
	for events := d.queue.Followups(d.now); len(events) > 0; events = d.queue.Followups(d.now) {
		d.apply(events...)
	}
	d.checkState(ok, "removed 1")
	d.checkState(chained, "removed 1")
	d.checkState(notok, "idle 1")
	d.checkState(whatever, "idle 1")
}

func TestSameKeySameJob(t *testing.T) {
	d := newTestQueue(t)
	specs := []jobad.SubmitSpec{{Ad: parseTestAd(t, ""), Count: 1},
		{Ad: parseTestAd(t, `DependsOn = {"afterok:@0"}`), Count: 2}}
	events, first, _, err := d.queue.SubmitJobs(d.now, alice, "key", specs, SubmitLimits{})
	if err != nil {
		t.Fatal(err)
	}
	d.apply(events...)
	events, again, repeated, err := d.queue.SubmitJobs(d.now, alice, "key", specs, SubmitLimits{})
	if err != nil || !repeated || len(events) != 0 || len(again) != 2 || again[0] != first[0] || again[1] != first[1] {
		t.Fatalf("got %v, %v, %v, want %v again", again, repeated, err, first)
	}
	if _, ids, repeated, _ := d.queue.SubmitJobs(d.now, bob, "key", specs, SubmitLimits{}); repeated ||
		ids[0] == first[0] {
		t.Fatal("bob got alice's job by her key")
	}
}

func TestRefused(t *testing.T) {
	d := newTestQueue(t)
	for name, spec := range map[string]jobad.SubmitSpec{
		"no tasks":        {Ad: parseTestAd(t, ""), Count: 0},
		"too many tasks":  {Ad: parseTestAd(t, ""), Count: roost.MaxTasks + 1},
		"negative memory": {Ad: parseTestAd(t, "RequestMemory = -1"), Count: 1},
		"no cpus":         {Ad: parseTestAd(t, "RequestCpus = 0"), Count: 1},
		"priority":        {Ad: parseTestAd(t, "JobPrio = 5000"), Count: 1},
		"band":            {Ad: parseTestAd(t, `Band = "royal"`), Count: 1},
		"short column": {Ad: parseTestAd(t, ""), Count: 2, Columns: []jobad.TaskColumn{{Name: "A",
			Values: []string{"1"}}}},
		"bad override": {Ad: parseTestAd(t, ""), Count: 1,
			Columns: []jobad.TaskColumn{{Name: "RequestMemory", Values: []string{"lots"}}}},
		"unknown dependency":  {Ad: parseTestAd(t, `DependsOn = {"afterok:77"}`), Count: 1},
		"forward dependency":  {Ad: parseTestAd(t, `DependsOn = {"afterok:@0"}`), Count: 1},
		"type of dependency":  {Ad: parseTestAd(t, `DependsOn = {"whenever:1"}`), Count: 1},
		"transfer":            {Ad: parseTestAd(t, `Transfer = "maybe"`), Count: 1},
		"wrong type of value": {Ad: parseTestAd(t, `Walltime = "soon"`), Count: 1},
	} {
		if _, _, _, err := d.queue.SubmitJobs(d.now, alice, "k", []jobad.SubmitSpec{spec}, SubmitLimits{}); err == nil {
			t.Errorf("%s: it was taken", name)
		}
	}
	if d.queue.Len() != 0 {
		t.Fatal("the queue is not as before")
	}
}

func TestOrderAndLimits(t *testing.T) {
	d := newTestQueue(t)
	low, high := d.submit(2, "MaxRunning = 1"), d.submit(2, "JobPrio = 10; MaxRunning = 1")
	if a := d.start(); a.Task != high.Task(0) {
		t.Fatalf("got %v first, want the higher priority", a)
	}
	a := d.start()
	if a.Task != low.Task(0) {
		t.Fatalf("got %v, want the other job: the first may run one task at once", a)
	}
	if r, _ := d.queue.Request(1); r.Ready != 0 {
		t.Fatalf("%d tasks are ready, want none", r.Ready)
	}
	d.end(a, AttemptExit{})
	if b := d.start(); b.Task != low.Task(1) {
		t.Fatalf("got %v, want the next task", b)
	}
}

func TestLaunch(t *testing.T) {
	d := newTestQueue(t)
	spec := jobad.SubmitSpec{
		Ad: parseTestAd(t,
			`Arguments = {"--n=$(TaskIndex)", "$(Seed)", "$$HOME", "5$"}; Out = "$(JobSeq).$(JobHost).$(Seed).out"; Environment = {"ID=$(JobId)"}`),
		Count: 2, Columns: []jobad.TaskColumn{{Name: "Seed", Values: []string{"a", "$(x)"}}},
	}
	events, ids, _, err := d.queue.SubmitJobs(d.now, alice, "k", []jobad.SubmitSpec{spec}, SubmitLimits{})
	if err != nil {
		t.Fatal(err)
	}
	d.apply(events...)
	p, err := d.queue.Program(roost.AttemptID{Task: ids[0].Task(1), Attempt: 1})
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%s %v %s %v", p.Executable, p.Arguments, p.Out, p.Environment)
	if want := "/bin/true [--n=1 $(x) $HOME 5$] 1.h.$(x).out [ID=1.h]"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
}

func TestLaunchOfArray(t *testing.T) {
	d := newTestQueue(t)
	job := func(indexes string) jobad.SubmitSpec {
		return jobad.SubmitSpec{Ad: parseTestAd(t, `Arguments = {"$(ArrayIndex)"}; ArrayIndexes = "`+indexes+`"`),
			Count: 3}
	}
	events, ids, _, err := d.queue.SubmitJobs(d.now, alice, "k", []jobad.SubmitSpec{job("1-3:2,10")}, SubmitLimits{})
	if err != nil {
		t.Fatal(err)
	}
	d.apply(events...)
	for task, want := range []string{"1", "3", "10"} {
		p, err := d.queue.Program(roost.AttemptID{Task: ids[0].Task(task), Attempt: 1})
		if err != nil || p.Arguments[0] != want {
			t.Errorf("task %d has %v (%v), want %s", task, p.Arguments, err, want)
		}
	}
	for _, indexes := range []string{"7", "x", ""} {
		if _, _, _, err := d.queue.SubmitJobs(d.now, alice, "bad", []jobad.SubmitSpec{job(indexes)},
			SubmitLimits{}); !errors.Is(err, roost.Invalid) {
			t.Errorf("indexes %q for three tasks: %v", indexes, err)
		}
	}
	d.submit(1, "")
	_, err = d.queue.Program(roost.AttemptID{Task: roost.JobID{Seq: 2, Host: "h"}.Task(0), Attempt: 1})
	if err != nil {
		t.Error(err)
	}
}

func TestParseSelector(t *testing.T) {
	for in, want := range map[string]string{
		"12": "12.h", "12.other": "12.other", "12[]": "12.h", "12[3]": "12[3].h", "12[1-9:4].x": "12[1,5,9].x",
		"12[5,1-3,4]": "12[1-5].h", "12[": "", "x": "", "12[a]": "", "12[3-1]": "", "12[1-5:0]": "", "0": "",
	} {
		got, err := ParseSelector(in, "h")
		if (err == nil) != (want != "") || err == nil && got.String() != want {
			t.Errorf("%q: got %v, %v, want %q", in, got, err, want)
		}
	}
}

// Random work in any order keeps the invariants, and replay of the log ends in the same
// state, from the beginning and from a snapshot on the way.
func TestRandomAndReplay(t *testing.T) {
	for seed := range uint64(60) {
		d, rng := newTestQueue(t), rand.New(rand.NewPCG(seed, 7))
		var restored *Queue
		from, restart := 0, rng.IntN(300)
		for i := range 300 {
			d.randomStep(rng)
			if i == restart {
				restored, from = d.restoredCopy(), len(d.log)
			}
		}
		replayed := New("h")
		for _, e := range d.log {
			replayed.Apply(e)
		}
		for _, e := range d.log[from:] {
			restored.Apply(e)
			restored.Check()
		}
		replayed.Check()
		d.checkSame(replayed)
		d.checkSame(restored)
		d.checkSame(d.restoredCopy())
	}
}

// restoredCopy is a queue made of the snapshots of the desk's.
func (d *testQueue) restoredCopy() *Queue {
	d.Helper()
	q := New("h")
	for seq := range d.queue.jobs {
		b, _ := d.queue.Snapshot(seq)
		if err := q.RestoreSnapshot(b); err != nil {
			d.Fatal(err)
		}
	}
	q.RaiseLastSeq(d.queue.LastSeq())
	q.Check()
	return q
}

// checkSame fails unless a queue holds what the desk's does.
func (d *testQueue) checkSame(q *Queue) {
	d.Helper()
	if q.Len() != d.queue.Len() || q.OpenTaskCount() != d.queue.OpenTaskCount() {
		d.Fatalf("got %d jobs and %d tasks, want %d and %d", q.Len(), q.OpenTaskCount(), d.queue.Len(),
			d.queue.OpenTaskCount())
	}
	for seq := range d.queue.jobs {
		want, _ := d.queue.Snapshot(seq)
		got, _ := q.Snapshot(seq)
		a, _ := d.queue.Status(seq)
		b, _ := q.Status(seq)
		a.Request, b.Request = 0, 0
		if !bytes.Equal(got, want) || fmt.Sprintf("%+v", a) != fmt.Sprintf("%+v", b) && a.Task == nil {
			d.Fatalf("job %d is %+v, want %+v\n%x\n%x", seq, b, a, got, want)
		}
	}
}

func (d *testQueue) randomStep(rng *rand.Rand) {
	d.now = d.now.Add(time.Second)
	seq := uint64(1 + rng.IntN(int(d.queue.lastSeq)+1))
	target := TaskSelector{Job: roost.JobID{Seq: seq, Host: "h"}}
	if rng.IntN(2) == 0 {
		target.Ranges = []IndexRange{{0, rng.IntN(3)}}
	}
	var events []JobEvent
	switch rng.IntN(16) {
	case 14, 15:
		events = d.urge(rng, target)
	case 12:
		a := JobAlteration{Changes: alteredAd(d, randomChange(rng)), ExpectedVersion: -1}
		if rng.IntN(8) == 0 {
			a.Count = 1 + rng.IntN(5)
		}
		target.Ranges = nil
		events, _ = d.queue.AlterJob(d.now, alice, target, a, SubmitLimits{})
	case 13:
		other := TaskSelector{Job: roost.JobID{Seq: 1 + rng.Uint64N(d.queue.lastSeq+1), Host: "h"}}
		events, _ = d.queue.SwapOrder(d.now, alice, TaskSelector{Job: target.Job}, other)
	case 0:
		extra := []string{"", "MaxRetries = 1", "MaxRunning = 2", "Rerunnable = false", "HoldOnSubmit = true",
			"DeferralTime = 1700000200", "PBS = []", "GangSize = 2"}[rng.IntN(8)]
		spec := jobad.SubmitSpec{Ad: parseTestAd(d, extra), Count: 1 + rng.IntN(5)}
		if d.queue.jobs[seq] != nil && rng.IntN(3) == 0 {
			spec.Ad.SetStrings(roost.AttrDependsOn, d.anyDependencies(rng))
		}
		if rng.IntN(3) == 0 {
			c := jobad.TaskColumn{Name: []string{roost.AttrRequestMemory, roost.AttrWalltime}[rng.IntN(2)]}
			for range spec.Count {
				c.Values = append(c.Values, strconv.Itoa(1024*(1+rng.IntN(2))))
			}
			spec.Columns = []jobad.TaskColumn{c}
		}
		d.keys++
		events, _, _, _ = d.queue.SubmitJobs(d.now, alice, strconv.Itoa(d.keys), []jobad.SubmitSpec{spec},
			SubmitLimits{})
	case 1:
		events = d.holdTasks(rng, target)
	case 2:
		events, _ = d.queue.ReleaseTasks(d.now, []CallerIdentity{alice, root}[rng.IntN(2)], target)
	case 3:
		events, _ = d.queue.RemoveTasks(d.now, alice, target, "", false)
	case 4:
		events, _ = d.queue.RetryTasks(d.now, alice, target)
	case 5:
		if done := d.queue.TakeFinal(); len(done) > 0 && rng.IntN(3) == 0 {
			if e, ok := d.queue.PurgeJob(d.now, done[0]); ok {
				events = []JobEvent{e}
			}
		}
	case 6:
		events, _ = d.queue.SuspendTasks(d.now, alice, target, "")
	case 7:
		events, _ = d.queue.ResumeTasks(d.now, alice, target)
	case 8:
		events, _ = d.queue.RerunTasks(d.now, alice, target, false)
	default:
		events = d.advanceRandom(rng)
	}
	d.apply(events...)
	d.apply(d.queue.Followups(d.now)...)
}

// advanceRandom moves some task a step on.
func (d *testQueue) advanceRandom(rng *rand.Rand) []JobEvent {
	if live := d.queue.ActiveAttempts(); len(live) > 0 && rng.IntN(2) == 0 {
		a := live[rng.IntN(len(live))].Attempt
		switch rng.IntN(6) {
		case 3:
			if e, err := d.queue.RecordCheckpoint(d.now,
				a, CheckpointImage{Sequence: uint64(len(d.log)), CPUUsage: CPUUsage{Wall: 1}}); err == nil {
				return []JobEvent{e}
			}
		case 4:
			if e, ok := d.queue.RecordCheckpointFailure(d.now, a, "no", rng.IntN(2) == 0); ok {
				return []JobEvent{e}
			}
		case 0:
			if e, ok := d.queue.RecordStarted(d.now, a); ok {
				return []JobEvent{e}
			}
		case 1:
			if e, ok := d.queue.RecordLost(d.now, a, "node gone"); ok {
				return []JobEvent{e}
			}
		}
		e, err := d.queue.RecordEnded(d.now, a,
			&AttemptExit{Code: int32(rng.IntN(2)), Cause: ExitCause(rng.IntN(int(CauseRestore) + 1))})
		if err != nil {
			d.Fatal(err)
		}
		return []JobEvent{e}
	}
	for _, r := range d.queue.Requests() {
		if size, ok := d.queue.NextGang(r); ok && size > 1 {
			events, _, ok := d.queue.AssignGang(d.now,
				r, slices.Repeat([]GangClaim{{Node: "n", Address: "unix:/n", Claim: 1}}, size))
			if !ok {
				d.Fatalf("a gang of %d of request %d is whole, and cannot be assigned", size, r)
			}
			return events
		}
		if t, ok := d.queue.NextTask(r); ok {
			e, _, err := d.queue.AssignNext(d.now, t, "n", "unix:/n", 1)
			if err != nil {
				d.Fatal(err)
			}
			return []JobEvent{e}
		}
	}
	return nil
}
