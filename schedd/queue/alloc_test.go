package queue

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

const (
	testAllocAd  = "Alloc = true; RequestCpus = 2; RequestMemory = 1024"
	testInsideAd = "InAlloc = \"%v\"; RequestCpus = 1; RequestMemory = 512; Band = \"free\""
)

// openAlloc has an alloc of a set placed on a machine, and opened.
func (d *testQueue) openAlloc(set roost.JobID, index int, node string) roost.AttemptID {
	d.Helper()
	e, a, err := d.queue.AssignNext(d.now, set.Task(index), node, node+":1", uint64(100+index))
	if err != nil {
		d.Fatal(err)
	}
	d.apply(e)
	started, ok := d.queue.RecordStarted(d.now, a)
	if !ok {
		d.Fatalf("%v: not started", a)
	}
	d.apply(started)
	return a
}

// putInside has the next task of a job run inside an alloc; false if none may.
func (d *testQueue) putInside(job roost.JobID, alloc roost.TaskID, node string) (roost.AttemptID, bool) {
	d.Helper()
	st, _ := d.queue.Status(job.Seq)
	t, ok := d.queue.NextInside(st.Request, alloc)
	if !ok {
		return roost.AttemptID{}, false
	}
	e, a, ok := d.queue.AssignInside(d.now, t, alloc, node, node+":1", 7)
	if ok {
		d.apply(e)
	}
	return a, ok
}

// trySubmit submits as somebody, and returns the error.
func (d *testQueue) trySubmit(who CallerIdentity, count int, src string) error {
	d.Helper()
	d.keys++
	_, _, _, err := d.queue.SubmitJobs(d.now, who, fmt.Sprint("try", d.keys),
		[]jobad.SubmitSpec{{Ad: parseTestAd(d, src), Count: count}}, SubmitLimits{})
	return err
}

func TestInsideAlloc(t *testing.T) {
	d := newTestQueue(t)
	set := d.submit(2, testAllocAd+"; Band = \"production\"")
	web := d.submit(2, fmt.Sprintf(testInsideAd, set))
	st, _ := d.queue.Status(web.Seq)
	if st.Band != roost.ProductionBand {
		t.Errorf("the band is %v, and that of its alloc is wanted", st.Band)
	}
	if r, _ := d.queue.Request(st.Request); r.Inside.Alloc != set.Seq {
		t.Errorf("the request is inside %d", r.Inside.Alloc)
	}
	if want, ok := d.queue.TasksInside(st.Request); !ok || len(want.Allocs) != 0 {
		t.Errorf("before an alloc is open: %+v", want)
	}
	d.queue.TakeDirtyRequests()
	d.openAlloc(set, 1, "n1")
	if want, _ := d.queue.TasksInside(st.Request); len(want.Allocs) != 1 || want.Allocs[0] != set.Task(1) {
		t.Errorf("with one open: %+v", want)
	}
	if dirty := d.queue.TakeDirtyRequests(); !strings.Contains(fmt.Sprint(dirty), fmt.Sprint(st.Request)) {
		t.Errorf("nobody looks at request %d: %v", st.Request, dirty)
	}
	if _, ok := d.putInside(web, set.Task(0), "n1"); ok {
		t.Error("a task is inside an alloc that is not open")
	}
	a, ok := d.putInside(web, set.Task(1), "n1")
	if !ok || a.Task.Index != 1 {
		t.Fatalf("inside alloc 1: %v, %v", a, ok)
	}
	if got, _ := d.queue.TaskStatus(set.Task(1)); got.Reason != "held open, 1 task inside" {
		t.Errorf("the alloc says %q", got.Reason)
	}
	if got, _ := d.queue.TaskStatus(web.Task(0)); got.Reason != "waits for its alloc 1[0].h, which is idle" {
		t.Errorf("the waiting task says %q", got.Reason)
	}
	d.checkSame(d.restoredCopy())
}

func TestAllocLosesItsMachine(t *testing.T) {
	d := newTestQueue(t)
	set := d.submit(1, testAllocAd)
	web := d.submit(1, fmt.Sprintf(testInsideAd, set))
	alloc := d.openAlloc(set, 0, "n1")
	first, _ := d.putInside(web, set.Task(0), "n1")
	d.end(alloc, eventlog.AttemptExit{Cause: eventlog.CauseExited, Signal: 9}) // before the end of what was inside
	d.checkState(set, "idle 1")
	d.openAlloc(set, 0, "n2")
	d.end(first, eventlog.AttemptExit{Cause: eventlog.CauseVacate, Reason: "its alloc ends"})
	second, ok := d.putInside(web, set.Task(0), "n2")
	if !ok || second.Attempt != 2 {
		t.Fatalf("it does not follow its alloc: %v, %v", second, ok)
	}
}

