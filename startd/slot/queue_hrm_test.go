package slot

import (
	"fmt"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// testMachine simulates one machine and one schedd with a virtual clock. The schedd
// accepts every claim that it is given, and sends a task after each that has ended. Its
// latency lies between the end of a task and its next message.
type testMachine struct {
	t         testing.TB
	core      *ClaimTable
	now       roost.BootTime
	latency   time.Duration
	events    []timedEvent
	grant     uint64
	tasks     []batchTask // to be sent
	job       uint64
	remaining int
	last      roost.BootTime
	waited    []time.Duration // of stream tasks, from the wish to the start
	asked     map[ClaimID]roost.BootTime
	takes     map[roost.AttemptID]time.Duration
}

type batchTask struct{ takes time.Duration }

type timedEvent struct {
	at roost.BootTime
	do func()
}

func (n *testMachine) after(d time.Duration, do func()) {
	n.events = append(n.events, timedEvent{n.now + d, do})
}

// run plays until nothing more happens.
func (n *testMachine) run() {
	for n.performEffects(); len(n.events) > 0; n.performEffects() {
		first := 0
		for i, e := range n.events {
			if e.at < n.events[first].at {
				first = i
			}
		}
		e := n.events[first]
		n.events = append(n.events[:first], n.events[first+1:]...)
		n.now = e.at
		e.do()
	}
}

// performEffects does the effects. Making, starting and ending take no time: what is
// measured is the waiting.
func (n *testMachine) performEffects() {
	for {
		n.core.Check()
		effects, _ := n.core.Todo(n.now)
		if len(effects) == 0 {
			return
		}
		for _, e := range effects {
			switch e := e.(type) {
			case CreateClaim:
				n.core.ClaimCreated(e.Claim.ID)
			case AcceptClaim:
				n.after(n.latency, func() { n.send(e.Claim) })
			case StartAttempt:
				n.core.Started(n.now, e.Claim.ID, e.Attempt)
				if at, ok := n.asked[e.Claim.ID]; ok {
					n.waited = append(n.waited, n.now-at)
				}
				takes := n.takes[e.Attempt]
				n.after(takes, func() { n.core.Ended(n.now, e.Claim.ID, e.Attempt) })
			case ReportExited:
				n.last = n.now
				n.remaining--
				n.after(n.latency, func() {
					n.core.Acknowledged(1, "s1", e.Attempt)
					n.send(e.Claim)
				})
			}
		}
	}
}

// send gives a claim its next task, or gives it back.
func (n *testMachine) send(claim *Claim) {
	if claim.Class == gpu.StreamClass {
		if n.takes[n.attempt(uint64(claim.ID)+1_000_000)] == 0 {
			a := n.attempt(uint64(claim.ID) + 1_000_000)
			n.takes[a] = 100 * time.Millisecond
			n.core.Activate(n.now, 1, "s1", claim.ID, a, AttemptInfo{})
		} else {
			n.core.Release(1, "s1", claim.ID)
		}
		return
	}
	if len(n.tasks) == 0 {
		n.core.Release(1, "s1", claim.ID)
		return
	}
	n.job++
	a := n.attempt(n.job)
	n.takes[a] = n.tasks[0].takes
	n.tasks = n.tasks[1:]
	if err := n.core.Activate(n.now, 1, "s1", claim.ID, a, AttemptInfo{}); err != nil {
		n.t.Fatal(err)
	}
}

func (n *testMachine) attempt(job uint64) roost.AttemptID {
	return roost.AttemptID{Task: roost.JobID{Seq: job, Host: "s1"}.Task(0), Attempt: 1}
}

// requestClaim wishes for a claim of one core.
func (n *testMachine) requestClaim(class gpu.AppClass, wait bool) (*Claim, error) {
	n.grant++
	claim, err := n.core.DecideClaim(n.now, ClaimRequest{
		Session: 1, Schedd: "s1", Grant: roost.GrantID{Epoch: 1, ID: n.grant}, Owner: "ann", TokenValid: true,
		Lease: 1e6 * time.Second,
		Class: class, CanQueue: wait,
		Resources: roost.Resources{CPU: 1000, Memory: 64 * roost.MiB},
	})
	n.performEffects()
	return claim, err
}

// newTestMachine is a machine of four cores with work for it.
func newTestMachine(t testing.TB, queue QueueOptions, way time.Duration, tasks []batchTask) *testMachine {
	n := &testMachine{
		t: t, core: newTestTable(t, queue), latency: way, tasks: tasks, remaining: len(tasks),
		asked: map[ClaimID]roost.BootTime{}, takes: map[roost.AttemptID]time.Duration{},
	}
	if err := n.core.Connected(0, 1, "s1", 1, 1); err != nil {
		t.Fatal(err)
	}
	return n
}

// requestClaims asks for claims until there are no more, and again each second. A schedd
// does so when its negotiator sees room in the ad.
func (n *testMachine) requestClaims() {
	for err := error(nil); err == nil; {
		_, err = n.requestClaim(gpu.BatchClass, true)
	}
	if len(n.tasks) > 0 {
		n.after(time.Second, n.requestClaims)
	}
}

// runBatch plays a row of tasks and returns how long it took.
func runBatch(t testing.TB, queue QueueOptions, way, takes time.Duration, count int) time.Duration {
	tasks := make([]batchTask, count)
	for i := range tasks {
		tasks[i] = batchTask{takes}
	}
	n := newTestMachine(t, queue, way, tasks)
	n.requestClaims()
	n.run()
	if n.remaining != 0 || len(n.tasks) != 0 {
		t.Fatalf("%d tasks have not run", n.remaining)
	}
	return n.last
}

// TestQueueShortensARow checks HRM's first claim. With a task waiting on the machine for
// each core, a row of short tasks takes as long as the tasks. The latency to the schedd
// is not added to each.
func TestQueueShortensARow(t *testing.T) {
	const count, takes, way = 400, 500 * time.Millisecond, 250 * time.Millisecond
	without, with := runBatch(t, QueueOptions{}, way, takes, count),
		runBatch(t, QueueOptions{Length: 4}, way, takes, count)
	if want := way + count/4*takes; with > want+way {
		t.Errorf("with a queue the row took %v, want about %v", with, want)
	}
	if want := (takes + way) * count / 4; without < want-way {
		t.Errorf("without it took %v, want about %v", without, want)
	}
}

// runWithStreams simulates batch tasks that fill the machine, with a stream task now and
// then. It returns how long stream tasks waited at most, beyond the latency.
func runWithStreams(t testing.TB, class gpu.AppClass) (most time.Duration, refused int) {
	tasks := make([]batchTask, 200)
	for i := range tasks {
		tasks[i] = batchTask{10 * time.Second}
	}
	n := newTestMachine(t, QueueOptions{Length: 4}, 10*time.Millisecond, tasks)
	for err := error(nil); err == nil; {
		_, err = n.requestClaim(gpu.BatchClass, true)
	}
	for i := range 50 {
		n.after(time.Duration(i+1)*7*time.Second, func() {
			claim, err := n.requestClaim(class, false)
			if err != nil {
				refused++
				return
			}
			n.asked[claim.ID] = n.now
		})
	}
	n.run()
	for _, w := range n.waited {
		most = max(most, w)
	}
	return most - n.latency, refused
}

// TestStreamStartsAtOnce is HRM's second claim: a stream task starts at once on a machine
// that is full of batch tasks.
func TestStreamStartsAtOnce(t *testing.T) {
	if most, refused := runWithStreams(t, gpu.StreamClass); most > 0 || refused > 0 {
		t.Errorf("stream tasks waited up to %v, and %d were refused", most, refused)
	}
	if _, refused := runWithStreams(t, gpu.BatchClass); refused != 50 {
		t.Errorf("of 50 batch tasks that may not wait %d were refused, want all", refused)
	}
}

// BenchmarkRow measures the benefit of a node queue for several run times. The metric x
// is how many times longer the row takes without a queue.
func BenchmarkRow(b *testing.B) {
	for _, takes := range []time.Duration{100 * time.Millisecond, 500 * time.Millisecond, 2 * time.Second,
		10 * time.Second} {
		for _, q := range []struct {
			name  string
			queue QueueOptions
		}{{"one", QueueOptions{Length: 1}}, {"four", QueueOptions{Length: 4}}, {"auto", QueueOptions{Auto: true}}} {
			b.Run(fmt.Sprintf("%v/%s", takes, q.name), func(b *testing.B) {
				var x float64
				for b.Loop() {
					x = runBatch(b, QueueOptions{}, 250*time.Millisecond, takes, 200).Seconds() /
						runBatch(b, q.queue, 250*time.Millisecond, takes, 200).Seconds()
				}
				b.ReportMetric(x, "x")
			})
		}
	}
}
