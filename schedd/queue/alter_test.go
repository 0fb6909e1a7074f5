package queue

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

func alteredAd(t testing.TB, src string) *classad.Ad {
	t.Helper()
	a, err := classad.Parse("[" + src + "]")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// randomChange is one of those that differ in what follows.
func randomChange(rng *rand.Rand) string {
	all := []string{
		"RequestMemory = 1024", "RequestMemory = 2048; JobPrio = 3", "Walltime = 60", "Walltime = undefined",
		"JobPrio = -5", "MaxRunning = 1", "MaxRunning = undefined",
		"DeferralTime = 1700000250", "DeferralTime = undefined", "DependsOn = undefined", `AccountingGroup = "physics"`,
		`Band = "free"`, "MaxRetries = 2",
		"Rerunnable = false", `Queue = "long"`, `JobName = "other"`, "GangSize = 2", "GangSize = undefined",
		fmt.Sprintf(`DependsOn = {"afterany:%d"}`, 1+rng.IntN(5)), "WantCheckpoint = false",
		fmt.Sprintf(`DependsOn = {"runone:%d"}`, 1+rng.IntN(5)), fmt.Sprintf(`DependsOn = {"on:1","afterok:%d"}`,
			1+rng.IntN(5)), fmt.Sprintf(`DependsOn = {"before:%d"}`, 1+rng.IntN(5)),
	}
	return all[rng.IntN(len(all))]
}

func (d *testQueue) alterJob(id roost.JobID, changes string) {
	d.Helper()
	events, err := d.queue.AlterJob(d.now, alice, TaskSelector{Job: id},
		JobAlteration{Changes: alteredAd(d, changes), ExpectedVersion: -1}, SubmitLimits{})
	if err != nil {
		d.Fatal(err)
	}
	d.apply(events...)
}

// TestAlteredRequest checks that an alteration moves what waits to another request, and
// leaves none behind.
func TestAlteredRequest(t *testing.T) {
	d := newTestQueue(t)
	id := d.submit(3, "")
	before := d.queue.Requests()[0]
	d.queue.TakeDirtyRequests()
	d.alterJob(id, "RequestMemory = 1024; Walltime = 7200")
	all := d.queue.Requests()
	if len(all) != 1 || all[0] == before {
		t.Fatalf("the requests are %v, and there was %d", all, before)
	}
	r, _ := d.queue.Request(all[0])
	if r.Ready != 3 || r.Resources.Memory != roost.GiB || r.Walltime != 2*time.Hour {
		t.Fatalf("the request is %+v", r)
	}
	if dirty := d.queue.TakeDirtyRequests(); len(dirty) != 2 {
		t.Fatalf("of %v it is told that they have changed, want both", dirty)
	}
	d.queue.TakeUnsaved()
	events, err := d.queue.AlterJob(d.now, alice, TaskSelector{Job: id},
		JobAlteration{Changes: alteredAd(t, "RequestMemory = 1024"), ExpectedVersion: -1}, SubmitLimits{})
	if err != nil || events != nil {
		t.Fatalf("what it is already gives %v, %v", events, err)
	}
}

// TestAlteredWhileTasksRun checks that running tasks keep the request with which they
// began, across a restart too. When they run again they are what the job is now.
func TestAlteredWhileTasksRun(t *testing.T) {
	d := newTestQueue(t)
	id := d.submit(3, `Out = "old"`)
	first := d.start()
	d.alterJob(id, `RequestMemory = 2048; Out = "new"; AccountingGroup = "physics"`)
	d.alterJob(id, "RequestMemory = 4096")
	check := func(name string) {
		t.Helper()
		if r, _ := d.queue.RequestOf(first.Task); r.Resources.Memory == 4*roost.GiB || r.Ready != 0 || r.Group != "" {
			t.Fatalf("%s: the task that runs has the request %+v", name, r)
		}
		if r, _ := d.queue.RequestOf(id.Task(1)); r.Resources.Memory != 4*roost.GiB || r.Ready != 2 ||
			r.Group != "physics" {
			t.Fatalf("%s: the next task has the request %+v", name, r)
		}
		if p, err := d.queue.Program(first); err != nil || p.Out != "old" {
			t.Fatalf("%s: it writes to %s, %v", name, p.Out, err)
		}
	}
	check("altered")
	d.queue = d.restoredCopy()
	check("restored")
	e, _ := d.queue.RecordLost(d.now, first, "gone")
	d.apply(e)
	if r, _ := d.queue.RequestOf(first.Task); r.Resources.Memory != 4*roost.GiB || r.Ready != 3 {
		t.Fatalf("after its end it has the request %+v", r)
	}
	if p, err := d.queue.Program(roost.AttemptID{Task: first.Task, Attempt: 2}); err != nil || p.Out != "new" {
		t.Fatalf("it writes to %s, %v", p.Out, err)
	}
}

func TestAlterRefused(t *testing.T) {
	d := newTestQueue(t)
	runs := d.submit(1, "Walltime = 100")
	d.start()
	gone := d.submit(1, "")
	a := d.start()
	remove, _ := d.queue.RemoveTasks(d.now, alice, TaskSelector{Job: gone}, "", false)
	d.apply(remove...)
	spec := jobad.SubmitSpec{Ad: parseTestAd(t, ""), Count: 2,
		Columns: []jobad.TaskColumn{{Name: roost.AttrRequestMemory, Values: []string{"1048576", "2097152"}}}}
	events, ids, _, err := d.queue.SubmitJobs(d.now, alice, "k", []jobad.SubmitSpec{spec}, SubmitLimits{})
	if err != nil {
		t.Fatal(err)
	}
	d.apply(events...)
	waits := d.submit(1, "Walltime = 100")
	later := d.submit(1, fmt.Sprintf("DependsOn = {\"afterok:%d\"}", waits.Seq))
	root := CallerIdentity{User: "root", Admin: true}
	for _, c := range []struct {
		who     CallerIdentity
		target  TaskSelector
		changes string
		basis   int64
		want    error
	}{
		{alice, TaskSelector{Job: waits}, "JobPrio = 4000", -1, roost.Invalid},
		{alice, TaskSelector{Job: waits}, "RequestCpus = 0", -1, roost.Invalid},
		{alice, TaskSelector{Job: waits}, `Owner = "bob"`, -1, roost.Invalid},
		{alice, TaskSelector{Job: waits}, "ownerUID = 0", -1, roost.Invalid},
		{alice, TaskSelector{Job: waits}, "GangSize = 2", -1, roost.Invalid},
		{alice, TaskSelector{Job: waits}, `DependsOn = {"afterok:99"}`, -1, roost.NotFound},
		{alice, TaskSelector{Job: waits}, fmt.Sprintf(`DependsOn = {"afterok:%d"}`, waits.Seq), -1, roost.Conflict},
		{alice, TaskSelector{Job: waits}, fmt.Sprintf(`DependsOn = {"after:%d"}`, later.Seq), -1, roost.Conflict},
		{alice, TaskSelector{Job: waits}, "JobPrio = 4", 3, roost.Stale},
		{alice, TaskSelector{Job: waits, Ranges: []eventlog.IndexRange{{First: 0, Last: 0}}}, "JobPrio = 4", -1,
			ErrWholeJobOnly},
		{alice, TaskSelector{Job: ids[0]}, "RequestMemory = 5", -1, roost.Conflict},
		{bob, TaskSelector{Job: waits}, "JobPrio = 4", -1, roost.PermissionDenied},
		{alice, TaskSelector{Job: runs}, "RequestCpus = 2", -1, ErrRunning},
		{alice, TaskSelector{Job: runs}, `Out = "x"`, -1, ErrRunning},
		{alice, TaskSelector{Job: runs}, "Walltime = 101", -1, ErrRaiseLimit},
		{alice, TaskSelector{Job: runs}, "Walltime = undefined", -1, ErrRaiseLimit},
		{alice, TaskSelector{Job: runs}, "Walltime = 99", -1, nil},
		{root, TaskSelector{Job: runs}, "Walltime = 1000", -1, nil},
		{alice, TaskSelector{Job: gone}, "JobPrio = 3", -1, roost.Conflict},
		{alice, TaskSelector{Job: roost.JobID{Seq: 99, Host: "h"}}, "JobPrio = 3", -1, roost.NotFound},
	} {
		before, _ := d.queue.Snapshot(c.target.Job.Seq)
		_, err := d.queue.AlterJob(d.now, c.who, c.target,
			JobAlteration{Changes: alteredAd(t, c.changes), ExpectedVersion: c.basis}, SubmitLimits{})
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%v, %s: %v, want %v", c.target, c.changes, err, c.want)
		}
		if after, _ := d.queue.Snapshot(c.target.Job.Seq); string(after) != string(before) {
			t.Errorf("%v, %s: it was decided only, and has changed the job", c.target, c.changes)
		}
	}
	d.end(a, eventlog.AttemptExit{})
}