func TestRemoveAlloc(t *testing.T) {
	d := newTestQueue(t)
	set := d.submit(3, testAllocAd)
	web, any := d.submit(2, fmt.Sprintf(testInsideAd, set)), d.submit(5,
		fmt.Sprintf(testInsideAd, set)+"; AllocPlace = \"any\"")
	remove := func(ranges ...eventlog.IndexRange) {
		t.Helper()
		events, err := d.queue.RemoveTasks(d.now, alice, TaskSelector{Job: set, Ranges: ranges}, "", false)
		if err != nil {
			t.Fatal(err)
		}
		d.apply(events...)
	}
	remove(eventlog.IndexRange{First: 1, Last: 2})
	if st, _ := d.queue.TaskStatus(web.Task(1)); st.Task.State != roost.Removed {
		t.Errorf("inside alloc 1: %v", st.Task.State)
	}
	if st, _ := d.queue.TaskStatus(web.Task(0)); st.Task.State != roost.Idle {
		t.Errorf("inside alloc 0: %v", st.Task.State)
	}
	remove()
	for _, job := range []roost.JobID{set, web, any} {
		if st, _ := d.queue.Status(job.Seq); st.Counts[roost.Removed] != len(d.queue.jobs[job.Seq].state) {
			t.Errorf("%v: %v", job, st.Counts)
		}
	}
	if st, _ := d.queue.TaskStatus(any.Task(0)); st.Reason != "its alloc 1.h was removed" {
		t.Errorf("it says %q", st.Reason)
	}
}

func TestSubmitInsideIsRefused(t *testing.T) {
	d := newTestQueue(t)
	set, plain := d.submit(2, testAllocAd), d.submit(1, "")
	bob := CallerIdentity{User: "bob", UID: 77}
	for _, c := range []struct {
		who   CallerIdentity
		count int
		ad    string
		kind  error
		want  string
	}{
		{alice, 1, "InAlloc = \"99\"", roost.NotFound, "there is no alloc set 99.h"},
		{alice, 1, fmt.Sprintf("InAlloc = \"%v\"", plain), roost.Invalid, "is a job, and no alloc set"},
		{bob, 1, fmt.Sprintf("InAlloc = \"%v\"", set), roost.PermissionDenied, "belongs to alice"},
		{alice, 3, fmt.Sprintf("InAlloc = \"%v\"", set), roost.Invalid, "it has 3 tasks, and the alloc set 2 allocs"},
		{alice, 1, fmt.Sprintf("InAlloc = \"%v\"; RequestCpus = 3", set), roost.Invalid,
			"3 cores, and the alloc has 2"},
		{alice, 1, fmt.Sprintf("InAlloc = \"%v\"; Requirements = true", set), roost.Invalid,
			"it belongs to the alloc set"},
		{alice, 1, fmt.Sprintf("InAlloc = \"%v\"; Alloc = true", set), roost.Invalid, "cannot be inside another"},
		{alice, 2, fmt.Sprintf("InAlloc = \"%v\"; GangSize = 2", set), roost.Invalid, "no gangs"},
		{alice, 1, "InAlloc = \"@0\"", roost.Invalid, "only an earlier job"},
		{alice, 1, "Alloc = true; Walltime = 60", roost.Invalid, "stays until it is removed"},
		{alice, 1, "Alloc = true; Service = []", roost.Invalid, "runs nothing by itself"},
	} {
		if err := d.trySubmit(c.who, c.count, c.ad); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.ad, err, c.want)
		}
	}
	events, err := d.queue.RemoveTasks(d.now, alice, TaskSelector{Job: set}, "", false)
	if err != nil {
		t.Fatal(err)
	}
	d.apply(events...)
	if err := d.trySubmit(alice, 1, fmt.Sprintf("InAlloc = \"%v\"", set)); !errors.Is(err, roost.Finished) {
		t.Errorf("into one that has ended: %v", err)
	}
}

