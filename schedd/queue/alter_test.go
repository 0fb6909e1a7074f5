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
)

func changed(t testing.TB, src string) *classad.Ad {
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
		"RequestMemory = 1024", "RequestMemory = 2048; JobPrio = 3", "Walltime = 60", "Walltime = undefined", "JobPrio = -5", "MaxRunning = 1", "MaxRunning = undefined",
		"DeferralTime = 1700000250", "DeferralTime = undefined", "DependsOn = undefined", `AccountingGroup = "physics"`, `Band = "free"`, "MaxRetries = 2",
		"Rerunnable = false", `Queue = "long"`, `JobName = "other"`, "GangSize = 2", "GangSize = undefined", fmt.Sprintf(`DependsOn = {"afterany:%d"}`, 1+rng.IntN(5)), "WantCheckpoint = false",
		fmt.Sprintf(`DependsOn = {"runone:%d"}`, 1+rng.IntN(5)), fmt.Sprintf(`DependsOn = {"on:1","afterok:%d"}`, 1+rng.IntN(5)), fmt.Sprintf(`DependsOn = {"before:%d"}`, 1+rng.IntN(5)),
	}
	return all[rng.IntN(len(all))]
}

func (d *desk) alter(id roost.JobID, changes string) {
	d.Helper()
	events, err := d.q.Alter(d.now, alice, Target{Job: id}, Alteration{Changes: changed(d, changes), Basis: -1}, Limits{})
	if err != nil {
		d.Fatal(err)
	}
	d.apply(events...)
}

// An alteration moves what waits to another request, and leaves none behind.
func TestAlteredRequest(t *testing.T) {
	d := newDesk(t)
	id := d.submit(3, "")
	before := d.q.Requests()[0]
	d.q.DirtyRequests()
	d.alter(id, "RequestMemory = 1024; Walltime = 7200")
	all := d.q.Requests()
	if len(all) != 1 || all[0] == before {
		t.Fatalf("the requests are %v, and there was %d", all, before)
	}
	r, _ := d.q.Request(all[0])
	if r.Ready != 3 || r.Resources.Memory != roost.GiB || r.Walltime != 2*time.Hour {
		t.Fatalf("the request is %+v", r)
	}
	if dirty := d.q.DirtyRequests(); len(dirty) != 2 {
		t.Fatalf("of %v it is told that they have changed, want both", dirty)
	}
	d.q.Unsaved()
	events, err := d.q.Alter(d.now, alice, Target{Job: id}, Alteration{Changes: changed(t, "RequestMemory = 1024"), Basis: -1}, Limits{})
	if err != nil || events != nil {
		t.Fatalf("what it is already gives %v, %v", events, err)
	}
}

// Tasks that run keep the request with which they began, across a restart too; they are what the job is now when they run again.
func TestAlteredWhileTasksRun(t *testing.T) {
	d := newDesk(t)
	id := d.submit(3, `Out = "old"`)
	first := d.start()
	d.alter(id, `RequestMemory = 2048; Out = "new"; AccountingGroup = "physics"`)
	d.alter(id, "RequestMemory = 4096")
	check := func(name string) {
		t.Helper()
		if r, _ := d.q.RequestOf(first.Task); r.Resources.Memory == 4*roost.GiB || r.Ready != 0 || r.Group != "" {
			t.Fatalf("%s: the task that runs has the request %+v", name, r)
		}
		if r, _ := d.q.RequestOf(id.Task(1)); r.Resources.Memory != 4*roost.GiB || r.Ready != 2 || r.Group != "physics" {
			t.Fatalf("%s: the next task has the request %+v", name, r)
		}
		if p, err := d.q.Launch(first); err != nil || p.Out != "old" {
			t.Fatalf("%s: it writes to %s, %v", name, p.Out, err)
		}
	}
	check("altered")
	d.q = d.copied()
	check("restored")
	e, _ := d.q.Lose(d.now, first, "gone")
	d.apply(e)
	if r, _ := d.q.RequestOf(first.Task); r.Resources.Memory != 4*roost.GiB || r.Ready != 3 {
		t.Fatalf("after its end it has the request %+v", r)
	}
	if p, err := d.q.Launch(roost.AttemptID{Task: first.Task, Attempt: 2}); err != nil || p.Out != "new" {
		t.Fatalf("it writes to %s, %v", p.Out, err)
	}
}

