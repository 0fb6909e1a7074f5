package dispatch

import (
	"slices"
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

// TestUnavailable checks that a claim on a drained or reserved node takes no task that
// might run too long. Such a task might still run when the node becomes unavailable. A
// task of that reservation is allowed.
func TestUnavailable(t *testing.T) {
	now := time.Hour
	for _, tt := range []struct {
		name        string
		retained    UnavailableWindow
		walltime    time.Duration
		reservation string
		free        bool
	}{
		{"drained", UnavailableWindow{Node: "n0"}, time.Second, "", true},
		{"another node is drained", UnavailableWindow{Node: "n1"}, 0, "", false},
		{"drained until a while ago", UnavailableWindow{Node: "n0", Until: now}, 0, "", false},
		{"drained later, and it ends before", UnavailableWindow{Node: "n0", From: now + time.Minute}, time.Minute,
			"", false},
		{"drained later, and it may not have ended", UnavailableWindow{Node: "n0", From: now + time.Minute},
			time.Minute + 1, "", true},
		{"drained later, and it runs for ever", UnavailableWindow{Node: "n0", From: now + 100*time.Hour}, 0, "", true},
		{"reserved for others", UnavailableWindow{Node: "n0", From: now, Until: 2 * now, Reservation: "class"},
			time.Second, "exam", true},
		{"reserved for it", UnavailableWindow{Node: "n0", From: now, Until: 2 * now, Reservation: "class"}, 0,
			"class", false},
	} {
		w := newTestPool(t, 5, 2, 1)
		w.now, w.b.walltime, w.b.reservation = now, tt.walltime, tt.reservation
		w.machines["n0"].up = true
		w.d.Granted(w.now, Grant{GrantID: roost.GrantID{Epoch: 1, ID: 1}, Node: "n0", Address: "unix:/n0"})
		w.d.Connected(w.now, "n0", nil)
		w.d.ClaimAnswered(w.now, "n0", ClaimReply{Grant: roost.GrantID{Epoch: 1, ID: 1}, Claim: 7, AdSequence: 1})
		w.d.SetUnavailable([]UnavailableWindow{tt.retained})
		a := roost.AttemptID{Task: roost.JobID{Seq: 1, Host: "h"}.Task(0), Attempt: 1}
		w.d.Exited(w.now, "n0", a)
		w.b.recordEnd(a)
		w.d.Effects()
		w.d.Finished(w.now, a)
		e := w.d.Effects()
		if freed := len(e) == 2 && e[1] == Effect(ReleaseClaim{"n0", 7}); freed != tt.free {
			t.Errorf("%s: got %v, given back: want %v", tt.name, e, tt.free)
		}
		w.d.Check()
	}
}

// TestNodeEnds checks that a claim on a pilot takes no task that may run longer than the
// pilot lives.
func TestNodeEnds(t *testing.T) {
	now := time.Hour
	for name, tt := range map[string]struct {
		end, walltime time.Duration
		free          bool
	}{
		"it stays":              {0, 0, false},
		"it ends before":        {now + time.Minute, time.Minute + 1, true},
		"just in time":          {now + time.Minute, time.Minute, false},
		"a task without an end": {now + 100*time.Hour, 0, true},
		"it should be gone":     {now - time.Minute, time.Second, true},
	} {
		w := newTestPool(t, 5, 2, 1)
		w.now, w.b.walltime = now, tt.walltime
		w.machines["n0"].up = true
		w.d.Granted(w.now, Grant{GrantID: roost.GrantID{Epoch: 1, ID: 1}, Node: "n0", Address: "unix:/n0"})
		w.d.Connected(w.now, "n0", nil)
		w.d.ClaimAnswered(w.now, "n0", ClaimReply{Grant: roost.GrantID{Epoch: 1, ID: 1}, Claim: 7, AdSequence: 1})
		SetNodeEnd(w.d, "n0", tt.end)
		a := roost.AttemptID{Task: roost.JobID{Seq: 1, Host: "h"}.Task(0), Attempt: 1}
		w.d.Exited(w.now, "n0", a)
		w.b.recordEnd(a)
		w.d.Effects()
		w.d.Finished(w.now, a)
		e := w.d.Effects()
		if freed := len(e) == 2 && e[1] == Effect(ReleaseClaim{"n0", 7}); freed != tt.free {
			t.Errorf("%s: got %v, given back: want %v", name, e, tt.free)
		}
		w.d.Check()
	}
}

// TestNewClaimBesideReservation checks that a claim on a node that is reserved in part
// takes its task. The leader knew of that when it granted it. A claim that was granted
// before does not, nor one that has waited until its task would not end in time, and
// neither does the next task of any.
func TestNewClaimBesideReservation(t *testing.T) {
	now := time.Hour
	for name, tt := range map[string]struct {
		knownBefore, repeated bool
		walltime, from, waits time.Duration
		free                  bool
	}{
		"known when it was granted":        {true, false, 0, 100 * time.Hour, 0, false},
		"and said again":                   {true, true, 0, 100 * time.Hour, 0, false},
		"heard of between grant and claim": {false, false, 0, 100 * time.Hour, 0, true},
		"too long for it from the start":   {true, false, 2 * time.Hour, time.Hour, 0, false},
		"the node answers late":            {true, false, 50 * time.Minute, time.Hour, 20 * time.Minute, true},
		"and in time":                      {true, false, 50 * time.Minute, time.Hour, 10 * time.Minute, false},
	} {
		window := UnavailableWindow{Node: "n0", From: now + tt.from, Until: now + 200*time.Hour, Reservation: "class"}
		w := newTestPool(t, 5, 2, 1)
		w.now, w.b.walltime = now, tt.walltime
		w.machines["n0"].up = true
		if tt.knownBefore {
			w.d.SetUnavailable([]UnavailableWindow{window})
		}
		w.d.Granted(w.now, Grant{GrantID: roost.GrantID{Epoch: 1, ID: 1}, Node: "n0", Address: "unix:/n0"})
		w.d.Connected(w.now, "n0", nil)
		if tt.repeated || !tt.knownBefore {
			w.d.SetUnavailable([]UnavailableWindow{{Node: "n1"}, window})
		}
		w.d.Effects()
		w.now += tt.waits
		w.d.ClaimAnswered(w.now, "n0", ClaimReply{Grant: roost.GrantID{Epoch: 1, ID: 1}, Claim: 7, AdSequence: 1})
		e := w.d.Effects()
		if freed := slices.Contains(e, Effect(ReleaseClaim{"n0", 7})); freed != tt.free {
			t.Errorf("%s: got %v, given back: want %v", name, e, tt.free)
		}
		if tt.free || tt.waits > 0 {
			continue
		}
		a := roost.AttemptID{Task: roost.JobID{Seq: 1, Host: "h"}.Task(0), Attempt: 1}
		w.d.Exited(w.now, "n0", a)
		w.b.recordEnd(a)
		w.d.Finished(w.now, a)
		if e := w.d.Effects(); !slices.Contains(e, Effect(ReleaseClaim{"n0", 7})) {
			t.Errorf("%s: after its first task it is not given back: %v", name, e)
		}
		w.d.Check()
	}
}