// TestAllocsAtRandom plays allocs and what is inside them. Each event is checked, and the
// log and the snapshots lead to the same queue.
func TestAllocsAtRandom(t *testing.T) {
	inside := 0
	for seed := range uint64(40) {
		d, rng := newTestQueue(t), rand.New(rand.NewPCG(seed, 11))
		set := d.submit(3, testAllocAd)
		jobs := []roost.JobID{set, d.submit(3, fmt.Sprintf(testInsideAd, set)),
			d.submit(2, fmt.Sprintf(testInsideAd, set)+"; AllocPlace = \"any\""),
			d.submit(2, fmt.Sprintf(testInsideAd, set)+"; Service = []")}
		for range 200 {
			inside += d.randomAllocStep(rng, set, jobs)
		}
		replayed := New("h")
		for _, e := range d.log {
			replayed.Apply(e)
		}
		replayed.Check()
		d.checkSame(replayed)
		d.checkSame(d.restoredCopy())
	}
	if inside < 200 {
		t.Errorf("only %d tasks were inside allocs", inside)
	}
}

// randomAllocStep does one thing, and returns how many tasks it has put inside an alloc.
func (d *testQueue) randomAllocStep(rng *rand.Rand, set roost.JobID, jobs []roost.JobID) (inside int) {
	live := d.queue.ActiveAttempts()
	index := rng.IntN(5)
	alloc, ok := d.queue.TaskStatus(set.Task(index))
	if !ok { // the set has fewer allocs
		return 0
	}
	switch rng.IntN(9) {
	case 0, 1:
		if alloc.Task.State == roost.Idle {
			d.openAlloc(set, index, fmt.Sprint("n", rng.IntN(3)))
		}
	case 2, 3, 4:
		job := jobs[1+rng.IntN(3)]
		held := roost.Resources{}
		for _, a := range live {
			if a.Alloc.Task == set.Task(index) {
				held = held.Add(a.Request.Resources)
			}
		}
		if st, _ := d.queue.Status(job.Seq); held.Add(st.Resources).FitsIn(alloc.Resources) {
			if _, ok := d.putInside(job, set.Task(index), alloc.Task.Node); ok {
				inside++
			}
		}
	case 5:
		if len(live) > 0 {
			d.end(live[rng.IntN(len(live))].Attempt, eventlog.AttemptExit{Cause: eventlog.CauseVacate})
		}
	case 6:
		if len(live) > 0 {
			a := live[rng.IntN(len(live))].Attempt
			if e, ok := d.queue.RecordLost(d.now, a, "its node was away"); ok {
				d.apply(e)
			}
		}
	case 7:
		if events, err := d.queue.RemoveTasks(d.now, alice, TaskSelector{Job: jobs[rng.IntN(len(jobs))],
			Ranges: []eventlog.IndexRange{{First: rng.IntN(2), Last: 1}}}, "", false); err == nil && rng.IntN(8) == 0 {
			d.apply(events...)
		}
	case 8:
		events, _, err := d.queue.ReviseJob(d.now, alice, TaskSelector{Job: set},
			JobRevision{CountOnly: true, Count: 2 + rng.IntN(4)}, SubmitLimits{})
		for _, e := range events {
			e.Submission.DeferredAdmission = false
			d.apply(e)
		}
		if err != nil && !errors.Is(err, roost.Conflict) && !errors.Is(err, roost.Finished) {
			d.Fatal(err)
		}
	}
	return inside
}

