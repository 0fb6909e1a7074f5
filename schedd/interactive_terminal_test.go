package schedd

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// fakeShell is a shell that was asked for on the fake node.
type fakeShell struct {
	first  *wire.ShellInput
	stream grpc.BidiStreamingServer[wire.ShellInput, wire.ShellOutput]
	end    chan error // what it ends with
}

func (f *fakeStartd) Shell(stream grpc.BidiStreamingServer[wire.ShellInput, wire.ShellOutput]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	s := &fakeShell{first, stream, make(chan error, 1)}
	f.shells <- s
	select {
	case err := <-s.end:
		return err
	case <-stream.Context().Done():
		return stream.Context().Err()
	}
}

// attachTerminal asks for the terminal of a job.
func (p *testPool) attachTerminal(ctx context.Context,
	id string) grpc.BidiStreamingClient[wire.ShellInput, wire.ShellOutput] {
	p.Helper()
	stream, err := p.client.Shell(ctx)
	if err == nil {
		err = stream.Send(&wire.ShellInput{Task: id, Session: true, Terminal: true, Term: "vt100", Rows: 24,
			Columns: 80})
	}
	if err != nil {
		p.Fatal(err)
	}
	return stream
}

// TestTerminal follows an interactive job from the wait for its start to its end. The
// schedd asks the node until the processes are there. The user is told of the end when it
// is recorded, and not before.
func TestTerminal(t *testing.T) {
	p := newPool(t)
	id := p.submit("k", 1,
		`Cmd = "/bin/bash"; Shell = "/bin/bash"; Interactive = true; Rerunnable = true; MaxRetries = 3; HoldOnSubmit = true`).GetIds()[0]
	user := p.attachTerminal(p.ctx(), id)
	p.act(wire.ActRequest_RELEASE, id)
	a := receiveNext(t, p.startd.activated, "an attempt")
	if pr := a.GetProgram(); !pr.GetInteractive() || !pr.GetOnce() || pr.GetCheckpoint() != nil {
		t.Errorf("the program is %v", pr)
	}
	p.startd.started(a.GetAttempt())
	receiveNext(t, p.startd.shells, "a session").end <- fmt.Errorf("task: %w: not there yet", roost.Conflict)
	s := receiveNext(t, p.startd.shells, "another try")
	if f := s.first; !f.GetSession() || !f.GetLogin() || len(f.GetCommand()) > 0 || !f.GetTerminal() ||
		f.GetTerm() != "vt100" || f.GetRows() != 24 {
		t.Errorf("the node is asked for %v", f)
	}
	s.stream.Send(&wire.ShellOutput{Ready: true})
	if out, err := user.Recv(); err != nil || !out.GetReady() {
		t.Fatalf("got %v, %v", out, err)
	}
	user.Send(&wire.ShellInput{Data: []byte("keys"), Rows: 30, Columns: 90, Task: "99", Schedd: "forged",
		Session: true})
	if in, err := s.stream.Recv(); err != nil || string(in.GetData()) != "keys" || in.GetRows() != 30 ||
		in.GetTask() != "" || in.GetSchedd() != "" || in.GetSession() {
		t.Errorf("the shell gets %v, %v", in, err)
	}
	s.stream.Send(&wire.ShellOutput{Data: []byte("words")})
	if out, err := user.Recv(); err != nil || string(out.GetData()) != "words" {
		t.Errorf("the user gets %v, %v", out, err)
	}
	s.stream.Send(&wire.ShellOutput{Ended: true, Code: 7})
	s.end <- nil
	p.startd.exited(a.GetAttempt(), &wire.ExitStatus{Code: 7, Cause: wire.Cause_CAUSE_EXITED}, "")
	if out, err := user.Recv(); err != nil || !out.GetEnded() || out.GetCode() != 7 {
		t.Errorf("at the end the user gets %v, %v", out, err)
	}
	if got := taskCounts(p.query(&wire.QueryRequest{Selection: &wire.Selection{Selectors: []string{id}}})[0]); got !=
		"completed 1 failed 1" {
		t.Errorf("then the job is %s", got)
	}
}

