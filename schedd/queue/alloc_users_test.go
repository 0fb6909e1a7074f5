package queue

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// tryAlter changes a job as somebody does, and returns the error.
func (d *testQueue) tryAlter(who CallerIdentity, id roost.JobID, changes string) error {
	d.Helper()
	ad, err := classad.Parse(changes)
	if err != nil {
		d.Fatal(err)
	}
	events, err := d.queue.AlterJob(d.now, who, TaskSelector{Job: id}, JobAlteration{Changes: ad, ExpectedVersion: -1},
		SubmitLimits{})
	if err == nil {
		d.apply(events...)
	}
	return err
}

// TestAllocUsers checks whose jobs may be inside an alloc set. They are its owner's, and
// those of users whom the owner has named, each of one submit node.
func TestAllocUsers(t *testing.T) {
	d := newTestQueue(t)
	set := d.submit(1, testAllocAd+"; AllocUsers = { \"bob\", \"carl@n2\" }")
	inside := fmt.Sprintf("InAlloc = \"%v\"", set)
	bob, carl := CallerIdentity{User: "bob", UID: 77, Host: "h"}, CallerIdentity{User: "carl", UID: 78, Host: "h"}
	foreign := func(who CallerIdentity, node string) CallerIdentity { who.Origin = node; return who }
	for _, c := range []struct {
		who  CallerIdentity
		want string // the cure; empty: it may
	}{
		{alice, ""}, {bob, ""}, {foreign(carl, "n2"), ""},
		{carl, "roost alloc allow 1 carl"}, {foreign(bob, "n2"), "roost alloc allow 1 bob@n2"},
		{foreign(carl, "n3"), "roost alloc allow 1 carl@n3"},
		{CallerIdentity{User: "root", Host: "h", Admin: true}, "roost alloc allow 1 root"},
	} {
		err := d.trySubmit(c.who, 1, inside)
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, roost.PermissionDenied) ||
			!strings.HasSuffix(err.Error(), c.want)) {
			t.Errorf("%s of %q: got %v, want %q", c.who.User, c.who.Origin, err, c.want)
		}
	}
	d.openAlloc(set, 0, "n1")
	if err := d.tryAlter(alice, set, "[ AllocUsers = undefined ]"); err != nil {
		t.Fatal(err)
	}
	if err := d.trySubmit(bob, 1, inside); !errors.Is(err, roost.PermissionDenied) {
		t.Errorf("who is not named any more: %v", err)
	}
	if err := d.tryAlter(bob, set, "[ AllocUsers = { \"bob\" } ]"); !errors.Is(err, roost.PermissionDenied) {
		t.Errorf("a user who names himself: %v", err)
	}
	for _, wrong := range []string{"{ \"b b\" }", "{ \"@n2\" }", "{ \"bob@\" }", "7", "{ \"-x\" }", "{ \"\" }"} {
		if err := d.tryAlter(alice, set, "[ AllocUsers = "+wrong+" ]"); !errors.Is(err, roost.Invalid) {
			t.Errorf("the users %s: %v", wrong, err)
		}
	}
	if err := d.trySubmit(alice, 1, "AllocUsers = { \"bob\" }"); !errors.Is(err, roost.Invalid) {
		t.Errorf("users of a job that is no alloc set: %v", err)
	}
	d.checkSame(d.restoredCopy())
}