func TestAlterAlloc(t *testing.T) {
	d := newTestQueue(t)
	set := d.submit(2, testAllocAd)
	web := d.submit(2, fmt.Sprintf(testInsideAd, set))
	for _, c := range []struct {
		job           roost.JobID
		changes, want string
	}{
		{web, "RequestCpus = 3", "3 cores, and the alloc has 2"},
		{set, "RequestMemory = 256", "512MiB of memory, and the alloc has 256MiB then: remove the job first"},
		{web, "InAlloc = \"5\"", "it says what the job is"},
		{set, "Alloc = false", "it says what the job is"},
	} {
		_, err := d.queue.AlterJob(d.now, alice, TaskSelector{Job: c.job}, JobAlteration{
			Changes: parseTestAd(d, c.changes), ExpectedVersion: -1}, SubmitLimits{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v %s: got %v, want %q", c.job, c.changes, err, c.want)
		}
	}
	if got, _ := d.queue.TaskResources(web.Seq, 0); got != (roost.Resources{}) {
		t.Errorf("a task inside is charged for %v", got)
	}
	if got, _ := d.queue.TaskResources(set.Seq, 0); got.CPU != 2000 {
		t.Errorf("an alloc is charged for %v", got)
	}
}

// TestDrainMovesAllocs checks that an alloc leaves a drained machine with all services
// inside, as their budgets allow.
func TestDrainMovesAllocs(t *testing.T) {
	d := newTestQueue(t)
	set := d.submit(3, testAllocAd)
	web := d.submit(2, fmt.Sprintf(testInsideAd, set)+"; Service = []")
	for i := range 3 {
		d.openAlloc(set, i, "n")
	}
	for i := range 2 {
		a, ok := d.putInside(web, set.Task(i), "n")
		if !ok {
			t.Fatalf("nothing is inside alloc %d", i)
		}
		started, _ := d.queue.RecordStarted(d.now, a)
		d.apply(started)
	}
	batch := d.submit(1, fmt.Sprintf(testInsideAd, set)+"; AllocPlace = \"any\"")
	if _, ok := d.putInside(batch, set.Task(2), "n"); !ok {
		t.Fatal("nothing is inside alloc 2")
	}
	if got := d.evict(NodeDrain{Node: "n"}); got != "2[0] 1[0]" {
		t.Fatalf("got %q: one alloc with its service, and none with a task of batch", got)
	}
	if got, _ := d.queue.TaskStatus(web.Task(1)); !strings.Contains(got.Reason, "is drained, and it waits") {
		t.Errorf("the other one says %q", got.Reason)
	}
}

// TestResizeAlloc has an alloc set become larger, one alloc at once and the other when
// its machine has room. It does not become smaller than what is inside.
func TestResizeAlloc(t *testing.T) {
	d := newTestQueue(t)
	set := d.submit(2, testAllocAd)
	inside := d.submit(2, fmt.Sprintf(testInsideAd, set))
	for i := range 2 {
		d.openAlloc(set, i, "n1")
		d.putInside(inside, set.Task(i), "n1")
	}
	resize := func(src string, count int) error {
		events, _, err := d.queue.ReviseJob(d.now, alice, TaskSelector{Job: set},
			JobRevision{Ad: parseTestAd(t, src), Count: count}, SubmitLimits{})
		for _, e := range events {
			e.Submission.DeferredAdmission = false
			d.apply(e)
		}
		return err
	}
	answer := func(refusals ...string) {
		t.Helper()
		asked := d.queue.TakeResizes()
		if len(asked) != len(refusals) {
			t.Fatalf("asked were %v", asked)
		}
		for i, r := range asked {
			e, ok := d.queue.RecordResize(d.now, r.Attempt, r.Resources, refusals[i])
			if !ok {
				t.Fatalf("no answer: %v", r)
			}
			d.apply(e)
		}
	}
	for src, want := range map[string]string{
		"Alloc = true; RequestCpus = 2; RequestMemory = 256":                        "asks for",
		"Alloc = true; RequestCpus = 2; RequestMemory = 1024; Requirements = false": "attribute Requirements",
	} {
		if err := resize(src, 2); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", src, err)
		}
	}
	if err := resize("Alloc = true; RequestCpus = 4; RequestMemory = 2048", 2); err != nil {
		t.Fatal(err)
	}
	if err := resize(testAllocAd, 2); !errors.Is(err, roost.Conflict) {
		t.Errorf("while a machine is asked: %v", err)
	}
	answer("", "no room")
	for i, want := range []roost.MilliCPU{4000, 2000} {
		if st, _ := d.queue.TaskStatus(set.Task(i)); st.Resources.CPU != want {
			t.Errorf("alloc %d has %v", i, st.Resources)
		}
	}
	st, _ := d.queue.TaskStatus(set.Task(1))
	if !strings.Contains(st.Reason, "it cannot have 4 cores and 2GiB of memory where it runs: no room") {
		t.Errorf("got %q", st.Reason)
	}
	d.now = d.now.Add(resizeRetry)
	d.apply(d.queue.Followups(d.now)...)
	answer("")
	if st, _ := d.queue.TaskStatus(set.Task(1)); st.Resources.CPU != 4000 {
		t.Errorf("the second alloc has %v", st.Resources)
	}
}

