package startd

import (
	"testing"

	"github.com/roost-batch/roost/internal/wire"
)

// TestOutputIsNobodyElses checks that an attempt's output shows nothing of earlier
// attempts on its claim. The attempts write to the same files one after the other. This
// holds also for an attempt that never wrote anything.
func TestOutputIsNobodyElses(t *testing.T) {
	p := newTestStartd(t)
	s := p.connect("host1", 1)
	claim := s.claim()
	if got, want := exitText(s.run(claim, s.shell("echo first; echo and >&2"))),
		`code 0 signal 0 cause CAUSE_EXITED out "first\n" err "and\n"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	never := s.shell("exit 0")
	never.Executable = "/no/such"
	x := s.run(claim, never)
	if x.GetStatus().GetCause() != wire.Cause_CAUSE_LAUNCH || len(x.GetStdout()) > 0 || len(x.GetStderr()) > 0 {
		t.Errorf("what did not run has written %q and %q (%v)", x.GetStdout(), x.GetStderr(), x.GetStatus())
	}
	prog := s.shell("exit 0")
	prog.Scratch = true // it holds for its input, and is not begun
	a := s.activate(claim, prog, true)
	if s.nextMessage("room for input").GetInput() == nil {
		t.Fatal("no room for input")
	}
	s.vacate(a, false)
	if x := s.awaitOnlyExit(a); len(x.GetStdout()) > 0 || len(x.GetStderr()) > 0 {
		t.Errorf("what was not begun has written %q and %q", x.GetStdout(), x.GetStderr())
	}
}
