package startd

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// fakeSchedd is a scripted submit node on one session.
type fakeSchedd struct {
	t        testing.TB
	p        *testStartd
	name     string
	conn     *grpc.ClientConn
	client   wire.StartdClient
	stream   wire.Startd_SessionClient
	messages chan *wire.FromStartd // closed when the session ends
	welcome  *wire.SessionWelcome
	grant    uint64
	task     uint64
	uid      uint32
}

// connect opens a session and waits for its welcome.
func (p *testStartd) connect(name string, incarnation uint64) *fakeSchedd {
	p.t.Helper()
	conn, err := rpc.Dial(p.node.Startds[0].Listen[0], nil, peer.Startd)
	if err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	s := &fakeSchedd{
		t: p.t, p: p, name: name, conn: conn, client: wire.NewStartdClient(conn),
		messages: make(chan *wire.FromStartd, 4096),
		grant:    incarnation * 1000, task: incarnation * 1000, uid: uint32(os.Geteuid()),
	}
	p.t.Cleanup(func() { cancel(); conn.Close() })
	if s.stream, err = s.client.Session(ctx, grpc.WaitForReady(true)); err != nil {
		p.t.Fatal(err)
	}
	s.send(&wire.ToStartd{Of: &wire.ToStartd_Hello{Hello: &wire.SessionHello{Schedd: name, Incarnation: incarnation,
		Started: 1}}})
	go func() {
		defer close(s.messages)
		for {
			m, err := s.stream.Recv()
			if err != nil {
				return
			}
			s.messages <- m
		}
	}()
	s.welcome = s.nextMessage("a welcome").GetWelcome()
	return s
}

func (s *fakeSchedd) send(m *wire.ToStartd) {
	s.t.Helper()
	if err := s.stream.Send(m); err != nil {
		s.t.Errorf("send: %v", err)
	}
}

// testTimeout is how long a message may take on a busy machine. Even tasks that yield to
// all others may be what makes it busy.
const testTimeout = time.Minute

// nextMessage is the next message.
func (s *fakeSchedd) nextMessage(what string) *wire.FromStartd {
	s.t.Helper()
	select {
	case m, ok := <-s.messages:
		if !ok {
			s.t.Fatalf("the session ended, and %s was to come", what)
		}
		if m.GetUsage() != nil { // comes at any time
			return s.nextMessage(what)
		}
		return m
	case <-time.After(testTimeout):
		s.t.Fatalf("%s did not come", what)
	}
	return nil
}

// requestClaim sends a wish for a claim and returns the answer.
func (s *fakeSchedd) requestClaim(change func(*wire.ClaimRequest)) *wire.ClaimReply {
	s.t.Helper()
	s.grant++
	r := &wire.ClaimRequest{
		Grant: s.grant, Epoch: 1, Owner: "ann", Resources: &wire.Resources{MilliCpu: 1000, Memory: 256 << 20},
		LeaseS: 60,
		Uid:    s.uid, Gid: s.uid, Ad: `[Requirements = TARGET.Memory >= 256 && HasGlue]`,
	}
	if change != nil {
		change(r)
	}
	if r.Capability == nil {
		r.Capability = wire.ClaimToken(s.p.grantKey(),
			&wire.Grant{Id: r.Grant, Epoch: r.Epoch, Owner: r.Owner, Node: "n1", Resources: r.Resources,
				Group: r.Group, Band: r.Band, Victims: r.Victims, Why: r.Why}, s.name)
	}
	s.send(&wire.ToStartd{Of: &wire.ToStartd_Claim{Claim: r}})
	reply := s.nextMessage("the answer to a claim").GetClaim()
	if reply.GetGrant() != r.Grant {
		s.t.Fatalf("got the answer to grant %d, want %d", reply.GetGrant(), r.Grant)
	}
	return reply
}

// claim gets a claim.
func (s *fakeSchedd) claim() uint64 {
	s.t.Helper()
	reply := s.requestClaim(nil)
	if reply.GetClaim() == 0 {
		s.t.Fatalf("no claim: %s", reply.GetReason())
	}
	return reply.GetClaim()
}

// shell is a program that runs text in a directory of its own.
func (s *fakeSchedd) shell(text string) *wire.Program {
	return &wire.Program{
		Executable: "/bin/sh", Arguments: words("-c", text),
		Environment: words("PATH=/usr/bin:/bin", "ROOST_NODE=forged"),
		Cwd:         s.p.node.Dir, Uid: s.uid, Gid: s.uid, NoticeNs: int64(5 * time.Second), Umask: 0o022,
	}
}

// words are those of a program.
func words(list ...string) (all [][]byte) {
	for _, w := range list {
		all = append(all, []byte(w))
	}
	return all
}

// activate starts a program as a new task.
func (s *fakeSchedd) activate(claim uint64, p *wire.Program, hold bool) *wire.AttemptRef {
	s.t.Helper()
	s.task++
	a := &wire.AttemptRef{Job: s.task, Attempt: 1}
	s.send(&wire.ToStartd{Of: &wire.ToStartd_Activate{Activate: &wire.Activate{Claim: claim, Attempt: a, Program: p,
		HoldForInput: hold}}})
	return a
}

// awaitStarted and exited wait for that news of an attempt.
func (s *fakeSchedd) awaitStarted(a *wire.AttemptRef) *wire.Started {
	s.t.Helper()
	m := s.nextMessage("news of a start")
	if got := m.GetStarted(); got.GetAttempt().GetJob() != a.Job {
		s.t.Fatalf("got %v, want the start of %v", m, a)
	}
	return m.GetStarted()
}

func (s *fakeSchedd) awaitOnlyExit(a *wire.AttemptRef) *wire.Exited {
	s.t.Helper()
	for {
		m := s.nextMessage("news of an exit")
		if m.GetStarted() != nil {
			continue
		}
		if got := m.GetExited(); got.GetAttempt().GetJob() != a.Job {
			s.t.Fatalf("got %v, want the exit of %v", m, a)
		}
		return m.GetExited()
	}
}

func (s *fakeSchedd) acknowledge(a *wire.AttemptRef) {
	s.send(&wire.ToStartd{Of: &wire.ToStartd_Acknowledge{
		Acknowledge: &wire.Acknowledge{Attempts: []*wire.AttemptRef{a}},
	}})
}

// run runs a program to its end.
func (s *fakeSchedd) run(claim uint64, p *wire.Program) *wire.Exited {
	s.t.Helper()
	a := s.activate(claim, p, false)
	x := s.awaitOnlyExit(a)
	s.acknowledge(a)
	return x
}

func (s *fakeSchedd) vacate(a *wire.AttemptRef, fast bool) {
	s.send(&wire.ToStartd{Of: &wire.ToStartd_Vacate{Vacate: &wire.Vacate{
		Attempt: a, Cause: wire.Cause_CAUSE_REMOVED, Fast: fast, Reason: "removed by ann",
	}}})
}

// exitText is an exit in one line.
func exitText(x *wire.Exited) string {
	st := x.GetStatus()
	return fmt.Sprintf("code %d signal %d cause %v out %q err %q", st.GetCode(), st.GetSignal(), st.GetCause(),
		x.GetStdout(), x.GetStderr())
}