// TestShrinkAlloc has a machine make an alloc smaller after both tasks inside have ended.
// Their ends are not recorded.
func TestShrinkAlloc(t *testing.T) {
	d := newTestQueue(t)
	set := d.submit(1, testAllocAd)
	d.openAlloc(set, 0, "n1")
	for range 2 {
		if _, ok := d.putInside(d.submit(1, fmt.Sprintf(testInsideAd, set)), set.Task(0), "n1"); !ok {
			t.Fatal("a task does not start inside")
		}
	}
	events, _, err := d.queue.ReviseJob(d.now, alice, TaskSelector{Job: set},
		JobRevision{Ad: parseTestAd(t, "Alloc = true; RequestCpus = 1; RequestMemory = 512"), Count: 1}, SubmitLimits{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		e.Submission.DeferredAdmission = false
		d.apply(e)
	}
	for _, r := range d.queue.TakeResizes() {
		e, ok := d.queue.RecordResize(d.now, r.Attempt, r.Resources, "")
		if !ok {
			t.Fatalf("no answer: %v", r)
		}
		d.apply(e)
	}
	st, _ := d.queue.Status(set.Seq)
	if st.Resources.CPU != 1000 || st.Alloc.Tasks != 2 || st.Alloc.Inside.CPU != 2000 {
		t.Errorf("the alloc has %v, and inside are %+v", st.Resources, st.Alloc)
	}
}

// TestCountAllocs has an alloc set get further allocs, fewer, and those again that it
// had. What is inside by its index needs its alloc.
func TestCountAllocs(t *testing.T) {
	d := newTestQueue(t)
	set := d.submit(2, testAllocAd)
	d.submit(2, fmt.Sprintf(testInsideAd, set))
	anywhere := d.submit(1, fmt.Sprintf(testInsideAd, set)+"; AllocPlace = \"any\"")
	count := func(n int) error {
		events, _, err := d.queue.ReviseJob(d.now, alice, TaskSelector{Job: set},
			JobRevision{CountOnly: true, Count: n}, SubmitLimits{})
		for _, e := range events {
			e.Submission.DeferredAdmission = false
			d.apply(e)
		}
		return err
	}
	if err := count(1); !errors.Is(err, roost.Conflict) || !strings.Contains(err.Error(), "has 2 tasks") {
		t.Errorf("fewer allocs than a job inside needs: %v", err)
	}
	if err := count(4); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		d.openAlloc(set, i, "n1")
	}
	if _, ok := d.putInside(anywhere, set.Task(3), "n1"); !ok {
		t.Fatal("nothing runs inside a further alloc")
	}
	if err := count(2); err != nil {
		t.Fatal(err)
	}
	d.checkSame(d.restoredCopy())
	if err := count(3); !errors.Is(err, roost.Conflict) {
		t.Errorf("the third alloc still ends: %v", err)
	}
	for _, a := range d.queue.ActiveAttempts() {
		if a.Attempt.Task.Job != set || a.Attempt.Task.Index >= 2 {
			d.end(a.Attempt, eventlog.AttemptExit{Cause: eventlog.CauseVacate})
		}
	}
	if err := count(3); err != nil {
		t.Fatal(err)
	}
	for task, want := range map[roost.TaskID]roost.TaskState{set.Task(2): roost.Idle, set.Task(3): roost.Removed,
		anywhere.Task(0): roost.Idle} {
		if st, _ := d.queue.TaskStatus(task); st.Task.State != want {
			t.Errorf("%v is %v, want %v", task, st.Task.State, want)
		}
	}
	d.checkSame(d.restoredCopy())
}

// TestSubmitIntoRemovedAllocs checks that nothing is submitted into an alloc set whose
// last allocs end: it would wait for ever.
func TestSubmitIntoRemovedAllocs(t *testing.T) {
	d := newTestQueue(t)
	set := d.submit(2, testAllocAd)
	d.openAlloc(set, 0, "n1")
	d.openAlloc(set, 1, "n2")
	remove := func(ranges ...eventlog.IndexRange) {
		events, err := d.queue.RemoveTasks(d.now, alice, TaskSelector{Job: set, Ranges: ranges}, "", false)
		if err != nil {
			t.Fatal(err)
		}
		d.apply(events...)
	}
	remove(eventlog.IndexRange{First: 0, Last: 0})
	if err := d.trySubmit(alice, 1, fmt.Sprintf(testInsideAd, set)); err != nil {
		t.Errorf("while an alloc remains: %v", err)
	}
	remove(eventlog.IndexRange{First: 1, Last: 1})
	if err := d.trySubmit(alice, 1, fmt.Sprintf(testInsideAd, set)); !errors.Is(err, roost.Finished) {
		t.Errorf("when none does: %v", err)
	}
}
