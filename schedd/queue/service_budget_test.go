package queue

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

const checkedService = `Service = []; Checks = {[Name = "up"; Kind = "exec"; For = "live"; Command = {"true"}]}`

// restartFailing has the queue decide which failing attempts are ended.
func (d *testQueue) restartFailing() (ended []VacateAttempt) {
	d.Helper()
	for events := d.queue.HealthRestarts(d.now); len(events) > 0; events = d.queue.HealthRestarts(d.now) {
		for _, e := range events {
			d.apply(e)
		}
	}
	return d.queue.TakeVacates()
}

// fail has the machine of an attempt say that its check has failed.
func (d *testQueue) fail(a roost.AttemptID) {
	d.Helper()
	d.health(a, roost.ServiceUnready, "up", "503 Service Unavailable")
	d.queue.NoteFailing(a, true)
}

// endWaits goes on to when the next task has waited for its restart.
func (d *testQueue) endWaits() {
	d.Helper()
	if at := d.queue.NextRestart(); at.After(d.now) {
		d.now = at
	}
	d.apply(d.queue.DueRestarts(d.now)...)
}

// TestFailedChecksMakeWaits checks that a task whose live check fails again and again
// waits as one that exits. The waits are counted, and begin anew when it was ready for
// long.
func TestFailedChecksMakeWaits(t *testing.T) {
	d := newTestQueue(t)
	id := d.submit(1, checkedService)
	fail := func() (wait time.Duration) {
		t.Helper()
		a := d.run()
		d.health(a, roost.ServiceReady, "", "")
		d.now = d.now.Add(time.Second)
		d.fail(a)
		if ended := d.restartFailing(); len(ended) != 1 {
			t.Fatalf("got %v", ended)
		}
		d.now = d.now.Add(time.Second)
		d.end(a, AttemptExit{Cause: CauseVacate, Reason: "live check up failed"})
		d.checkSame(d.restoredCopy())
		wait = d.queue.NextRestart().Sub(d.now)
		return wait
	}
	for n, full := range []time.Duration{1, 2, 4, 8, 16} {
		if wait := fail(); wait > full*time.Second || wait < full*time.Second*3/4 {
			t.Fatalf("restart %d waits %v, want about %d s", n+1, wait, full)
		}
		s, _ := d.queue.Status(id.Seq)
		if s.Task.Service.Restarts != n+1 || s.Reason != ordinal(n+1)+" restart, live check up failed" ||
			!d.queue.ReusesClaim(id.Task(0)) {
			t.Fatalf("restart %d: %q, %+v", n+1, s.Reason, s.Task.Service)
		}
		d.endWaits()
	}
	if fail(); d.queue.ReusesClaim(id.Task(0)) {
		t.Fatal("after five restarts within ten minutes it stays on its machine")
	}
	d.endWaits()
	a := d.run()
	d.health(a, roost.ServiceReady, "", "")
	d.now = d.now.Add(11 * time.Minute)
	d.fail(a)
	d.restartFailing()
	if d.end(a, AttemptExit{Cause: CauseVacate}); !d.queue.NextRestart().IsZero() {
		t.Fatalf("after eleven minutes it waits until %v", d.queue.NextRestart())
	}
	if wait := fail(); wait > time.Second {
		t.Fatalf("after eleven minutes as ready the next wait is %v", wait)
	}
}

// TestHealthRestartsAreBounded checks that no more tasks are started again for their
// checks than may be down. The next one follows when one is ready.
func TestHealthRestartsAreBounded(t *testing.T) {
	d := newTestQueue(t)
	id := d.submit(3, checkedService)
	var all []roost.AttemptID
	for range 3 {
		a := d.run()
		all = append(all, a)
		d.health(a, roost.ServiceReady, "", "")
	}
	for _, a := range all {
		d.fail(a)
	}
	ended := d.restartFailing()
	if len(ended) != 1 || ended[0].Attempt != all[0] || ended[0].Fast ||
		ended[0].Reason != "live check up failed: 503 Service Unavailable" {
		t.Fatalf("got %v", ended)
	}
	d.checkServices(id, "running leaving, running unready, running unready; 0 of 3")
	d.checkSame(d.restoredCopy())
	if more := d.restartFailing(); len(more) > 0 {
		t.Fatalf("asked again: %v", more)
	}
	d.end(all[0], AttemptExit{Cause: CauseVacate})
	d.endWaits()
	next := d.run()
	if more := d.restartFailing(); len(more) > 0 {
		t.Fatalf("while the first one starts: %v", more)
	}
	d.queue.NoteFailing(all[1], false) // which works again meanwhile
	d.health(next, roost.ServiceReady, "", "")
	if more := d.restartFailing(); len(more) != 1 || more[0].Attempt != all[2] {
		t.Fatalf("when the first one is ready: %v", more)
	}
	d.end(all[2], AttemptExit{Cause: CauseVacate})
	d.fail(all[1])
	held, err := d.queue.HoldTasks(d.now, alice, TaskSelector{Job: id, Ranges: []IndexRange{{First: 2, Last: 2}}}, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range held {
		d.apply(e)
	}
	if more := d.restartFailing(); len(more) != 1 || more[0].Attempt != all[1] {
		t.Fatalf("a held task is down by its user's doing: %v", more)
	}
}

// TestHealthRestartsOfMany checks the bound with random news of many tasks.
func TestHealthRestartsOfMany(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	d := newTestQueue(t)
	const tasks, most = 60, 3
	d.submit(tasks, checkedService)
	live := map[roost.AttemptID]bool{}
	for range tasks {
		live[d.run()] = true
	}
	down := map[int]bool{} // by index: ended for a check, and not ready again
	for range 2000 {
		d.now = d.now.Add(time.Second)
		all := slices.SortedFunc(maps.Keys(live), compareAttempts)
		a := all[rng.IntN(len(all))]
		if rng.IntN(3) == 0 {
			d.fail(a)
		} else {
			d.queue.NoteFailing(a, false)
			d.health(a, roost.ServiceReady, "", "")
			delete(down, a.Task.Index)
		}
		for _, v := range d.restartFailing() {
			down[v.Attempt.Task.Index] = true
			d.end(v.Attempt, AttemptExit{Cause: CauseVacate})
			delete(live, v.Attempt)
			d.endWaits()
			live[d.run()] = true
		}
		if len(down) > most {
			t.Fatalf("%d tasks are down for their checks", len(down))
		}
	}
}