// TestRemoveAllocOfSeveralUsers checks that jobs of others go with an alloc set, too.
func TestRemoveAllocOfSeveralUsers(t *testing.T) {
	d := newTestQueue(t)
	set := d.submit(1, testAllocAd+"; AllocUsers = { \"bob\" }")
	bob := CallerIdentity{User: "bob", UID: 77, Host: "h"}
	events, ids, _, err := d.queue.SubmitJobs(d.now, bob, "bob's", []jobad.SubmitSpec{{Count: 1,
		Ad: parseTestAd(d, fmt.Sprintf("InAlloc = \"%v\"", set))}}, SubmitLimits{})
	if err != nil {
		t.Fatal(err)
	}
	d.apply(events...)
	if st, _ := d.queue.Status(set.Seq); len(st.Alloc.Jobs) != 1 || st.Alloc.Jobs[0] != ids[0] {
		t.Errorf("inside the set: %+v", st.Alloc)
	}
	removal, err := d.queue.RemoveTasks(d.now, alice, TaskSelector{Job: set}, "", false)
	if err != nil {
		t.Fatal(err)
	}
	d.apply(removal...)
	if st, _ := d.queue.Status(ids[0].Seq); st.Counts[roost.Removed] != 1 {
		t.Errorf("the job of bob: %v", st.Counts)
	}
}

// TestLeaveAlloc takes a job that does not run out of its alloc set. Its tasks are placed
// like others from then on.
func TestLeaveAlloc(t *testing.T) {
	d := newTestQueue(t)
	set := d.submit(2, testAllocAd+"; Band = \"production\"")
	web := d.submit(2, fmt.Sprintf(testInsideAd, set)+"; AllocPlace = \"any\"")
	d.openAlloc(set, 0, "n1")
	a, ok := d.putInside(web, set.Task(0), "n1")
	if !ok {
		t.Fatal("nothing is inside")
	}
	if st, _ := d.queue.TaskStatus(set.Task(0)); st.Alloc.Tasks != 1 || st.Alloc.Open != 1 ||
		st.Alloc.Inside.CPU != 1000 || len(st.Alloc.Jobs) != 1 {
		t.Errorf("alloc 0 has %+v", st.Alloc)
	}
	if st, _ := d.queue.TaskStatus(set.Task(1)); st.Alloc.Tasks != 0 || st.Alloc.Open != 0 {
		t.Errorf("alloc 1 has %+v", st.Alloc)
	}
	if st, _ := d.queue.TaskStatus(a.Task); st.Inside == nil || st.Inside.Alloc != set.Task(0) || !st.Inside.Anywhere {
		t.Errorf("the task is inside %+v", st.Inside)
	}
	const leave = "[ InAlloc = undefined ]"
	if err := d.tryAlter(alice, web, leave); !errors.Is(err, roost.Conflict) ||
		!strings.Contains(err.Error(), "hold it first (roost hold 2)") {
		t.Errorf("out of an alloc while it runs: %v", err)
	}
	d.end(a, eventlog.AttemptExit{Cause: eventlog.CauseVacate})
	for _, wrong := range []string{"[ InAlloc = \"9\" ]", "[ AllocPlace = \"index\" ]", "[ Alloc = true ]"} {
		if err := d.tryAlter(alice, web, wrong); !errors.Is(err, roost.Invalid) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
	if err := d.tryAlter(alice, set, leave); !errors.Is(err, roost.Invalid) {
		t.Errorf("an alloc set that leaves: %v", err)
	}
	before := d.queue.Requests()
	if err := d.tryAlter(alice, web, leave); err != nil {
		t.Fatal(err)
	}
	st, _ := d.queue.Status(web.Seq)
	r, _ := d.queue.Request(st.Request)
	if st.Inside != nil || r.Inside.Alloc != 0 || st.Band != roost.ProductionBand {
		t.Errorf("after it has left: inside %+v, request %+v, band %v; before %v", st.Inside, r.Inside, st.Band, before)
	}
	if st, _ := d.queue.Status(set.Seq); len(st.Alloc.Jobs) != 0 {
		t.Errorf("inside the set: %+v", st.Alloc)
	}
	task, _ := d.queue.NextTask(st.Request)
	e, _, err := d.queue.AssignNext(d.now, task, "n3", "n3:1", 9)
	if err != nil {
		t.Fatal(err)
	}
	d.apply(e)
	d.checkSame(d.restoredCopy())
}
