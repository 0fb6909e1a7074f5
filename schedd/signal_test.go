package schedd

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

func TestSignalOf(t *testing.T) {
	for text, want := range map[string]unix.Signal{
		"": 15, "TERM": 15, "SIGTERM": 15, "15": 15, "KILL": 9, "SIGSTOP": 19, "CLD": 17, "0": 0, "NULL": 0, "SIGNULL": 0, "34": 34, "64": 64,
	} {
		if got, name := signalOf(text); got != want || name == "" {
			t.Errorf("%q: got %d %q, want %d", text, got, name, want)
		}
	}
	for _, text := range []string{"65", "-1", "SIG", "term", "SIGSIGTERM", "9x", " 9", "RTMIN+1x"} {
		if got, name := signalOf(text); name != "" {
			t.Errorf("%q: got %d %q, want none", text, got, name)
		}
	}
}

// A signal goes to the node once: not to a later session, and not at all when the node is away.
func TestSignalReachesNode(t *testing.T) {
	p := newPool(t)
	id, a := p.run("")
	r := p.acts(&wire.ActRequest{Verb: wire.ActRequest_SIGNAL, Selection: &wire.Selection{Selectors: []string{id}}, Signal: "USR1"})
	if r.GetTasks() != 1 || r.GetError() != "" {
		t.Fatalf("got %v", r)
	}
	if m := next(t, p.startd.signals, "a signal"); m.GetSignal() != uint32(unix.SIGUSR1) || m.GetAttempt().GetJob() != a.GetAttempt().GetJob() {
		t.Fatalf("got %v", m)
	}
	if r := p.acts(&wire.ActRequest{Verb: wire.ActRequest_SIGNAL, Selection: &wire.Selection{Selectors: []string{id}}, Signal: "USR9"}); roost.Kind(r.GetKind()) != roost.Invalid || r.GetRefusal() != wire.ActReply_UNKNOWN_SIGNAL {
		t.Fatalf("got %v", r)
	}
	p.startd.exited(a.GetAttempt(), &wire.ExitStatus{Signal: 10}, "")
	p.await(id, "completed 1 failed 1")
	if len(p.startd.signals) != 0 {
		t.Fatal("it was sent more than once")
	}
}
