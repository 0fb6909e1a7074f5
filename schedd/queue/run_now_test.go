package queue

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// urgent lists the requests to run now, with the number of ready tasks and the machines
// of each.
func (d *testQueue) urgent() (list []string) {
	for _, id := range d.queue.Requests() {
		if r, _ := d.queue.Request(id); r.Now && r.Ready > 0 {
			list = append(list, fmt.Sprintf("%d of %s", r.Ready, r.Owner))
		}
	}
	return list
}

func (d *testQueue) runNow(id roost.JobID, hosts []string, ranges ...eventlog.IndexRange) {
	d.Helper()
	events, err := d.queue.RunNow(d.now, root, TaskSelector{Job: id, Ranges: ranges}, hosts)
	if err != nil {
		d.Fatal(err)
	}
	d.apply(events...)
}

// TestRunNowOnce checks that a job that is to run now makes a request of its own, also
// after a restart. When its attempt has ended it is a job like any other.
func TestRunNowOnce(t *testing.T) {
	d := newTestQueue(t)
	first, second := d.submit(1, "MaxRetries = 3"), d.submit(1, "MaxRetries = 3")
	d.runNow(second, nil)
	d.queue = d.restoredCopy()
	if got := fmt.Sprint(d.urgent()); got != "[1 of alice]" {
		t.Fatalf("to run now: %s", got)
	}
	if s := d.queue.RunNowStatus(second.Seq); s.By != "root" || s.Pending != 1 || s.Hosts != nil {
		t.Fatalf("it is told as %+v", s)
	}
	var a roost.AttemptID
	for _, id := range d.queue.Requests() {
		if r, _ := d.queue.Request(id); r.Now {
			task, _ := d.queue.NextTask(id)
			e, attempt, err := d.queue.AssignNext(d.now, task, "n", "unix:/n", 1)
			if err != nil {
				t.Fatal(err)
			}
			a = attempt
			d.apply(e)
		}
	}
	if a.Task.Job != second {
		t.Fatalf("%v starts, want one of %v", a, second)
	}
	e, _ := d.queue.RecordStarted(d.now, a)
	d.apply(e)
	if s := d.queue.RunNowStatus(second.Seq); s.Pending != 0 {
		t.Fatalf("it runs, and is told as %+v", s)
	}
	d.end(a, eventlog.AttemptExit{Code: 1})
	if got := d.urgent(); got != nil {
		t.Fatalf("after its attempt: %v", got)
	}
	if next := d.start(); next.Task.Job != first {
		t.Fatalf("%v starts next, want %v", next, first)
	}
}

// TestRunNowTasks checks that the named tasks of an array run first, past its own limit,
// on the named machines.
func TestRunNowTasks(t *testing.T) {
	d := newTestQueue(t)
	id := d.submit(5, `Array = true; MaxRunning = 1`)
	d.start()
	d.runNow(id, []string{"n1", "n2.x"}, eventlog.IndexRange{First: 2, Last: 3})
	if got := fmt.Sprint(d.urgent()); got != "[2 of alice]" {
		t.Fatalf("to run now: %s", got)
	}
	for _, request := range d.queue.Requests() {
		r, _ := d.queue.Request(request)
		if named := strings.Contains(r.Ad, `substr(TARGET.Machine,0,3) == "n1."`) &&
			strings.Contains(r.Ad, `TARGET.Machine == "n2.x"`); named != r.Now {
			t.Errorf("request %d, to run now: %v, has the ad %s", request, r.Now, r.Ad)
		}
	}
	for _, want := range []int{2, 3} {
		for _, request := range d.queue.Requests() {
			if r, _ := d.queue.Request(request); r.Now {
				task, ok := d.queue.NextTask(request)
				if !ok || task.Index != want {
					t.Fatalf("task %d comes next, want %d", task.Index, want)
				}
				e, _, _ := d.queue.AssignNext(d.now, task, "n1", "unix:/n", 1)
				d.apply(e)
			}
		}
	}
	if got := d.urgent(); got != nil {
		t.Fatalf("left to run now: %v", got)
	}
}

