package dispatch

import (
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

// renewals are what of it is among the effects.
func renewals(d *Dispatcher) (all []RenewLeases) {
	for _, e := range d.Effects() {
		if r, ok := e.(RenewLeases); ok {
			all = append(all, r)
		}
	}
	return all
}

// TestRenewalSendTime holds that a renewal says by the node's own words when it was sent,
// on each session anew.
func TestRenewalSendTime(t *testing.T) {
	w := newTestPool(t, 1, 1, 1)
	one := func(want RenewLeases) {
		t.Helper()
		if all := renewals(w.d); len(all) != 1 || all[0] != want {
			t.Errorf("got %v, want %v", all, want)
		}
	}
	w.d.Granted(w.now, Grant{GrantID: roost.GrantID{Epoch: 1, ID: 1}, Node: "n0", Address: "unix:/n0"})
	w.d.Connected(w.now, "n0", nil)
	w.d.ClaimAnswered(w.now, "n0", ClaimReply{Grant: roost.GrantID{Epoch: 1, ID: 1}, Claim: 7, AdSequence: 1})
	w.d.Effects()
	every := w.d.renewEvery(w.d.nodes["n0"])
	w.now += every
	w.d.Tick(w.now)
	one(RenewLeases{"n0", 0, every})
	w.d.LeaseRenewed(w.now+time.Second, "n0", 1)
	w.d.LeaseRenewed(w.now+2*time.Second, "n0", 1) // not a new one
	w.now += every
	w.d.Tick(w.now)
	one(RenewLeases{"n0", 1, every - time.Second})

	w.d.Disconnected(w.now, "n0")
	w.d.LeaseRenewed(w.now, "n0", 9) // too late
	w.now += time.Second
	a := roost.AttemptID{Task: roost.JobID{Seq: 1, Host: "h"}.Task(0), Attempt: 1}
	w.d.Connected(w.now, "n0", []ReportedClaim{{Claim: 7, Grant: roost.GrantID{Epoch: 1, ID: 1}, Attempt: a,
		Running: true}})
	one(RenewLeases{"n0", 0, 0})
}

// TestSlowAnswer checks that a lease counts from the node's answer when the node made the
// claim slowly.
func TestSlowAnswer(t *testing.T) {
	w := newTestPool(t, 1, 1, 1)
	w.d.Connected(w.now, "n0", nil)
	w.d.Granted(w.now, Grant{GrantID: roost.GrantID{Epoch: 1, ID: 1}, Node: "n0", Address: "unix:/n0"})
	w.now += 20 * time.Second
	w.d.ClaimAnswered(w.now, "n0", ClaimReply{Grant: roost.GrantID{Epoch: 1, ID: 1}, Claim: 7, AdSequence: 1})
	w.d.Disconnected(w.now, "n0")
	c := w.d.nodes["n0"].claims[7]
	w.d.Tick(w.now + c.Lease + w.d.options.KillGrace)
	if w.b.lost != 0 {
		t.Error("the task is given up while its node may run it")
	}
	w.d.Tick(c.leaseEnd(w.d.options.KillGrace))
	if w.b.lost != 1 {
		t.Error("the task is not given up")
	}
}
