package dispatch

import (
	"slices"
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

// TestRestartOnTheSameClaim checks that a claim waits for the next attempt of its task.
// It waits for no other task, however long that takes. It becomes free when the task is
// not to run on it any more.
func TestRestartOnTheSameClaim(t *testing.T) {
	w := newTestPool(t, 4, 2, 1)
	w.machines["n0"].up = true
	w.b.restarts = map[int]bool{}
	grant := roost.GrantID{Epoch: 1, ID: 1}
	w.d.Granted(w.now, Grant{GrantID: grant, Node: "n0", Address: "unix:/n0"})
	w.d.Connected(w.now, "n0", nil)
	w.d.ClaimAnswered(w.now, "n0", ClaimReply{Grant: grant, Claim: 7, AdSequence: 1})
	task := roost.JobID{Seq: 1, Host: "h"}.Task(0)
	end := func(n roost.AttemptNumber) []Effect {
		a := roost.AttemptID{Task: task, Attempt: n}
		w.d.Exited(w.now, "n0", a)
		delete(w.b.live, a)
		w.b.restarts[0] = true
		w.d.Failed(a, 1) // the queue counts the failures of services itself
		w.d.Effects()
		w.d.Finished(w.now, a)
		w.d.Check()
		return w.d.Effects()
	}
	starts := func(e []Effect, n roost.AttemptNumber) bool {
		return slices.Contains(e, Effect(ActivateClaim{"n0", 7, roost.AttemptID{Task: task, Attempt: n}}))
	}

	if e := end(1); len(e) != 1 {
		t.Fatalf("got %v, want the acknowledgement alone", e)
	}
	w.now += 10 * time.Minute // far beyond what an idle claim waits
	w.d.Tick(w.now)
	w.d.RequestChanged(w.now, 0)
	if w.d.ClaimCount(0) != 1 || w.d.ClaimCounts(0) != 0 || len(w.b.live) != 0 {
		t.Fatalf("%d claims, %d free, live %v: want one that waits", w.d.ClaimCount(0), w.d.ClaimCounts(0), w.b.live)
	}
	RestartTask(w.d, w.now, task) // too early
	w.b.ready = append(w.b.ready, 0)
	w.d.Effects()
	RestartTask(w.d, w.now, task)
	if e := w.d.Effects(); !starts(e, 2) {
		t.Fatalf("got %v, want attempt 2 on claim 7", e)
	}

	w.b.ready = append(w.b.ready, 0) // without a wait
	if e := end(2); !starts(e, 3) {
		t.Fatalf("got %v, want attempt 3 on claim 7 at once", e)
	}

	end(3)
	w.d.Connected(w.now, "n0", []ReportedClaim{{Claim: 7, Grant: grant}})
	w.d.Effects()
	delete(w.b.restarts, 0) // somebody has held it
	RestartTask(w.d, w.now, task)
	other := roost.AttemptID{Task: roost.JobID{Seq: 1, Host: "h"}.Task(1), Attempt: 1}
	if e := w.d.Effects(); !slices.Contains(e, Effect(ReleaseClaim{"n0", 7})) &&
		!slices.Contains(e, Effect(ActivateClaim{"n0", 7, other})) {
		t.Fatalf("got %v, want that the claim is free", e)
	}
	w.d.Check()
}

// TestRestartWithoutNode checks that a claim that waits for a restart goes with its node.
func TestRestartWithoutNode(t *testing.T) {
	w := newTestPool(t, 4, 1, 1)
	w.machines["n0"].up = true
	w.b.restarts = map[int]bool{0: true}
	grant := roost.GrantID{Epoch: 1, ID: 1}
	w.d.Granted(w.now, Grant{GrantID: grant, Node: "n0", Address: "unix:/n0"})
	w.d.Connected(w.now, "n0", nil)
	w.d.ClaimAnswered(w.now, "n0", ClaimReply{Grant: grant, Claim: 7, AdSequence: 1})
	a := roost.AttemptID{Task: roost.JobID{Seq: 1, Host: "h"}.Task(0), Attempt: 1}
	w.d.Exited(w.now, "n0", a)
	delete(w.b.live, a)
	w.d.Finished(w.now, a)
	w.d.Disconnected(w.now, "n0")
	w.d.Check()
	w.b.ready = append(w.b.ready, 0)
	w.d.Effects()
	RestartTask(w.d, w.now, a.Task)
	if e := w.d.Effects(); w.d.ClaimCount(0) != 0 || len(e) != 0 || w.b.lost != 0 {
		t.Fatalf("%d claims, %v, %d lost: want nothing", w.d.ClaimCount(0), e, w.b.lost)
	}
}

// TestSilence checks when the queue is told that the node of an attempt is silent. It is
// told once for each silence, and when the node answers again.
func TestSilence(t *testing.T) {
	w := newTestPool(t, 4, 1, 1)
	w.machines["n0"].up = true
	w.b.notedAfter = 15 * time.Second
	grant := roost.GrantID{Epoch: 1, ID: 1}
	w.d.Granted(w.now, Grant{GrantID: grant, Node: "n0", Address: "unix:/n0"})
	w.d.Connected(w.now, "n0", nil)
	w.d.ClaimAnswered(w.now, "n0", ClaimReply{Grant: grant, Claim: 7, AdSequence: 1})
	attempt := roost.AttemptID{Task: roost.JobID{Seq: 1, Host: "h"}.Task(0), Attempt: 1}
	for range 2 {
		w.d.Disconnected(w.now, "n0")
		if at, ok := w.d.NextTick(w.now); !ok || at != w.now+w.b.notedAfter {
			t.Fatalf("the next tick is due after %v, want %v", at-w.now, w.b.notedAfter)
		}
		for _, c := range []struct {
			after time.Duration
			want  int
		}{{w.b.notedAfter - 1, 0}, {1, 1}, {time.Second, 1}} {
			w.now += c.after
			w.d.Tick(w.now)
			w.d.Check()
			if w.b.silent != c.want || w.b.lost != 0 {
				t.Fatalf("%d attempts are silent and %d lost, want %d and none", w.b.silent, w.b.lost, c.want)
			}
		}
		w.d.Connected(w.now, "n0", []ReportedClaim{{Claim: 7, Grant: grant, Attempt: attempt, Running: true}})
		w.d.Check()
		if w.b.silent != 0 {
			t.Fatal("the node answers, and the queue does not know it")
		}
	}
}

// TestSilenceCountsFromLastWord checks that a node is silent since it was last heard, and
// not since its session has broken.
func TestSilenceCountsFromLastWord(t *testing.T) {
	w := newTestPool(t, 4, 1, 1)
	w.machines["n0"].up = true
	w.b.notedAfter = 15 * time.Second
	grant := roost.GrantID{Epoch: 1, ID: 1}
	w.d.Granted(w.now, Grant{GrantID: grant, Node: "n0", Address: "unix:/n0"})
	w.d.Connected(w.now, "n0", nil)
	w.d.ClaimAnswered(w.now, "n0", ClaimReply{Grant: grant, Claim: 7, AdSequence: 1})
	NoteSilence(w.d, "n0", time.Hour) // it is connected
	w.now += 20 * time.Second
	w.d.Disconnected(w.now, "n0")
	NoteSilence(w.d, "n0", 10*time.Second)
	NoteSilence(w.d, "n1", 10*time.Second) // nobody knows it
	if at, ok := w.d.NextTick(w.now); !ok || at != w.now+5*time.Second {
		t.Fatalf("the next tick is due after %v, want 5s", at-w.now)
	}
	w.d.Check()
	w.now += 5 * time.Second
	if w.d.Tick(w.now); w.b.silent != 1 {
		t.Errorf("its task was said to be lost %d times", w.b.silent)
	}
	if s, ok := w.d.NodeSilence(roost.JobID{Seq: 1, Host: "h"}.Task(0)); !ok || s.Since != w.now-15*time.Second {
		t.Errorf("it is silent since %v, want 15s ago", s.Since-w.now)
	}
}

// TestLostAfter checks when a task of a silent node is given up. Without overlap that is
// never before the end of its lease.
func TestLostAfter(t *testing.T) {
	grace := DefaultOptions().KillGrace
	for _, c := range []struct {
		name      string
		lostAfter time.Duration
		overlap   bool
		want      time.Duration // after the silence began; the lease is a minute
	}{
		{"by default", 0, false, time.Minute + time.Minute/100 + grace},
		{"longer than the lease", 5 * time.Minute, false, 5 * time.Minute},
		{"shorter than the lease", 15 * time.Second, false, time.Minute + time.Minute/100 + grace},
		{"with overlap", 15 * time.Second, true, 15 * time.Second},
	} {
		w := newTestPool(t, 4, 1, 1)
		w.machines["n0"].up = true
		w.b.lostAfter, w.b.mayOverlap = c.lostAfter, c.overlap
		grant := roost.GrantID{Epoch: 1, ID: 1}
		w.d.Granted(w.now, Grant{GrantID: grant, Node: "n0", Address: "unix:/n0"})
		w.d.Connected(w.now, "n0", nil)
		w.d.ClaimAnswered(w.now, "n0", ClaimReply{Grant: grant, Claim: 7, AdSequence: 1})
		w.d.Disconnected(w.now, "n0")
		silent := w.now
		if at, ok := w.d.NextTick(w.now); !ok || at != silent+c.want {
			t.Errorf("%s: the next tick is due after %v, want %v", c.name, at-silent, c.want)
		}
		if s, ok := w.d.NodeSilence(roost.JobID{Seq: 1, Host: "h"}.Task(0)); !ok || s.LeaseEnd != silent+c.want {
			t.Errorf("%s: it is shown as given up after %v, want %v", c.name, s.LeaseEnd-silent, c.want)
		}
		w.now = silent + c.want - 1
		w.d.Tick(w.now)
		if w.b.lost != 0 {
			t.Errorf("%s: given up before %v", c.name, c.want)
		}
		w.now++
		w.d.Tick(w.now)
		w.d.Check()
		if w.b.lost != 1 {
			t.Errorf("%s: not given up after %v", c.name, c.want)
		}
		// the old attempt is told to end when its node is heard again
		old := roost.AttemptID{Task: roost.JobID{Seq: 1, Host: "h"}.Task(0), Attempt: 1}
		w.d.Effects()
		w.d.Connected(w.now, "n0", []ReportedClaim{{Claim: 7, Grant: grant, Attempt: old, Running: true}})
		if !slices.ContainsFunc(w.d.Effects(), func(e Effect) bool {
			v, ok := e.(VacateAttempt)
			return ok && v.Attempt == old
		}) {
			t.Errorf("%s: the old attempt runs on", c.name)
		}
	}
}