// TestAlteredDemand checks that only a job that asks for more is asked about anew. Its
// demand is its new payer's.
func TestAlteredDemand(t *testing.T) {
	d := newTestQueue(t)
	id := d.submit(2, "RequestCpus = 2")
	before := d.queue.QuotaKeys()
	d.alterJob(id, "RequestCpus = 1")
	if len(d.queue.DeferredJobs()) != 0 {
		t.Fatal("it asks for less, and is asked about")
	}
	d.alterJob(id, `RequestCpus = 3; AccountingGroup = "physics"; Queue = "long"`)
	if got := d.queue.DeferredJobs(); len(got) != 1 {
		t.Fatalf("%v are asked about", got)
	}
	if len(d.queue.QuotaKeys()) != 0 {
		t.Fatalf("%v have a demand before it was allowed", d.queue.QuotaKeys())
	}
	d.apply(d.queue.AdmitDeferred(d.now, id.Seq)...)
	now := d.queue.QuotaKeys()
	if len(before) != 1 || len(now) != 1 || now[0].Group != "physics" || now[0].Queue != "long" ||
		d.queue.DemandOf(now[0]).CPU != 6000 || d.queue.DemandOf(before[0]).Tasks != 0 {
		t.Fatalf("payers %v, then %v", before, now)
	}
}

