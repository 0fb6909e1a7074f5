package schedd

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// TestRepeatedHold checks that PBS accepts a repeated hold or release without an error.
// roost hold and roost release return one.
func TestRepeatedHold(t *testing.T) {
	p := newPool(t)
	id := p.submit("k", 1, "HoldOnSubmit = true").GetIds()[0]
	sel := &wire.Selection{Selectors: []string{id}}
	for _, c := range []struct {
		verb  wire.ActRequest_Verb
		again bool
		want  roost.ErrorKind
	}{
		{wire.ActRequest_HOLD, false, roost.Conflict}, {wire.ActRequest_HOLD, true, 0},
		{wire.ActRequest_SUSPEND, true, roost.Conflict}, {wire.ActRequest_REMOVE, false, 0},
		{wire.ActRequest_HOLD, true, roost.Finished}, {wire.ActRequest_RELEASE, true, roost.Finished},
	} {
		if r := p.actWith(&wire.ActRequest{Verb: c.verb, Selection: sel,
			Again: c.again}); roost.ErrorKind(r.GetKind()) != c.want {
			t.Errorf("%v (again: %v): got %v, want kind %d", c.verb, c.again, r, c.want)
		}
	}
}

// TestSignalSentToNode checks that a signal goes to the node once. It does not go to a
// later session, and it does not go out while the node is away.
func TestSignalSentToNode(t *testing.T) {
	p := newPool(t)
	id, a := p.run("")
	r := p.actWith(&wire.ActRequest{Verb: wire.ActRequest_SIGNAL, Selection: &wire.Selection{Selectors: []string{id}},
		Signal: "USR1"})
	if r.GetTasks() != 1 || r.GetError() != "" {
		t.Fatalf("got %v", r)
	}
	if m := receiveNext(t, p.startd.signals, "a signal"); m.GetSignal() != uint32(unix.SIGUSR1) ||
		m.GetAttempt().GetJob() != a.GetAttempt().GetJob() {
		t.Fatalf("got %v", m)
	}
	if r := p.actWith(&wire.ActRequest{Verb: wire.ActRequest_SIGNAL,
		Selection: &wire.Selection{Selectors: []string{id}}, Signal: "USR9"}); roost.ErrorKind(r.GetKind()) !=
		roost.Invalid || r.GetRefusal() != wire.ActReply_UNKNOWN_SIGNAL {
		t.Fatalf("got %v", r)
	}
	p.startd.exited(a.GetAttempt(), &wire.ExitStatus{Signal: 10}, "")
	p.await(id, "completed 1 failed 1")
	if len(p.startd.signals) != 0 {
		t.Fatal("it was sent more than once")
	}
}

// TestMessageSentToNode checks that a message goes to the node of a running task. For any
// other task it is refused.
func TestMessageSentToNode(t *testing.T) {
	p := newPool(t)
	id, a := p.run("")
	notify := func(id, line string) *wire.ActReply_Result {
		return p.actWith(&wire.ActRequest{Verb: wire.ActRequest_MESSAGE,
			Selection: &wire.Selection{Selectors: []string{id}}, Message: []byte(line), Out: true})
	}
	if r := notify(id, "hello"); r.GetTasks() != 1 || r.GetError() != "" {
		t.Fatalf("got %v", r)
	}
	if m := receiveNext(t, p.startd.messages, "a message"); string(m.GetLine()) != "hello" || !m.GetOut() ||
		m.GetErr() || m.GetAttempt().GetJob() != a.GetAttempt().GetJob() {
		t.Fatalf("got %v", m)
	}
	if r := notify(id, strings.Repeat("x", 4<<10+1)); roost.ErrorKind(r.GetKind()) != roost.Invalid {
		t.Fatalf("a long one: %v", r)
	}
	p.startd.exited(a.GetAttempt(), &wire.ExitStatus{}, "")
	p.await(id, "completed 1")
	if r := notify(id, "hello"); roost.ErrorKind(r.GetKind()) != roost.Finished {
		t.Fatalf("of a job that has ended: %v", r)
	}
	held := p.submit("held", 1, "HoldOnSubmit = true").GetIds()[0]
	if r := notify(held, "hello"); roost.ErrorKind(r.GetKind()) != roost.Conflict {
		t.Fatalf("of a job that waits: %v", r)
	}
}
