package dispatch

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

// gangGrant is the i-th grant of a gang of three, of which the first has the number 1.
func gangGrant(i int) Grant {
	return Grant{
		GrantID: roost.GrantID{Epoch: 7, ID: uint64(i)}, Request: 1, Node: fmt.Sprintf("n%d", i), Address: "x",
		Resources: roost.Resources{CPU: 1000}, GangID: 1, GangSize: 3,
	}
}

// formatEffects writes effects down that are about claims and attempts.
func formatEffects(d *Dispatcher) string {
	var out []string
	for _, e := range d.Effects() {
		switch e := e.(type) {
		case RequestClaim:
			out = append(out, "ask "+e.Claim.Node)
		case ActivateClaim:
			out = append(out, fmt.Sprintf("activate %d on %s", e.Attempt.Task.Index, e.Node))
		case ReleaseClaim:
			out = append(out, "release "+e.Node)
		case GrantResult:
			if !e.Claimed {
				out = append(out, fmt.Sprintf("refuse %d: %s", e.Grant.ID, e.Reason))
			}
		}
	}
	d.Check()
	return strings.Join(out, "; ")
}

// newGangTest returns a dispatcher of one request with two gangs of three tasks. It is
// connected to three nodes and was granted one gang.
func newGangTest(t *testing.T) (*naiveJobQueue, *Dispatcher) {
	b := newNaiveJobQueue(t, 6)
	b.gang = 3
	d := New(b, DefaultOptions())
	for i := 1; i <= 3; i++ {
		d.Connected(time.Hour, fmt.Sprintf("n%d", i), nil)
	}
	d.Effects()
	for i := 1; i <= 3; i++ {
		d.Granted(time.Hour, gangGrant(i))
	}
	if got := formatEffects(d); got != "ask n1; ask n2; ask n3" {
		t.Fatalf("a gang is granted: %s", got)
	}
	if d.ClaimCounts(1) != 3 {
		t.Fatalf("%d claims are spoken for", d.ClaimCounts(1))
	}
	return b, d
}

func acceptClaim(d *Dispatcher, now roost.BootTime, i int) {
	d.ClaimAnswered(now, fmt.Sprintf("n%d", i), ClaimReply{Grant: roost.GrantID{Epoch: 7, ID: uint64(i)},
		Claim: uint64(10 + i)})
}

func TestGangStartsTogether(t *testing.T) {
	b, d := newGangTest(t)
	acceptClaim(d, time.Hour, 3)
	acceptClaim(d, time.Hour, 1)
	if got := formatEffects(d); got != "" {
		t.Fatalf("with one claim missing: %s", got)
	}
	d.Tick(time.Hour + time.Second) // longer than an idle claim waits
	if got := formatEffects(d); got != "" {
		t.Fatalf("after a second: %s", got)
	}
	acceptClaim(d, time.Hour+time.Second, 2)
	if got := formatEffects(d); got != "activate 0 on n1; activate 1 on n2; activate 2 on n3" {
		t.Fatalf("when the last is there: %s", got)
	}
	for a := range b.live {
		d.Exited(2*time.Hour, fmt.Sprintf("n%d", a.Task.Index+1), a)
		b.recordEnd(a)
		d.Finished(2*time.Hour, a)
	}
	if got := formatEffects(d); strings.Count(got, "release") != 3 || strings.Contains(got, "activate") {
		t.Fatalf("a claim of a gang is used for one task: %s", got)
	}
}

func TestGangTimeout(t *testing.T) {
	for name, test := range map[string]struct {
		happens func(d *Dispatcher)
		want    string
	}{
		"refused": {func(d *Dispatcher) {
			d.ClaimAnswered(time.Hour, "n2", ClaimReply{Grant: roost.GrantID{Epoch: 7, ID: 2}, Reason: "no"})
		}, "refuse 2: no; release n1"},
		"lost": {func(d *Dispatcher) { d.ClaimLost("n1", 11, "gone") }, ""},
		"late": {func(d *Dispatcher) { d.Tick(time.Hour + DefaultOptions().RequestTimeout) },
			"release n1; refuse 1: not all claims of its gang were made in time; refuse 2: the node does not " +
				"answer; " +
				"refuse 3: the node does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			b, d := newGangTest(t)
			acceptClaim(d, time.Hour, 1)
			test.happens(d)
			if got := formatEffects(d); got != test.want {
				t.Fatalf("got %s, want %s", got, test.want)
			}
			if d.ClaimCounts(1) == 3 || len(b.live) > 0 {
				t.Fatalf("%d claims are spoken for, %d attempts live", d.ClaimCounts(1), len(b.live))
			}
			acceptClaim(d, time.Hour+time.Minute, 3)
			if got := formatEffects(d); got != "release n3" {
				t.Fatalf("one that comes later: %s", got)
			}
			d.Tick(2 * time.Hour)
			if len(d.gangs) != 0 {
				t.Fatal("the gang is remembered for ever")
			}
		})
	}
}

// TestGrantsOutOfPlace checks that tasks of a gang do not start one by one. A gang of a
// size that is not wanted is refused.
func TestGrantsOutOfPlace(t *testing.T) {
	b := newNaiveJobQueue(t, 6)
	b.gang = 2
	d := New(b, DefaultOptions())
	single := gangGrant(1)
	single.GangID, single.GangSize = 0, 0
	d.Granted(time.Hour, single)
	d.Granted(time.Hour, gangGrant(1))
	if got := formatEffects(d); got !=
		"refuse 1: its tasks start together; refuse 1: no gang of that size waits for it any more" {
		t.Fatal(got)
	}
}

// TestGangWaitsForVictims checks that a gang starts when the victims have left room for
// all its claims. Their notice period may have any length.
func TestGangWaitsForVictims(t *testing.T) {
	for name, test := range map[string]struct {
		happens func(d *Dispatcher, now roost.BootTime)
		want    string
	}{
		"its job is removed": {nil, "release n1; release n2; release n3"},
		"they go": {func(d *Dispatcher, now roost.BootTime) {
			d.Allocated(now, "n3", 13, "")
		}, "activate 0 on n1; activate 1 on n2; activate 2 on n3"},
		"the claim is lost": {func(d *Dispatcher, now roost.BootTime) {
			d.ClaimLost("n3", 13, "gone")
		}, "release n1; release n2"},
		"a machine is away": {func(d *Dispatcher, now roost.BootTime) {
			d.Disconnected(now, "n1")
		}, "release n2; release n3"},
		"nobody has gone so": {func(d *Dispatcher, now roost.BootTime) { d.Tick(now + time.Hour) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b, d := newGangTest(t)
			for i := range 2 {
				d.ClaimAnswered(time.Hour, fmt.Sprintf("n%d", i+2),
					ClaimReply{Grant: roost.GrantID{Epoch: 7, ID: uint64(i + 2)}, Claim: uint64(12 + i), Waiting: true})
			}
			acceptClaim(d, time.Hour, 1)
			later := time.Hour + 10*DefaultOptions().RequestTimeout
			d.Tick(later)
			d.Allocated(later, "n2", 12, "")
			if got := formatEffects(d); got != "" {
				t.Fatalf("while one waits: %s", got)
			}
			if test.happens == nil {
				b.ready = nil
				d.RequestChanged(later+time.Minute, 1)
			} else {
				test.happens(d, later+time.Minute)
			}
			if got := formatEffects(d); got != test.want {
				t.Fatalf("got %s, want %s", got, test.want)
			}
		})
	}
}
