package dispatch

import (
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

// TestNoRequestToAwayNode checks that the schedd sends no request to a node that is away
// for long. The task goes to another node. A node that restarts still receives the
// request.
func TestNoRequestToAwayNode(t *testing.T) {
	w := newTestPool(t, 1, 3, 1)
	m := w.machines["n0"]
	w.d.Granted(w.now, Grant{GrantID: roost.GrantID{Epoch: 1, ID: 1}, Node: "n0", Address: "unix:/n0"})
	w.connect(m)
	w.d.ClaimAnswered(w.now, "n0", ClaimReply{Grant: roost.GrantID{Epoch: 1, ID: 1}, Claim: 7, AdSequence: 1})
	w.disconnect(m)
	w.d.Effects()
	w.now += time.Second
	w.d.Granted(w.now, Grant{GrantID: roost.GrantID{Epoch: 1, ID: 2}, Node: "n0", Address: "unix:/n0"})
	if e := w.d.Effects(); len(e) != 0 {
		t.Fatalf("away for a second: got %v, want patience", e)
	}
	w.now += time.Second
	w.d.Granted(w.now, Grant{GrantID: roost.GrantID{Epoch: 1, ID: 3}, Node: "n0", Address: "unix:/n0"})
	want := GrantResult{Grant: roost.GrantID{Epoch: 1, ID: 3}, Reason: "the node does not answer"}
	if e := w.d.Effects(); len(e) != 1 || e[0] != want {
		t.Fatalf("away for two: got %v, want a refusal", e)
	}
}

// TestEvicted checks that a machine that evicts a task also takes its claim back. The
// machine gets no other task on this claim. Where the schedd itself has asked for the
// eviction, the claim continues.
func TestEvicted(t *testing.T) {
	for _, asked := range []bool{false, true} {
		w := newTestPool(t, 4, 2, 1)
		w.machines["n0"].up = true
		w.d.Granted(w.now, Grant{GrantID: roost.GrantID{Epoch: 1, ID: 1}, Node: "n0", Address: "unix:/n0"})
		w.d.Connected(w.now, "n0", nil)
		w.d.ClaimAnswered(w.now, "n0", ClaimReply{Grant: roost.GrantID{Epoch: 1, ID: 1}, Claim: 7, AdSequence: 1})
		a := roost.AttemptID{Task: roost.JobID{Seq: 1, Host: "h"}.Task(0), Attempt: 1}
		if asked {
			w.d.Vacate(a, VacateOrder{})
		}
		w.d.Exited(w.now, "n0", a)
		w.d.Evicted(a)
		w.b.recordEnd(a)
		w.d.Effects()
		w.d.Finished(w.now, a)
		e, next := w.d.Effects(), roost.AttemptID{Task: roost.JobID{Seq: 1, Host: "h"}.Task(1), Attempt: 1}
		if want := Effect(ReleaseClaim{"n0", 7}); !asked && (len(e) != 2 || e[1] != want) {
			t.Errorf("got %v, want a release of claim 7", e)
		}
		if want := Effect(ActivateClaim{"n0", 7, next}); asked && (len(e) != 2 || e[1] != want) {
			t.Errorf("the schedd asked for it: got %v, want the next task on claim 7", e)
		}
		w.d.Check()
	}
}