// TestRunNowDenied checks that what cannot run now takes its turn again, with a reason.
func TestRunNowDenied(t *testing.T) {
	d := newTestQueue(t)
	id := d.submit(1, "")
	usual := d.queue.Requests()[0]
	d.runNow(id, nil)
	if events := d.queue.DenyRun(d.now, usual, "no"); events != nil {
		t.Fatalf("a request that takes its turn is denied: %v", events)
	}
	for _, request := range d.queue.Requests() {
		d.apply(d.queue.DenyRun(d.now, request, "no machine has room")...)
	}
	d.queue = d.restoredCopy()
	if s := d.queue.RunNowStatus(id.Seq); s.Pending != 0 || s.Denied != "no machine has room" || s.By != "" {
		t.Fatalf("it is told as %+v", s)
	}
	if got := d.urgent(); got != nil {
		t.Fatalf("to run now: %v", got)
	}
	d.runNow(id, nil)
	if s := d.queue.RunNowStatus(id.Seq); s.Pending != 1 || s.Denied != "" {
		t.Fatalf("asked for again it is told as %+v", s)
	}
}

// TestRunNowRefused checks that only an administrator may ask, and only for tasks that
// wait for nothing but a machine.
func TestRunNowRefused(t *testing.T) {
	d := newTestQueue(t)
	held, running, array := d.submit(1, "HoldOnSubmit = true"), d.submit(1, ""), roost.JobID{}
	d.start()
	array = d.submit(3, "Array = true")
	gang := d.submit(4, "GangSize = 2")
	for _, c := range []struct {
		who   CallerIdentity
		t     TaskSelector
		hosts []string
		want  error
	}{
		{alice, TaskSelector{Job: array, Ranges: []eventlog.IndexRange{{First: 0, Last: 0}}}, nil,
			roost.PermissionDenied},
		{root, TaskSelector{Job: held}, nil, roost.Conflict}, {root, TaskSelector{Job: running}, nil, roost.Conflict},
		{root, TaskSelector{Job: roost.JobID{Seq: 99, Host: "h"}}, nil, roost.NotFound},
		{root, TaskSelector{Job: array}, nil, ErrWholeJobOnly},
		{root, TaskSelector{Job: array, Ranges: []eventlog.IndexRange{{First: 7, Last: 7}}}, nil, ErrNoSubjob},
		{root, TaskSelector{Job: gang, Ranges: []eventlog.IndexRange{{First: 0, Last: 1}}}, nil, ErrWholeJobOnly},
		{root, TaskSelector{Job: array, Ranges: []eventlog.IndexRange{{First: 0, Last: 0}}}, []string{"n1*"},
			roost.Invalid},
		{root, TaskSelector{Job: array, Ranges: []eventlog.IndexRange{{First: 0, Last: 0}}}, []string{""},
			roost.Invalid},
	} {
		if events, err := d.queue.RunNow(d.now, c.who, c.t, c.hosts); !errors.Is(err, c.want) {
			t.Errorf("%v by %s: %v, %v; want %v", c.t, c.who.User, events, err, c.want)
		}
	}
}

// TestRunNowGang checks that gangs run now as they start at any time: whole. What has run
// once is asked for with the rest.
func TestRunNowGang(t *testing.T) {
	d := newTestQueue(t)
	id := d.submit(4, "GangSize = 2")
	d.runNow(id, nil)
	start := func(now bool) (attempts []roost.AttemptID) {
		for _, request := range d.queue.Requests() {
			r, _ := d.queue.Request(request)
			if size, _ := d.queue.NextGang(request); size != 2 || r.Now != now {
				continue
			}
			if _, mixed := d.queue.GangRequest(request); mixed {
				t.Fatalf("request %d is told to lead others", request)
			}
			events, attempts, ok := d.queue.AssignGang(d.now, request,
				[]GangClaim{{Node: "a", Claim: 1}, {Node: "b", Claim: 2}})
			if !ok {
				t.Fatal("no gang starts")
			}
			d.apply(events...)
			return attempts
		}
		return nil
	}
	first := start(true)
	for _, a := range first {
		e, _ := d.queue.RecordLost(d.now, a, "gone")
		d.apply(e)
	}
	if got := start(true); len(got) != 2 || got[0].Task.Index != 2 {
		t.Fatalf("of those that are to run now, %v start; want the second gang", got)
	}
	if got := start(true); got != nil {
		t.Fatalf("%v start, and have had their turn", got)
	}
	if got := start(false); len(got) != 2 || got[0].Task.Index != 0 {
		t.Fatalf("in their turn, %v start; want the first gang", got)
	}
}

// urge asks for tasks to run now, or denies that, at random.
func (d *testQueue) urge(rng *rand.Rand, t TaskSelector) (events []eventlog.JobEvent) {
	if rng.IntN(2) == 0 {
		return d.queue.DenyRun(d.now, RequestID(1+rng.IntN(int(d.queue.lastRequest)+1)), "no room")
	}
	events, _ = d.queue.RunNow(d.now, root, t, [][]string{nil, {"n1"}, {"n1", "n2.x"}}[rng.IntN(3)])
	return events
}
