package startd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// startInteractive starts an interactive attempt.
func (s *fakeSchedd) startInteractive() *wire.AttemptRef {
	s.t.Helper()
	p := s.shell("echo this is not run")
	p.Interactive, p.Environment = true, append(p.Environment, words("SHELL=/bin/sh", "PS1=$ ")...)
	a := s.activate(s.claim(), p, false)
	s.awaitStarted(a)
	return a
}

// attachTerminal asks for the terminal of an attempt, and returns when it is there.
func (s *fakeSchedd) attachTerminal(ctx context.Context, a *wire.AttemptRef,
	command ...string) (grpc.BidiStreamingClient[wire.ShellInput, wire.ShellOutput], error) {
	for {
		stream, err := s.client.Shell(ctx)
		if err == nil {
			err = stream.Send(&wire.ShellInput{Schedd: s.name, Attempt: a, Session: true, Terminal: true, Term: "vt100",
				Rows: 24, Columns: 80, Login: len(command) == 0, Command: command})
		}
		if err != nil {
			s.t.Fatal(err)
		}
		out, err := stream.Recv()
		if err = rpc.FromStatus(err); errors.Is(err, roost.Conflict) {
			continue // its program has not begun
		}
		if err == nil && !out.GetReady() {
			s.t.Fatalf("the first message is %v", out)
		}
		return stream, err
	}
}

// typeAndRead types a text and returns what comes until the end.
func typeAndRead(t *testing.T, stream grpc.BidiStreamingClient[wire.ShellInput, wire.ShellOutput],
	text string) (string, *wire.ShellOutput) {
	t.Helper()
	if err := stream.Send(&wire.ShellInput{Data: []byte(text)}); err != nil {
		t.Fatal(err)
	}
	for seen := (strings.Builder{}); ; {
		out, err := stream.Recv()
		if err != nil {
			t.Fatalf("%v after %q", rpc.FromStatus(err), seen.String())
		}
		seen.Write(out.GetData())
		if out.GetEnded() {
			return seen.String(), out
		}
	}
}

// TestSession checks that an interactive attempt consists of its terminal. It runs
// nothing of its own, the shell has its environment, and it ends as the shell does.
func TestSession(t *testing.T) {
	t.Parallel()
	for _, uid := range []uint32{uint32(os.Geteuid()), 4321} {
		t.Run(fmt.Sprint(uid), func(t *testing.T) {
			if uid != uint32(os.Geteuid()) && os.Geteuid() != 0 {
				t.Skip("only root can run tasks of other users")
			}
			s := newTestStartd(t).connect("host1", 1)
			s.uid = uid
			testSession(t, s)
		})
	}
}

func testSession(t *testing.T, s *fakeSchedd) {
	for _, tt := range []struct {
		typed, seen string
		command     []string
		want        string
	}{
		{"echo $0 $((6*7)) $ROOST_ATTEMPT $(id -u); tty; stty size; exit 7\n",
			fmt.Sprintf("-sh 42 1 %d\r\n/dev/pts/", s.uid), nil, `code 7 signal 0 cause CAUSE_EXITED out "" err ""`},
		{"kill -9 $$\n", "", nil, `code 0 signal 9 cause CAUSE_EXITED out "" err ""`},
		{"words\n", "words", []string{"head", "-n", "1"}, `code 0 signal 0 cause CAUSE_EXITED out "" err ""`},
		{"", "no such command", []string{"nothing-like-it"}, `code 127 signal 0 cause CAUSE_EXITED out "" err ""`},
	} {
		a := s.startInteractive()
		stream, err := s.attachTerminal(t.Context(), a, tt.command...)
		if err != nil {
			t.Fatal(err)
		}
		seen, end := typeAndRead(t, stream, tt.typed)
		if !strings.Contains(seen, tt.seen) {
			t.Errorf("%q: got %q, want %q in it", tt.typed, seen, tt.seen)
		}
		x := s.awaitOnlyExit(a)
		if got := exitText(x); got != tt.want || end.GetCode() != x.GetStatus().GetCode() ||
			end.GetSignal() != x.GetStatus().GetSignal() {
			t.Errorf("%q: the task's %s, want %s; the shell's %v", tt.typed, got, tt.want, end)
		}
		s.acknowledge(a)
	}
}

// TestOneSession checks that an attempt has at most one terminal, and only if it is
// interactive. The attempt does not outlive its terminal when the user is gone.
func TestOneSession(t *testing.T) {
	p := newTestStartd(t)
	s := p.connect("host1", 1)
	batch := s.activate(s.claim(), s.shell("exec sleep 1000"), false)
	s.awaitStarted(batch)
	if _, err := s.attachTerminal(t.Context(), batch); !errors.Is(err, roost.Invalid) {
		t.Errorf("the terminal of a batch job: %v", err)
	}
	s.vacate(batch, true)
	s.awaitOnlyExit(batch)
	a := s.startInteractive()
	ctx, leave := context.WithCancel(t.Context())
	if _, err := s.attachTerminal(ctx, a); err != nil {
		t.Fatal(err)
	}
	if _, err := s.attachTerminal(t.Context(), a); !errors.Is(err, roost.Finished) {
		t.Errorf("a second terminal: %v", err)
	}
	leave()
	if got, want := exitText(s.awaitOnlyExit(a)), `code 0 signal 1 cause CAUSE_EXITED out "" err ""`; got != want {
		t.Errorf("hung up on: %s, want %s", got, want)
	}
}

// TestSessionAfterRestart checks what becomes of a terminal when the startd is killed. If
// it was killed before a user connected, the next startd offers the terminal. If it was
// killed afterwards, the attempt ends.
func TestSessionAfterRestart(t *testing.T) {
	p := newTestStartd(t)
	a := p.connect("host1", 1).startInteractive()
	p.kill()
	p.start()
	s := p.connect("host1", 2)
	stream, err := s.attachTerminal(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	if seen, _ := typeAndRead(t, stream, "echo $ROOST_NODE; exit 3\n"); !strings.Contains(seen, "n1\r\n") {
		t.Errorf("got %q", seen)
	}
	if got, want := exitText(s.awaitOnlyExit(a)), `code 3 signal 0 cause CAUSE_EXITED out "" err ""`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
