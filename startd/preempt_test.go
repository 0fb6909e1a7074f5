package startd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/roost-batch/roost/internal/wire"
)

// TestPreempt checks that a claim can preempt another. The victim's task gets its notice
// and learns for whom it leaves. The new claim gets its resources when the victim has
// gone, and its task starts at once.
func TestPreempt(t *testing.T) {
	t.Parallel()
	p := newTestStartd(t)
	s := p.connect("host1", 1)
	all := func(r *wire.ClaimRequest) {
		r.Resources, r.Band = &wire.Resources{MilliCpu: 4000, Memory: 256 << 20}, "free"
	}
	first := s.requestClaim(all)
	if first.GetClaim() == 0 {
		t.Fatal(first.GetReason())
	}
	a := s.activate(first.GetClaim(), s.shell("trap 'read x <fifo; echo bye; exit 5' TERM; echo on; sleep 60 & wait"),
		false)
	s.awaitStarted(a)
	s.awaitOutput(a, "on\n")
	forged := s.requestClaim(func(r *wire.ClaimRequest) {
		all(r)
		r.Band, r.Victims = "production", []uint64{first.GetClaim()}
		r.Capability = wire.ClaimToken(s.p.grantKey(), &wire.Grant{Id: r.Grant, Epoch: r.Epoch, Owner: r.Owner,
			Node: "n1", Resources: r.Resources, Band: r.Band}, s.name)
	})
	if forged.GetClaim() != 0 {
		t.Fatal("a schedd has others evicted on its own account")
	}
	if err := syscall.Mkfifo(filepath.Join(p.node.Dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	second := s.requestClaim(func(r *wire.ClaimRequest) {
		all(r)
		r.Band, r.Victims, r.Why, r.Job = "production", []uint64{first.GetClaim()}, "production displaces free",
			"9.host1"
	})
	if second.GetClaim() == 0 || !second.GetWaiting() {
		t.Fatalf("got %v", second)
	}
	if d := second.GetDisplaced(); len(d) != 1 || d[0].GetJob() != fmt.Sprintf("%d.host1", a.GetJob()) ||
		d[0].GetOwner() != "ann" || d[0].GetBand() != "free" {
		t.Errorf("the claim displaces %v", d)
	}
	b := s.activate(second.GetClaim(), s.shell("echo here"), false)
	if err := os.WriteFile(filepath.Join(p.node.Dir, "fifo"), []byte("go\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var x *wire.Exited
	ready, started := false, false
	for x == nil || !started {
		switch m := s.nextMessage("the end of one and the start of the other").GetOf().(type) {
		case *wire.FromStartd_Exited:
			if x = m.Exited; x.GetAttempt().GetJob() != a.Job {
				t.Fatalf("got %v before the first had gone", x)
			}
		case *wire.FromStartd_Ready:
			ready = m.Ready.GetClaim() == second.GetClaim()
		case *wire.FromStartd_Started:
			started = m.Started.GetAttempt().GetJob() == b.Job && ready
		}
	}
	if got, want := exitText(x), `code 5 signal 0 cause CAUSE_PREEMPTED out "on\nbye\n" err ""`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := x.GetStatus().GetReason(); !strings.Contains(got,
		"preempted by job 9.host1 of ann (production): production displaces free") {
		t.Errorf("the reason is %q", got)
	}
	if by := x.GetStatus().GetPreemptor(); by.GetJob() != "9.host1" || by.GetOwner() != "ann" ||
		by.GetBand() != "production" {
		t.Errorf("the preemptor is %v", by)
	}
	if got := s.awaitOnlyExit(b); got.GetStatus().GetCode() != 0 {
		t.Errorf("the other ended with %v", got)
	}
}
