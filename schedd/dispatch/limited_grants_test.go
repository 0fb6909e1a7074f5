package dispatch

import (
	"slices"
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

// TestLimitedGrants checks that exactly the pending or claimed grants with concurrency
// limits are listed. A grant leaves the list when it is refused or its claim is released.
// The list is incomplete while no node has said from which grant an older claim was made.
func TestLimitedGrants(t *testing.T) {
	b := newNaiveJobQueue(t, 3)
	d := New(b, DefaultOptions())
	holds := func(when string, all bool, want ...LimitedGrant) {
		t.Helper()
		if got, known := d.LimitedGrants(); known != all || !slices.Equal(got, want) {
			t.Errorf("%s: %v, all %v; want %v, all %v", when, got, known, want, all)
		}
		d.Check()
	}
	d.Connected(time.Hour, "n1", nil)
	grant := func(id uint64, by roost.BootTime) Grant {
		return Grant{GrantID: roost.GrantID{Epoch: 7, ID: id}, Request: 1, Node: "n1", Address: "x",
			Resources: roost.Resources{CPU: 1000}, ClaimBy: by}
	}
	first, second := roost.GrantID{Epoch: 7, ID: 1}, roost.GrantID{Epoch: 7, ID: 2}
	d.Granted(time.Hour, grant(1, time.Minute))
	d.Granted(time.Hour, grant(2, time.Minute))
	d.Granted(time.Hour, grant(3, 0))
	holds("three grants", true, LimitedGrant{Grant: first}, LimitedGrant{Grant: second})
	d.ClaimAnswered(time.Hour, "n1", ClaimReply{Grant: first, Claim: 5, AdSequence: 9})
	holds("a claim", true, LimitedGrant{first, true, 9}, LimitedGrant{Grant: second})
	d.ClaimAnswered(time.Hour, "n1", ClaimReply{Grant: second, Reason: "no"})
	holds("a refusal", true, LimitedGrant{first, true, 9})

	live := slices.Collect(func(yield func(roost.AttemptID) bool) {
		for a := range b.live {
			yield(a)
		}
	})
	d = New(b, DefaultOptions())
	d.Adopt(time.Hour, []RecoveredAttempt{{Attempt: live[0], Request: 1, Node: "n1", Address: "x", Claim: 5,
		Started: true}})
	holds("after a restart", false)
	d.Connected(time.Hour, "n1", []ReportedClaim{{Claim: 5, Grant: first, Attempt: live[0], Running: true}})
	holds("when the node has said what it has", true, LimitedGrant{first, true, 0})
	d.Exited(time.Hour, "n1", live[0])
	b.recordEnd(live[0])
	b.ready = nil
	d.Finished(time.Hour, live[0])
	d.Tick(2 * time.Hour)
	holds("when the claim was given back", true)
}