// TestOverdrawnByAlteration checks that a refused alteration leaves alone what runs of
// its job.
func TestOverdrawnByAlteration(t *testing.T) {
	d := newTestQueue(t)
	id := d.submit(3, "")
	d.start()
	d.alterJob(id, "RequestCpus = 8")
	d.apply(d.queue.HoldOverQuota(d.now, id.Seq, "too much")...)
	d.checkState(id, "held 2 starting 1")
	if v := d.queue.TakeVacates(); len(v) != 0 {
		t.Fatalf("%v are ended", v)
	}
}

func TestAlteredWaits(t *testing.T) {
	d := newTestQueue(t)
	first, id := d.submit(1, "HoldOnSubmit = true"), d.submit(1, "")
	d.alterJob(id, fmt.Sprintf(`DependsOn = {"afterany:%d"}`, first.Seq))
	d.checkState(id, "blocked 1")
	d.queue = d.restoredCopy()
	d.alterJob(id, "DependsOn = undefined")
	d.checkState(id, "idle 1")
	d.alterJob(id, fmt.Sprintf("DeferralTime = %d", d.now.Unix()+100))
	d.checkState(id, "blocked 1")
	d.alterJob(id, fmt.Sprintf(`DeferralTime = undefined; DependsOn = {"afterany:%d"}`, first.Seq))
	d.checkState(id, "blocked 1")
	remove, _ := d.queue.RemoveTasks(d.now, alice, TaskSelector{Job: first}, "", false)
	d.apply(remove...)
	d.apply(d.queue.Followups(d.now)...)
	d.checkState(id, "idle 1")
}

