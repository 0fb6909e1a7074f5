package startd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/claim"
	"github.com/roost-batch/roost/startd/streams"
)

func TestRun(t *testing.T) {
	p := newTestStartd(t)
	s := p.connect("host1", 1)
	claim := s.claim()
	tests := []struct{ text, want string }{
		{"exit 0", `code 0 signal 0 cause CAUSE_EXITED out "" err ""`},
		{"echo out; echo err >&2; exit 3", `code 3 signal 0 cause CAUSE_EXITED out "out\n" err "err\n"`},
		{"kill -9 $$", `code 0 signal 9 cause CAUSE_EXITED out "" err ""`},
		{"echo $ROOST_NODE $ROOST_ATTEMPT ${#ROOST_CLAIM}",
			`code 0 signal 0 cause CAUSE_EXITED out "n1 1 32\n" err ""`},
		{"cat; pwd", `code 0 signal 0 cause CAUSE_EXITED out "` + p.node.Dir + `\n" err ""`},
	}
	for _, tt := range tests {
		if got := exitText(s.run(claim, s.shell(tt.text))); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.text, got, tt.want)
		}
	}
}

func TestLaunchFailures(t *testing.T) {
	p := newTestStartd(t)
	s := p.connect("host1", 1)
	claim := s.claim()
	tests := []struct {
		name   string
		change func(*wire.Program)
		cause  wire.Cause
		reason string
	}{
		{"no program", func(p *wire.Program) { p.Executable = "/no/such" }, wire.Cause_CAUSE_LAUNCH, "/no/such"},
		{"no program in PATH", func(p *wire.Program) {
			p.Executable = "nosuchprogram"
		}, wire.Cause_CAUSE_LAUNCH, "nosuchprogram"},
		{"no directory", func(p *wire.Program) { p.Cwd = "/no/dir" }, wire.Cause_CAUSE_LAUNCH, "/no/dir"},
		{"no input", func(p *wire.Program) { p.Stdin = "nothing.txt" }, wire.Cause_CAUSE_LAUNCH, "nothing.txt"},
		{"another user", func(p *wire.Program) { p.Uid += 77 }, wire.Cause_CAUSE_LAUNCH, "the claim is of uid"},
	}
	for _, tt := range tests {
		prog := s.shell("exit 0")
		tt.change(prog)
		x := s.run(claim, prog)
		if x.GetStatus().GetCause() != tt.cause || !strings.Contains(x.GetStatus().GetReason(), tt.reason) ||
			x.GetStatus().GetOwnFiles() {
			t.Errorf("%s: got %v, want %v with %q", tt.name, x.GetStatus(), tt.cause, tt.reason)
		}
	}
	busy := filepath.Join(t.TempDir(), "busy")
	if err := os.WriteFile(busy, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(busy, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	prog := s.shell("exit 0")
	prog.Executable = busy
	if x := s.run(claim, prog).GetStatus(); x.GetCause() != wire.Cause_CAUSE_MACHINE || !x.GetOwnFiles() ||
		!strings.Contains(x.GetReason(), "text file busy") {
		t.Errorf("a program that its user writes: got %v, want to try elsewhere, and no blame", x)
	}
	f.Close()
	if got, want := exitText(s.run(claim, s.shell("exit 0"))),
		`code 0 signal 0 cause CAUSE_EXITED out "" err ""`; got != want {
		t.Errorf("afterwards: got %s, want %s", got, want)
	}
}

func TestFilesInPlace(t *testing.T) {
	p := newTestStartd(t)
	s := p.connect("host1", 1)
	prog := s.shell("")
	prog.Arguments, prog.Script = words("x", "y z"), []byte("cat; echo \"$#:$2\"; echo e >&2\n")
	prog.Cwd = t.TempDir()
	prog.Stdin, prog.Stdout, prog.JoinOutput = "in.txt", "out.txt", true
	if err := os.WriteFile(filepath.Join(prog.Cwd, "in.txt"), []byte("input\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	x := s.run(s.claim(), prog)
	got, err := os.ReadFile(filepath.Join(prog.Cwd, "out.txt"))
	if want := "input\n2:y z\ne\n"; err != nil || string(got) != want {
		t.Errorf("got %q (%v, %s), want %q", got, err, exitText(x), want)
	}
	s.claim() // the script is removed after the acknowledgement, before the claim's next work; let other work pass
	if left := p.scratchLeft(); len(left) > 0 {
		t.Errorf("left in scratch: %v", left)
	}
}

// scratchLeft lists what is in the scratch directory once nothing changes there any more.
func (p *testStartd) scratchLeft() []string {
	var names []string
	for range 100 {
		// the directory itself stays with the claim
		names, _ = filepath.Glob(filepath.Join(p.node.Startds[0].Dir, "scratch", "*", "*"))
		if len(names) == 0 {
			return nil
		}
		waitBriefly(10 * time.Millisecond)
	}
	return names
}

// waitBriefly lets another process go on.
func waitBriefly(d time.Duration) { <-time.After(d) }

func TestScratch(t *testing.T) {
	for _, uid := range []uint32{uint32(os.Geteuid()), 4321} {
		t.Run(fmt.Sprint(uid), func(t *testing.T) {
			if uid != uint32(os.Geteuid()) && os.Geteuid() != 0 {
				t.Skip("only root can run tasks of other users")
			}
			p := newTestStartd(t)
			s := p.connect("host1", 1)
			s.uid = uid
			testScratch(t, p, s)
		})
	}
}

func testScratch(t *testing.T, p *testStartd, s *fakeSchedd) {
	prog := s.shell(
		`id -u; cat in/a.txt > result.txt; dd if=/dev/zero bs=1000 count=1000 of=big 2>/dev/null; mktemp -p "$TMPDIR" >&2; test "$PWD" = "$ROOST_SCRATCH"`,
	)
	prog.Cwd, prog.Scratch = "", true
	a := s.activate(s.claim(), prog, true)
	ready := s.nextMessage("room for input").GetInput()
	if ready.GetAttempt().GetJob() != a.Job || ready.GetScratch() == "" {
		t.Fatalf("got %v", ready)
	}
	putFiles(t, s, a, "in/a.txt", "hello")
	s.send(&wire.ToStartd{Of: &wire.ToStartd_Launch{Launch: &wire.Launch{Attempt: a}}})
	x := s.awaitOnlyExit(a)
	if st := x.GetStatus(); st.GetCode() != 0 || st.GetCause() != 0 || string(x.GetStdout()) != fmt.Sprintln(s.uid) {
		t.Fatalf("got %s %v", exitText(x), st)
	}
	var names []string
	for _, o := range x.GetOutputs() {
		names = append(names, fmt.Sprintf("%s:%d", o.GetName(), o.GetSize()))
	}
	if got, want := strings.Join(names, " "), "big:1000000 result.txt:5"; got != want {
		t.Errorf("outputs: got %s, want %s", got, want)
	}
	got := fetchFile(t, s, a, "result.txt", "big", streams.FetchStdout)
	if got["result.txt"] != "hello" || len(got["big"]) != 1000000 || got[streams.FetchStdout] != fmt.Sprintln(s.uid) {
		t.Errorf("fetched %q and %d bytes", got["result.txt"], len(got["big"]))
	}
	if _, err := fetchAll(s, a, "in/a.txt"); err == nil {
		t.Errorf("a file that was not listed could be fetched")
	}
	s.acknowledge(a)
	if left := p.scratchLeft(); len(left) > 0 {
		t.Errorf("left in scratch: %v", left)
	}
}

func putFiles(t *testing.T, s *fakeSchedd, a *wire.AttemptRef, name, text string) {
	t.Helper()
	stream, err := s.client.Put(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(text))
	for _, c := range []*wire.FileChunk{
		{Schedd: s.name, Attempt: a}, {Entry: &wire.FileEntry{Name: name, Size: int64(len(text)), Mode: 0o644}},
		{Data: []byte(text)}, {Eof: true, Sha256: sum[:]},
	} {
		if err := stream.Send(c); err != nil {
			break
		}
	}
	reply, err := stream.CloseAndRecv()
	if err != nil || reply.GetFiles() != 1 || reply.GetBytes() != int64(len(text)) {
		t.Fatalf("put %s: %v, %v", name, reply, err)
	}
}

func fetchFile(t *testing.T, s *fakeSchedd, a *wire.AttemptRef, names ...string) map[string]string {
	t.Helper()
	got, err := fetchAll(s, a, names...)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// fetchAll fetches files and checks their digests.
func fetchAll(s *fakeSchedd, a *wire.AttemptRef, names ...string) (map[string]string, error) {
	stream, err := s.client.Fetch(context.Background(), &wire.FetchRequest{Schedd: s.name, Attempt: a, Names: names})
	if err != nil {
		return nil, err
	}
	got := make(map[string]string)
	var name string
	var data bytes.Buffer
	for {
		c, err := stream.Recv()
		if err == io.EOF {
			return got, nil
		}
		if err != nil {
			return nil, err
		}
		if e := c.GetEntry(); e != nil {
			name = e.GetName()
			data.Reset()
		}
		data.Write(c.GetData())
		if c.GetEof() {
			if sum := sha256.Sum256(data.Bytes()); !bytes.Equal(sum[:], c.GetSha256()) {
				return nil, fmt.Errorf("%s: wrong digest", name)
			}
			got[name] = data.String()
		}
	}
}

func TestVacate(t *testing.T) {
	p := newTestStartd(t)
	s := p.connect("host1", 1)
	claim := s.claim()
	a := s.activate(claim, s.shell("trap 'echo bye; exit 5' TERM; echo on; sleep 60 & wait"), false)
	s.awaitStarted(a)
	s.awaitOutput(a, "on\n")
	s.vacate(a, false)
	if got, want := exitText(s.awaitOnlyExit(a)),
		`code 5 signal 0 cause CAUSE_REMOVED out "on\nbye\n" err ""`; got != want {
		t.Errorf("with notice: got %s, want %s", got, want)
	}
	s.acknowledge(a)
	a = s.activate(claim, s.shell("trap '' TERM; sleep 60 & wait; sleep 60"), false)
	s.awaitStarted(a)
	s.vacate(a, true)
	if got, want := exitText(s.awaitOnlyExit(a)), `code 0 signal 9 cause CAUSE_REMOVED out "" err ""`; got != want {
		t.Errorf("at once: got %s, want %s", got, want)
	}
}

// TestSignal checks that a signal reaches every process of a task. Only the task's own
// schedd can send one.
func TestSignal(t *testing.T) {
	p := newTestStartd(t)
	s, other := p.connect("host1", 1), p.connect("host2", 1)
	claim := s.claim()
	a := s.activate(claim, s.shell("trap 'wait; echo parent; exit 5' USR1; (trap 'echo child >&2; exit 0' USR1; "+
		"echo on; sleep 60 & wait) & wait; wait"), false)
	s.awaitStarted(a)
	s.awaitOutput(a, "on\n")
	other.send(&wire.ToStartd{Of: &wire.ToStartd_Signal{Signal: &wire.Signal{Attempt: a, Signal: 9}}})
	s.send(&wire.ToStartd{Of: &wire.ToStartd_Signal{Signal: &wire.Signal{Attempt: a, Signal: 65}}})
	s.send(&wire.ToStartd{Of: &wire.ToStartd_Signal{Signal: &wire.Signal{Attempt: a, Signal: uint32(syscall.SIGUSR1)}}})
	if got, want := exitText(s.awaitOnlyExit(a)),
		`code 5 signal 0 cause CAUSE_EXITED out "on\nparent\n" err "child\n"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	s.acknowledge(a)
	program := s.shell("sleep 60 & wait; sleep 60")
	program.Cwd, program.Scratch = "", true
	a = s.activate(claim, program, true)
	if m := s.nextMessage("room for input"); m.GetInput() == nil {
		t.Fatalf("got %v", m)
	}
	// while it waits for its input
	s.send(&wire.ToStartd{Of: &wire.ToStartd_Signal{Signal: &wire.Signal{Attempt: a, Signal: 9}}})
	s.send(&wire.ToStartd{Of: &wire.ToStartd_Launch{Launch: &wire.Launch{Attempt: a}}})
	if got, want := exitText(s.awaitOnlyExit(a)), `code 0 signal 9 cause CAUSE_EXITED out "" err ""`; got != want {
		t.Errorf("killed: got %s, want %s", got, want)
	}
}

// TestMessage checks that a line follows what the task has written so far. What the task
// writes later follows the line. A line that comes before the program has begun waits.
func TestMessage(t *testing.T) {
	p := newTestStartd(t)
	s, other := p.connect("host1", 1), p.connect("host2", 1)
	own := s.claim()
	dir := t.TempDir()
	tell := func(s *fakeSchedd, a *wire.AttemptRef, line string, out, err bool) {
		s.send(&wire.ToStartd{Of: &wire.ToStartd_Message{Message: &wire.Message{Attempt: a, Line: []byte(line),
			Out: out, Err: err}}})
	}
	goes := func(p *wire.Program) *wire.Program { return p }
	for _, c := range []struct {
		name, want string
		where      func(*wire.Program) *wire.Program
	}{
		{"captured", `code 0 signal 0 cause CAUSE_EXITED out "on\nhello\nlate\noff\n" err "late\n"`, goes},
		{"joined", `code 0 signal 0 cause CAUSE_EXITED out "on\nhello\nlate\noff\n" err ""`,
			func(p *wire.Program) *wire.Program {
				p.JoinOutput = true
				return p
			}},
		{"in files of the user's", `code 0 signal 0 cause CAUSE_EXITED out "" err ""`,
			func(p *wire.Program) *wire.Program {
				p.Stdout, p.Stderr = filepath.Join(dir, "out"), filepath.Join(dir, "err")
				return p
			}},
	} {
		a := s.activate(own, c.where(s.shell("echo on; while ! [ -e "+dir+"/go ]; do sleep 0.01; done; echo off")),
			false)
		s.awaitStarted(a)
		s.awaitOutput(a, "on\n")
		tell(other, a, "wrong", true, true)
		tell(s, a, strings.Repeat("x", claim.MaxOutputMessage+1), true, true)
		tell(s, a, "hello", true, false)
		s.awaitOutput(a, "on\nhello\n")
		tell(s, a, "late", true, true)
		s.awaitOutput(a, "on\nhello\nlate\n")
		if err := os.WriteFile(dir+"/go", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := exitText(s.awaitOnlyExit(a)); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
		s.acknowledge(a)
		os.Remove(dir + "/go")
	}
	if text, _ := os.ReadFile(dir + "/out"); string(text) != "on\nhello\nlate\noff\n" {
		t.Errorf("the file has %q", text)
	}
	program := s.shell("echo on")
	program.Cwd, program.Scratch = "", true
	a := s.activate(own, program, true)
	if m := s.nextMessage("room for input"); m.GetInput() == nil {
		t.Fatalf("got %v", m)
	}
	tell(s, a, "early", false, true)
	s.send(&wire.ToStartd{Of: &wire.ToStartd_Launch{Launch: &wire.Launch{Attempt: a}}})
	if got := exitText(s.awaitOnlyExit(a)); !strings.Contains(got, `out "on\n"`) {
		t.Errorf("got %s", got)
	}
}

// awaitOutput waits until the attempt has written text.
func (s *fakeSchedd) awaitOutput(a *wire.AttemptRef, text string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	stream, err := s.client.Tail(ctx, &wire.TailRequest{Schedd: s.name, Attempt: a, Follow: true})
	got := ""
	for err == nil && got != text {
		var c *wire.LogChunk
		c, err = stream.Recv()
		got += string(c.GetData())
	}
	if got != text {
		s.t.Fatalf("tail: got %q (%v), want %q", got, err, text)
	}
}

func TestTailToTheEnd(t *testing.T) {
	p := newTestStartd(t)
	s := p.connect("host1", 1)
	prog := s.shell("echo one; read x <fifo; echo two")
	prog.Cwd, prog.Stdout = t.TempDir(), "out.txt"
	fifo := filepath.Join(prog.Cwd, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	a := s.activate(s.claim(), prog, false)
	s.awaitStarted(a)
	stream, err := s.client.Tail(context.Background(), &wire.TailRequest{Schedd: s.name, Attempt: a, Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	first, err := stream.Recv()
	if err != nil || string(first.GetData()) != "one\n" {
		t.Fatalf("got %q, %v", first.GetData(), err)
	}
	if err := os.WriteFile(fifo, []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	rest := ""
	for {
		c, err := stream.Recv()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		rest += string(c.GetData())
	}
	if rest != "two\n" {
		t.Errorf("got %q, want the rest", rest)
	}
}

func TestLease(t *testing.T) {
	t.Parallel()
	p := newTestStartd(t)
	s := p.connect("host1", 1)
	reply := s.requestClaim(func(r *wire.ClaimRequest) { r.LeaseS = 1 })
	a := s.activate(reply.GetClaim(), s.shell("sleep 60"), false)
	x := s.awaitOnlyExit(a)
	if x.GetStatus().GetCause() != wire.Cause_CAUSE_LEASE {
		t.Errorf("got %s", exitText(x))
	}
	p.ads.awaitAd(t, "has all free again", func(_ *wire.AdUpdate, ad *classad.Ad) bool {
		n, _ := ad.Int(roost.AttrCpus)
		return n == 4
	})
	s.acknowledge(a)
	if lost := s.nextMessage("the loss of the claim").GetLost(); lost.GetClaim() != reply.GetClaim() {
		t.Errorf("got %v", lost)
	}
	reply = s.requestClaim(func(r *wire.ClaimRequest) { r.LeaseS = 1 })
	s.send(&wire.ToStartd{Of: &wire.ToStartd_Renew{Renew: &wire.RenewLeases{LeaseS: 60}}})
	if r := s.nextMessage("the renewal").GetRenewed(); r.GetWord() != 1 {
		t.Errorf("got %v", r)
	}
	if got := exitText(s.run(reply.GetClaim(), s.shell("sleep 1.3; echo alive"))); !strings.Contains(got, `"alive\n"`) {
		t.Errorf("renewed: got %s", got)
	}
}

func TestRefusals(t *testing.T) {
	p := newTestStartd(t)
	s := p.connect("host1", 1)
	first := s.requestClaim(func(r *wire.ClaimRequest) { r.Epoch = 2 })
	if first.GetClaim() == 0 {
		t.Fatal(first.GetReason())
	}
	tests := []struct {
		name, want string
		change     func(*wire.ClaimRequest)
	}{
		{"another schedd's", "not for this schedd", func(r *wire.ClaimRequest) {
			r.Epoch = 2
			r.Capability = wire.ClaimToken(p.grantKey(),
				&wire.Grant{Id: r.Grant, Epoch: r.Epoch, Owner: r.Owner, Node: "n1", Resources: r.Resources}, "host2")
		}},
		{"forged", "not made for this machine", func(r *wire.ClaimRequest) {
			r.Epoch, r.Capability = 2, bytes.Repeat([]byte{1}, 32)
		}},
		{"old epoch", "epoch 1", func(*wire.ClaimRequest) {}},
		{"used", "used before", func(r *wire.ClaimRequest) { r.Epoch, r.Grant = 2, s.grant-4; s.grant = r.Grant }},
		{"too big", "3 of 4 cpus", func(r *wire.ClaimRequest) {
			r.Epoch, r.Resources = 2, &wire.Resources{MilliCpu: 4000}
		}},
		{"requirements", "Requirements are false", func(r *wire.ClaimRequest) {
			r.Epoch, r.Ad = 2, `[Requirements = TARGET.Memory > 100000]`
		}},
		{"no ad", "line 1", func(r *wire.ClaimRequest) { r.Epoch, r.Ad = 2, `[Requirements = ` }},
	}
	for _, tt := range tests {
		if got := s.requestClaim(tt.change); got.GetClaim() != 0 || !strings.Contains(got.GetReason(), tt.want) {
			t.Errorf("%s: got claim %d, %q; want %q", tt.name, got.GetClaim(), got.GetReason(), tt.want)
		}
	}
}

func TestAdShowsClaim(t *testing.T) {
	p := newTestStartd(t)
	s := p.connect("host1", 1)
	reply := s.requestClaim(nil)
	u := p.ads.awaitAd(t, "shows the claim", func(u *wire.AdUpdate, _ *classad.Ad) bool {
		return u.GetSequence() >= reply.GetAdSequence()
	})
	ad, err := classad.Parse(u.GetAd())
	if err != nil {
		t.Fatal(err)
	}
	for attr, want := range map[string]int64{
		roost.AttrCpus: 3, roost.AttrTotalCpus: 4, roost.AttrNumClaims: 1, roost.AttrMemory: 4096 - 256,
		roost.AttrUpdateSequence: int64(u.GetSequence()),
	} {
		if got, ok := ad.Int(attr); !ok || got != want {
			t.Errorf("%s: got %d, want %d", attr, got, want)
		}
	}
	s.send(&wire.ToStartd{Of: &wire.ToStartd_Release{Release: &wire.ReleaseClaim{Claim: reply.GetClaim()}}})
	p.ads.awaitAd(t, "has all free", func(_ *wire.AdUpdate, ad *classad.Ad) bool {
		n, _ := ad.Int(roost.AttrCpus)
		return n == 4
	})
	p.stop()
	p.ads.awaitAd(t, "is withdrawn", func(u *wire.AdUpdate, _ *classad.Ad) bool { return u.GetInvalidate() })
}
