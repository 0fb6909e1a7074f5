package dispatch

import (
	"fmt"
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

// allocJobQueue is a queue with an alloc set, which is job 1, and a job inside it.
type allocJobQueue struct {
	naiveJobQueue
	ready []bool // tasks of the job inside
	open  []roost.TaskID
	each  roost.Resources
}

// insideRequest is the request of the job inside.
const insideRequest = RequestID(2)

func (q *allocJobQueue) ReadyTasks(r RequestID) (n int) {
	if r != insideRequest {
		return 1
	}
	for _, ready := range q.ready {
		if ready {
			n++
		}
	}
	return n
}

func (q *allocJobQueue) Assign(r RequestID, _, _ string, _ uint64) (roost.AttemptID, bool) {
	return roost.AttemptID{Task: testAlloc(0), Attempt: 1}, r == 1
}

func (q *allocJobQueue) InsideAllocs(r RequestID) (want InsideAllocs, ok bool) {
	if r != insideRequest {
		return want, false
	}
	for i, ready := range q.ready {
		if ready && i < len(q.open) {
			want.Allocs = append(want.Allocs, q.open[i])
		}
	}
	want.Resources = q.each
	return want, true
}

func (q *allocJobQueue) AssignInside(_ RequestID, alloc roost.TaskID, _, _ string, _ uint64) (roost.AttemptID, bool) {
	if !q.ready[alloc.Index] {
		return roost.AttemptID{}, false
	}
	q.ready[alloc.Index] = false
	a := roost.AttemptID{Task: roost.JobID{Seq: 2, Host: "h"}.Task(alloc.Index), Attempt: 1}
	q.live[a] = true
	return a, true
}

func testAlloc(i int) roost.TaskID { return roost.JobID{Seq: 1, Host: "h"}.Task(i) }

// newAllocDispatcher returns a dispatcher with an open alloc of two cores, claim 5 of n1.
func newAllocDispatcher(t *testing.T) (d *Dispatcher, q *allocJobQueue, now roost.BootTime) {
	q = &allocJobQueue{naiveJobQueue: *newNaiveJobQueue(t, 1), ready: []bool{true},
		open: []roost.TaskID{testAlloc(0)}, each: roost.Resources{CPU: 1500}}
	d, now = New(q, DefaultOptions()), time.Hour
	grant := roost.GrantID{Epoch: 1, ID: 1}
	d.Granted(now, Grant{GrantID: grant, Request: 1, Node: "n1", Address: "n1:1",
		Resources: roost.Resources{CPU: 2000}})
	d.Connected(now, "n1", nil)
	d.ClaimAnswered(now, "n1", ClaimReply{Grant: grant, Claim: 5})
	d.Effects()
	d.RequestChanged(now, insideRequest)
	if e := d.Effects(); len(e) > 0 {
		t.Fatalf("before the alloc is open: %v", e)
	}
	d.Started("n1", roost.AttemptID{Task: testAlloc(0), Attempt: 1})
	return d, q, now
}

// requestedInside returns the claim that is asked for inside the alloc; nil for none.
func requestedInside(t *testing.T, d *Dispatcher) (c *Claim) {
	t.Helper()
	d.Check()
	for _, e := range d.Effects() {
		switch e := e.(type) {
		case RequestClaim:
			if c != nil || e.Claim.Grant.Alloc != 5 || e.Claim.Node != "n1" {
				t.Fatalf("asked for %+v, and before for %v", e.Claim, c)
			}
			c = e.Claim
		case GrantResult:
			t.Fatalf("the negotiator hears %+v", e)
		}
	}
	return c
}

func TestClaimInsideAlloc(t *testing.T) {
	d, q, now := newAllocDispatcher(t)
	d.RequestChanged(now, insideRequest)
	first := requestedInside(t, d)
	if first == nil {
		t.Fatal("nothing is asked for")
	}
	if left, open := AllocRoom(d, testAlloc(0)); !open || left.CPU != 500 {
		t.Errorf("left: %v, open %v", left, open)
	}
	d.RequestChanged(now, insideRequest)
	if again := requestedInside(t, d); again != nil {
		t.Fatalf("asked twice: %v", again)
	}
	d.ClaimAnswered(now, "n1", ClaimReply{Grant: first.Grant.GrantID, Reason: "the alloc is full"})
	d.RequestChanged(now, insideRequest)
	if again := requestedInside(t, d); again != nil || AllocRefusal(d, testAlloc(0)) != "the alloc is full" {
		t.Fatalf("asked at once again: %v, refused for %q", again, AllocRefusal(d, testAlloc(0)))
	}
	if at, ok := d.NextTick(now); !ok || at > now+insideDelay {
		t.Errorf("the next look is at %v", at)
	}
	now += insideDelay
	if d.Tick(now); fmt.Sprint(TakeWokenAllocs(d)) != "[1]" {
		t.Error("nobody looks at the alloc set again")
	}
	d.RequestChanged(now, insideRequest)
	second := requestedInside(t, d)
	if second == nil || second.Grant.GrantID == first.Grant.GrantID {
		t.Fatalf("asked again: %v", second)
	}
	d.ClaimAnswered(now, "n1", ClaimReply{Grant: second.Grant.GrantID, Claim: 6})
	inside := roost.AttemptID{Task: roost.JobID{Seq: 2, Host: "h"}.Task(0), Attempt: 1}
	if !q.live[inside] || !d.HasAttempt("n1", inside) {
		t.Fatal("the task does not run inside")
	}
	d.Effects()
	delete(q.live, inside)
	d.Exited(now, "n1", inside)
	d.Finished(now, inside)
	d.Tick(now + time.Second) // an idle claim is given back
	if fmt.Sprint(TakeWokenAllocs(d)) != "[1]" {
		t.Error("nobody looks for what the room is enough for now")
	}
	d.Check()
}

// TestAllocWithoutRoom checks that a machine is not asked for what its alloc cannot have.
func TestAllocWithoutRoom(t *testing.T) {
	d, q, now := newAllocDispatcher(t)
	q.each.CPU = 2500
	d.RequestChanged(now, insideRequest)
	if c := requestedInside(t, d); c != nil {
		t.Fatalf("asked for %v", c)
	}
	q.each.CPU = 500
	d.Vacate(roost.AttemptID{Task: testAlloc(0), Attempt: 1}, VacateOrder{})
	d.RequestChanged(now, insideRequest)
	if c := requestedInside(t, d); c != nil {
		t.Fatalf("asked inside an alloc that is to end: %v", c)
	}
	d.Disconnected(now, "n1")
	d.Connected(now, "n1", []ReportedClaim{{Claim: 5, Running: true,
		Attempt: roost.AttemptID{Task: testAlloc(0), Attempt: 1}}})
	if fmt.Sprint(TakeWokenAllocs(d)) != "[1]" {
		t.Error("nobody looks at the allocs of a node that answers again")
	}
}

// TestAllocMoved checks that nothing starts on a claim inside an alloc that is held by
// another claim now. The machine of that has not answered since the alloc moved.
func TestAllocMoved(t *testing.T) {
	for _, holder := range []*Claim{nil, {Node: "n2", ID: 5}, {Node: "n1", ID: 7}} {
		d, q, now := newAllocDispatcher(t)
		d.RequestChanged(now, insideRequest)
		asked := requestedInside(t, d)
		d.ClaimAnswered(now, "n1", ClaimReply{Grant: asked.Grant.GrantID, Claim: 6})
		inside := roost.AttemptID{Task: roost.JobID{Seq: 2, Host: "h"}.Task(0), Attempt: 1}
		d.Effects()
		own := d.busy[testAlloc(0)]
		if d.busy[testAlloc(0)] = holder; holder == nil {
			delete(d.busy, testAlloc(0))
		}
		delete(q.live, inside)
		q.ready[0] = true
		allocsOf(d).check()
		d.Exited(now, "n1", inside)
		d.Finished(now, inside)
		if q.live[inside] {
			t.Errorf("a task starts on n1 inside claim 5, and the alloc is held by %+v", holder)
		}
		d.busy[testAlloc(0)] = own
		d.RequestChanged(now, insideRequest)
		if d.Check(); !q.live[inside] {
			t.Error("no task starts inside the alloc when it is held by its claim")
		}
	}
}

// TestAllocShrinks has an alloc become smaller than what its schedd knows inside, where a
// task has ended. The claim of that is given back, and takes no other task.
func TestAllocShrinks(t *testing.T) {
	for _, cores := range []roost.MilliCPU{1500, 1000} {
		d, q, now := newAllocDispatcher(t)
		d.RequestChanged(now, insideRequest)
		asked := requestedInside(t, d)
		d.ClaimAnswered(now, "n1", ClaimReply{Grant: asked.Grant.GrantID, Claim: 6})
		inside := roost.AttemptID{Task: roost.JobID{Seq: 2, Host: "h"}.Task(0), Attempt: 1}
		Resized(d, roost.AttemptID{Task: testAlloc(0), Attempt: 1}, 1, roost.Resources{CPU: cores})
		d.Check()
		d.Effects()
		delete(q.live, inside)
		q.ready[0] = true
		d.Exited(now, "n1", inside)
		d.Finished(now, inside)
		d.Check()
		released := false
		for _, e := range d.Effects() {
			r, ok := e.(ReleaseClaim)
			released = released || ok && r.Claim == 6
		}
		if fits := cores == 1500; q.live[inside] != fits || released == fits {
			t.Errorf("%v of what 1.5 cores ask for: the next task starts: %v, and the claim is released: %v", cores,
				q.live[inside], released)
		}
	}
}