// TestAlteredCount checks that the number of tasks can change while none has begun.
func TestAlteredCount(t *testing.T) {
	d := newTestQueue(t)
	id := d.submit(4, "GangSize = 2")
	hold, _ := d.queue.HoldTasks(d.now, alice, TaskSelector{Job: id}, "")
	d.apply(hold...)
	recount := func(n int, changes string) error {
		events, err := d.queue.AlterJob(d.now, alice, TaskSelector{Job: id},
			JobAlteration{Changes: alteredAd(t, changes), Count: n, ExpectedVersion: -1}, SubmitLimits{})
		d.apply(events...)
		return err
	}
	if err := recount(3, ""); !errors.Is(err, roost.Invalid) {
		t.Fatalf("three tasks in gangs of two: %v", err)
	}
	if err := recount(9, "GangSize = 3"); err != nil {
		t.Fatal(err)
	}
	d.checkState(id, "held 9")
	release, _ := d.queue.ReleaseTasks(d.now, alice, TaskSelector{Job: id})
	d.apply(release...)
	d.queue = d.restoredCopy()
	d.checkState(id, "idle 9")
	if size, ok := d.queue.NextGang(d.queue.Requests()[0]); size != 3 || !ok {
		t.Fatalf("%d start together", size)
	}
	if err := recount(1, "GangSize = undefined"); err != nil {
		t.Fatal(err)
	}
	a := d.start()
	if err := recount(2, ""); !errors.Is(err, ErrRunning) {
		t.Fatalf("a job that has begun: %v", err)
	}
	d.end(a, eventlog.AttemptExit{})
	d.checkState(id, "completed 1")
}

// TestOrder checks that qorder has two jobs start in each other's place, after a restart
// too.
func TestOrder(t *testing.T) {
	d := newTestQueue(t)
	first, second, third := d.submit(1, ""), d.submit(1, ""), d.submit(1, "")
	events, err := d.queue.SwapOrder(d.now, alice, TaskSelector{Job: first}, TaskSelector{Job: third})
	if err != nil {
		t.Fatal(err)
	}
	d.apply(events...)
	d.queue = d.restoredCopy()
	var got []string
	for range 3 {
		got = append(got, fmt.Sprint(d.start().Task.Job.Seq))
	}
	if strings.Join(got, " ") != "3 2 1" {
		t.Fatalf("they start in the order %v", got)
	}
	if _, err := d.queue.SwapOrder(d.now, alice, TaskSelector{Job: first}, TaskSelector{Job: second}); !errors.Is(err,
		roost.Conflict) {
		t.Fatalf("of jobs that have begun: %v", err)
	}
	own, others := d.submit(1, ""), d.submit(1, "")
	if _, err := d.queue.SwapOrder(d.now, bob, TaskSelector{Job: own}, TaskSelector{Job: others}); !errors.Is(err,
		roost.PermissionDenied) {
		t.Fatalf("of somebody else's: %v", err)
	}
	if _, err := d.queue.SwapOrder(d.now, alice, TaskSelector{Job: own},
		TaskSelector{Job: others, Ranges: []eventlog.IndexRange{{First: 0, Last: 0}}}); !errors.Is(err,
		ErrWholeJobOnly) {
		t.Fatalf("of a task: %v", err)
	}
}

// TestLimits checks that running tasks get the new limits of their job, also when their
// node was away. What runs of an array, and what begins later, gets no message about it.
func TestLimits(t *testing.T) {
	d := newTestQueue(t)
	id := d.submit(1, "Walltime = 100")
	a := d.start()
	if _, ok := d.queue.AttemptLimits(a); ok {
		t.Fatal("it has other limits before anything was altered")
	}
	d.alterJob(id, "JobPrio = 3")
	if got := d.queue.TakeChangedLimits(); len(got) != 0 {
		t.Fatalf("its priority changed, and its limits are told as %v", got)
	}
	d.alterJob(id, "Walltime = 50; CpuTimeLimit = 7")
	want := AttemptLimits{a, 50 * time.Second, 7 * time.Second}
	if got := d.queue.TakeChangedLimits(); len(got) != 1 || got[0] != want {
		t.Fatalf("got %v, want %v", got, want)
	}
	d.queue = d.restoredCopy()
	if got, ok := d.queue.AttemptLimits(a); !ok || got != want {
		t.Fatalf("after a restart: got %v, want %v", got, want)
	}
	e, _ := d.queue.RecordLost(d.now, a, "gone")
	d.apply(e)
	if p, _ := d.queue.Program(d.start()); p.Walltime != 50*time.Second || p.Bounds.CPU != 7*time.Second {
		t.Fatalf("the next attempt has %v, %v", p.Walltime, p.Bounds)
	}
	array := d.submit(3, "Walltime = 100")
	b := d.start()
	d.alterJob(array, "Walltime = 50")
	if _, ok := d.queue.AttemptLimits(b); ok || len(d.queue.TakeChangedLimits()) != 0 {
		t.Fatal("a task of an array is told of limits with which it did not begin")
	}
}
