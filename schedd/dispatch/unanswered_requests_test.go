package dispatch

import (
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

// TestSlowNode has a node answer one claim request each 62 ms, as a startd with a
// thousand tasks did. All tasks start, each on the claim that was asked for it first.
func TestSlowNode(t *testing.T) {
	const tasks, pace = 1000, 62 * time.Millisecond
	b := newNaiveJobQueue(t, tasks)
	d := New(b, DefaultOptions())
	now := roost.BootTime(time.Hour)
	for i := range tasks {
		d.Granted(now, Grant{GrantID: roost.GrantID{Epoch: 1, ID: uint64(i + 1)}, Request: 1, Node: "n"})
	}
	d.Connected(now, "n", nil)
	var wire []*Claim // with the startd, in order
	asked, released, started := 0, 0, 0
	for range tasks + 10 {
		for _, e := range d.Effects() {
			switch e := e.(type) {
			case RequestClaim:
				asked++
				wire = append(wire, e.Claim)
			case ReleaseClaim:
				released++
			case ActivateClaim:
				started++
			case GrantResult:
				if !e.Claimed {
					t.Fatalf("at %v the grant %v is given up: %s", now, e.Grant, e.Reason)
				}
			}
		}
		if most := DefaultOptions().MaxUnanswered; len(wire) > most {
			t.Fatalf("%d requests are with the startd, and %d is the most", len(wire), most)
		}
		now += pace
		if len(wire) > 0 {
			c := wire[0]
			wire = wire[1:]
			d.ClaimAnswered(now, "n", ClaimReply{Grant: c.Grant.GrantID, Claim: c.Grant.ID})
		}
		d.Tick(now)
		d.Check()
	}
	if asked != tasks || released != 0 || started != tasks {
		t.Errorf("%d claims were asked for, %d released, and %d tasks started, want %d, 0 and %d", asked, released,
			started, tasks, tasks)
	}
}

// TestDeafNode checks when requests are given up. A node that answers none loses all of
// them after RequestTimeout. One that answers a few of many loses the last ones later.
func TestDeafNode(t *testing.T) {
	opt := DefaultOptions()
	for _, test := range []struct {
		name       string
		pace, want time.Duration // between two answers; when the last request is given up
		reason     string
	}{
		{"silent", 0, opt.RequestTimeout, SilentNode},
		{"slow", 9 * time.Second, (maxUnsentTimeouts + 1) * opt.RequestTimeout, BusyNode},
	} {
		b := newNaiveJobQueue(t, 200)
		d := New(b, opt)
		began := roost.BootTime(time.Hour)
		d.Connected(began, "n", nil)
		for i := range 200 {
			d.Granted(began, Grant{GrantID: roost.GrantID{Epoch: 1, ID: uint64(i + 1)}, Request: 1, Node: "n"})
		}
		var wire []*Claim
		var last time.Duration
		reason := ""
		for now := began; now < began+3*time.Minute; now += time.Second {
			d.Tick(now)
			if test.pace > 0 && now > began && (now-began)%test.pace == 0 && len(wire) > 0 {
				c := wire[0]
				wire = wire[1:]
				d.ClaimAnswered(now, "n", ClaimReply{Grant: c.Grant.GrantID, Claim: c.Grant.ID})
			}
			for _, e := range d.Effects() {
				switch e := e.(type) {
				case RequestClaim:
					wire = append(wire, e.Claim)
				case GrantResult:
					if !e.Claimed && e.Grant.ID == 200 {
						last, reason = now-began, e.Reason
					}
				}
			}
			d.Check()
		}
		if last != test.want || reason != test.reason || len(d.requested) > 0 {
			t.Errorf("%s: the last request is given up after %v, because %s, want %v, %s; %d are left", test.name, last,
				reason, test.want, test.reason, len(d.requested))
		}
	}
}