func TestAlterRefused(t *testing.T) {
	d := newDesk(t)
	runs := d.submit(1, "Walltime = 100")
	d.start()
	gone := d.submit(1, "")
	a := d.start()
	remove, _ := d.q.Remove(d.now, alice, Target{Job: gone}, "", false)
	d.apply(remove...)
	spec := Spec{Ad: ad(t, ""), Count: 2, Columns: []Column{{roost.AttrRequestMemory, []string{"1048576", "2097152"}}}}
	events, ids, _, err := d.q.Submit(d.now, alice, "k", []Spec{spec}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	d.apply(events...)
	waits := d.submit(1, "Walltime = 100")
	later := d.submit(1, fmt.Sprintf("DependsOn = {\"afterok:%d\"}", waits.Seq))
	root := Submitter{User: "root", Admin: true}
	for _, c := range []struct {
		who     Submitter
		target  Target
		changes string
		basis   int64
		want    error
	}{
		{alice, Target{Job: waits}, "JobPrio = 4000", -1, roost.Invalid},
		{alice, Target{Job: waits}, "RequestCpus = 0", -1, roost.Invalid},
		{alice, Target{Job: waits}, `Owner = "bob"`, -1, roost.Invalid},
		{alice, Target{Job: waits}, "ownerUID = 0", -1, roost.Invalid},
		{alice, Target{Job: waits}, "GangSize = 2", -1, roost.Invalid},
		{alice, Target{Job: waits}, `DependsOn = {"afterok:99"}`, -1, roost.NotFound},
		{alice, Target{Job: waits}, fmt.Sprintf(`DependsOn = {"afterok:%d"}`, waits.Seq), -1, roost.Conflict},
		{alice, Target{Job: waits}, fmt.Sprintf(`DependsOn = {"after:%d"}`, later.Seq), -1, roost.Conflict},
		{alice, Target{Job: waits}, "JobPrio = 4", 3, roost.Stale},
		{alice, Target{Job: waits, Ranges: []Range{{0, 0}}}, "JobPrio = 4", -1, ErrPart},
		{alice, Target{Job: ids[0]}, "RequestMemory = 5", -1, roost.Conflict},
		{bob, Target{Job: waits}, "JobPrio = 4", -1, roost.PermissionDenied},
		{alice, Target{Job: runs}, "RequestCpus = 2", -1, ErrRunning},
		{alice, Target{Job: runs}, `Out = "x"`, -1, ErrRunning},
		{alice, Target{Job: runs}, "Walltime = 101", -1, ErrRaise},
		{alice, Target{Job: runs}, "Walltime = undefined", -1, ErrRaise},
		{alice, Target{Job: runs}, "Walltime = 99", -1, nil},
		{root, Target{Job: runs}, "Walltime = 1000", -1, nil},
		{alice, Target{Job: gone}, "JobPrio = 3", -1, roost.Conflict},
		{alice, Target{Job: roost.JobID{Seq: 99, Host: "h"}}, "JobPrio = 3", -1, roost.NotFound},
	} {
		before, _ := d.q.Snapshot(c.target.Job.Seq)
		_, err := d.q.Alter(d.now, c.who, c.target, Alteration{Changes: changed(t, c.changes), Basis: c.basis}, Limits{})
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%v, %s: %v, want %v", c.target, c.changes, err, c.want)
		}
		if after, _ := d.q.Snapshot(c.target.Job.Seq); string(after) != string(before) {
			t.Errorf("%v, %s: it was decided only, and has changed the job", c.target, c.changes)
		}
	}
	d.end(a, Exit{})
}

// A job that asks for more is asked about anew, one that asks for less is not; its demand is its new payer's.
func TestAlteredDemand(t *testing.T) {
	d := newDesk(t)
	id := d.submit(2, "RequestCpus = 2")
	before := d.q.Payers()
	d.alter(id, "RequestCpus = 1")
	if len(d.q.Unasked()) != 0 {
		t.Fatal("it asks for less, and is asked about")
	}
	d.alter(id, `RequestCpus = 3; AccountingGroup = "physics"; Queue = "long"`)
	if got := d.q.Unasked(); len(got) != 1 {
		t.Fatalf("%v are asked about", got)
	}
	if len(d.q.Payers()) != 0 {
		t.Fatalf("%v have a demand before it was allowed", d.q.Payers())
	}
	d.apply(d.q.Admit(d.now, id.Seq)...)
	now := d.q.Payers()
	if len(before) != 1 || len(now) != 1 || now[0].Group != "physics" || now[0].Queue != "long" || d.q.Demand(now[0]).CPU != 6000 || d.q.Demand(before[0]).Tasks != 0 {
		t.Fatalf("payers %v, then %v", before, now)
	}
}

// What was refused of a job that has been altered leaves alone what runs of it.
func TestOverdrawnByAlteration(t *testing.T) {
	d := newDesk(t)
	id := d.submit(3, "")
	d.start()
	d.alter(id, "RequestCpus = 8")
	d.apply(d.q.Overdraw(d.now, id.Seq, "too much")...)
	d.want(id, "held 2 starting 1")
	if v := d.q.TakeVacates(); len(v) != 0 {
		t.Fatalf("%v are ended", v)
	}
}