// TestTerminalRemoved checks that a waiting or running job does not outlive its user's
// terminal. A job that ends by itself retains its end state.
func TestTerminalRemoved(t *testing.T) {
	p := newPool(t)
	const ad = `Interactive = true; Arguments = { "-l" }; Key = `
	ctx, leave := context.WithCancel(t.Context())
	waiting := p.submit("waiting", 1, ad+`1; HoldOnSubmit = true`).GetIds()[0]
	if _, err := p.attachTerminal(ctx, waiting).Header(); err != nil { // it is waited for
		t.Fatal(err)
	}
	leave()
	p.await(waiting, "removed 1")

	ctx, leave = context.WithCancel(t.Context())
	running := p.submit("running", 1, ad+"2").GetIds()[0]
	user := p.attachTerminal(ctx, running)
	a := receiveNext(t, p.startd.activated, "an attempt")
	p.startd.started(a.GetAttempt())
	s := receiveNext(t, p.startd.shells, "a session")
	if c := s.first.GetCommand(); s.first.GetLogin() || len(c) != 2 || c[0] != "/bin/true" || c[1] != "-l" {
		t.Errorf("what runs is %q", c)
	}
	s.stream.Send(&wire.ShellOutput{Ready: true})
	if _, err := user.Recv(); err != nil {
		t.Fatal(err)
	}
	leave()
	receiveNext(t, p.startd.vacated, "its end")
	p.startd.exited(a.GetAttempt(), &wire.ExitStatus{Signal: 1, Cause: wire.Cause_CAUSE_REMOVED}, "")
	p.await(running, "removed 1")

	limited := p.submit("limited", 1, ad+"3").GetIds()[0]
	user = p.attachTerminal(t.Context(), limited)
	a = receiveNext(t, p.startd.activated, "an attempt")
	p.startd.started(a.GetAttempt())
	s = receiveNext(t, p.startd.shells, "a session")
	s.stream.Send(&wire.ShellOutput{Ready: true})
	s.end <- fmt.Errorf("task: %w", roost.Finished)
	p.startd.exited(a.GetAttempt(), &wire.ExitStatus{Signal: 9, Cause: wire.Cause_CAUSE_WALLTIME}, "")
	if _, err := receive(user, nil); !errors.Is(err, roost.Finished) {
		t.Errorf("its user hears %v", err)
	}
	p.await(limited, "completed 1 failed 1")
	if len(p.startd.vacated) > 0 {
		t.Error("it was told to end")
	}
}

// TestTerminalRefused holds who gets none.
func TestTerminalRefused(t *testing.T) {
	p := newPool(t)
	plain := p.submit("plain", 1, "HoldOnSubmit = true").GetIds()[0]
	for id, want := range map[string]roost.ErrorKind{plain: roost.Invalid, "99": roost.NotFound, "": roost.Invalid} {
		if _, err := receive(p.attachTerminal(p.ctx(), id), nil); !errors.Is(err, want) {
			t.Errorf("%q: got %v, want %v", id, err, want)
		}
	}
	if got := taskCounts(p.query(&wire.QueryRequest{Selection: &wire.Selection{Selectors: []string{plain}}})[0]); got !=
		"held 1" {
		t.Errorf("the job that has none is %s", got)
	}
	if _, err := p.client.Submit(p.ctx(), &wire.SubmitRequest{Key: "two",
		Jobs: []*wire.JobSpec{{Ad: `[Cmd = "/bin/true"; Iwd = "/"; Interactive = true]`, Count: 2}}}); !errors.Is(
		rpc.FromStatus(err), roost.Invalid,
	) {
		t.Errorf("two tasks: %v", err)
	}
	held := p.submit("held", 1, "Interactive = true").GetIds()[0]
	user := p.attachTerminal(p.ctx(), held)
	a := receiveNext(t, p.startd.activated, "an attempt")
	p.startd.exited(a.GetAttempt(), &wire.ExitStatus{Cause: wire.Cause_CAUSE_LAUNCH, Reason: "cannot enter"}, "")
	if _, err := receive(user, nil); !errors.Is(err, roost.Invalid) {
		t.Errorf("one that cannot be started: %v", err)
	}
	p.await(held, "removed 1")
}