func TestAlteredWaits(t *testing.T) {
	d := newDesk(t)
	first, id := d.submit(1, "HoldOnSubmit = true"), d.submit(1, "")
	d.alter(id, fmt.Sprintf(`DependsOn = {"afterany:%d"}`, first.Seq))
	d.want(id, "blocked 1")
	d.q = d.copied()
	d.alter(id, "DependsOn = undefined")
	d.want(id, "idle 1")
	d.alter(id, fmt.Sprintf("DeferralTime = %d", d.now.Unix()+100))
	d.want(id, "blocked 1")
	d.alter(id, fmt.Sprintf(`DeferralTime = undefined; DependsOn = {"afterany:%d"}`, first.Seq))
	d.want(id, "blocked 1")
	remove, _ := d.q.Remove(d.now, alice, Target{Job: first}, "", false)
	d.apply(remove...)
	d.apply(d.q.Consequences(d.now)...)
	d.want(id, "idle 1")
}

// Another number of tasks can be had while none has begun.
func TestAlteredCount(t *testing.T) {
	d := newDesk(t)
	id := d.submit(4, "GangSize = 2")
	hold, _ := d.q.Hold(d.now, alice, Target{Job: id}, "")
	d.apply(hold...)
	recount := func(n int, changes string) error {
		events, err := d.q.Alter(d.now, alice, Target{Job: id}, Alteration{Changes: changed(t, changes), Count: n, Basis: -1}, Limits{})
		d.apply(events...)
		return err
	}
	if err := recount(3, ""); !errors.Is(err, roost.Invalid) {
		t.Fatalf("three tasks in gangs of two: %v", err)
	}
	if err := recount(9, "GangSize = 3"); err != nil {
		t.Fatal(err)
	}
	d.want(id, "held 9")
	release, _ := d.q.Release(d.now, alice, Target{Job: id})
	d.apply(release...)
	d.q = d.copied()
	d.want(id, "idle 9")
	if size, ok := d.q.Gang(d.q.Requests()[0]); size != 3 || !ok {
		t.Fatalf("%d start together", size)
	}
	if err := recount(1, "GangSize = undefined"); err != nil {
		t.Fatal(err)
	}
	a := d.start()
	if err := recount(2, ""); !errors.Is(err, ErrRunning) {
		t.Fatalf("a job that has begun: %v", err)
	}
	d.end(a, Exit{})
	d.want(id, "completed 1")
}

// qorder has two jobs start in each other's place, after a restart too.
func TestOrder(t *testing.T) {
	d := newDesk(t)
	first, second, third := d.submit(1, ""), d.submit(1, ""), d.submit(1, "")
	events, err := d.q.Order(d.now, alice, Target{Job: first}, Target{Job: third})
	if err != nil {
		t.Fatal(err)
	}
	d.apply(events...)
	d.q = d.copied()
	var got []string
	for range 3 {
		got = append(got, fmt.Sprint(d.start().Task.Job.Seq))
	}
	if strings.Join(got, " ") != "3 2 1" {
		t.Fatalf("they start in the order %v", got)
	}
	if _, err := d.q.Order(d.now, alice, Target{Job: first}, Target{Job: second}); !errors.Is(err, roost.Conflict) {
		t.Fatalf("of jobs that have begun: %v", err)
	}
	own, others := d.submit(1, ""), d.submit(1, "")
	if _, err := d.q.Order(d.now, bob, Target{Job: own}, Target{Job: others}); !errors.Is(err, roost.PermissionDenied) {
		t.Fatalf("of somebody else's: %v", err)
	}
	if _, err := d.q.Order(d.now, alice, Target{Job: own}, Target{Job: others, Ranges: []Range{{0, 0}}}); !errors.Is(err, ErrPart) {
		t.Fatalf("of a task: %v", err)
	}
}

// What runs is held to the limits of its job as it is now, also when its node was away; what runs of an array, and what begins later, is not told of it.
func TestLimits(t *testing.T) {
	d := newDesk(t)
	id := d.submit(1, "Walltime = 100")
	a := d.start()
	if _, ok := d.q.Limited(a); ok {
		t.Fatal("it has other limits before anything was altered")
	}
	d.alter(id, "JobPrio = 3")
	if got := d.q.TakeLimits(); len(got) != 0 {
		t.Fatalf("its priority changed, and its limits are told as %v", got)
	}
	d.alter(id, "Walltime = 50; CpuTimeLimit = 7")
	want := Limit{a, 50 * time.Second, 7 * time.Second}
	if got := d.q.TakeLimits(); len(got) != 1 || got[0] != want {
		t.Fatalf("got %v, want %v", got, want)
	}
	d.q = d.copied()
	if got, ok := d.q.Limited(a); !ok || got != want {
		t.Fatalf("after a restart: got %v, want %v", got, want)
	}
	e, _ := d.q.Lose(d.now, a, "gone")
	d.apply(e)
	if p, _ := d.q.Launch(d.start()); p.Walltime != 50*time.Second || p.Bounds.CPU != 7*time.Second {
		t.Fatalf("the next attempt has %v, %v", p.Walltime, p.Bounds)
	}
	array := d.submit(3, "Walltime = 100")
	b := d.start()
	d.alter(array, "Walltime = 50")
	if _, ok := d.q.Limited(b); ok || len(d.q.TakeLimits()) != 0 {
		t.Fatal("a task of an array is told of limits with which it did not begin")
	}
}
