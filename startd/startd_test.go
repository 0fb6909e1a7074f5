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
	"github.com/roost-batch/roost/startd/starter"
	"github.com/roost-batch/roost/startd/starter/proto"
)

func TestRun(t *testing.T) {
	p := newPlace(t)
	s := p.connect("host1", 1)
	claim := s.claim()
	tests := []struct{ text, want string }{
		{"exit 0", `code 0 signal 0 cause CAUSE_EXITED out "" err ""`},
		{"echo out; echo err >&2; exit 3", `code 3 signal 0 cause CAUSE_EXITED out "out\n" err "err\n"`},
		{"kill -9 $$", `code 0 signal 9 cause CAUSE_EXITED out "" err ""`},
		{"echo $ROOST_NODE $ROOST_ATTEMPT ${#ROOST_CLAIM}", `code 0 signal 0 cause CAUSE_EXITED out "n1 1 32\n" err ""`},
		{"cat; pwd", `code 0 signal 0 cause CAUSE_EXITED out "` + p.node.Dir + `\n" err ""`},
	}
	for _, tt := range tests {
		if got := describe(s.run(claim, s.shell(tt.text))); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.text, got, tt.want)
		}
	}
}

func TestLaunchFailures(t *testing.T) {
	p := newPlace(t)
	s := p.connect("host1", 1)
	claim := s.claim()
	tests := []struct {
		name   string
		change func(*wire.Program)
		cause  wire.Cause
		reason string
	}{
		{"no program", func(p *wire.Program) { p.Executable = "/no/such" }, wire.Cause_CAUSE_LAUNCH, "/no/such"},
		{"no program in PATH", func(p *wire.Program) { p.Executable = "nosuchprogram" }, wire.Cause_CAUSE_LAUNCH, "nosuchprogram"},
		{"no directory", func(p *wire.Program) { p.Cwd = "/no/dir" }, wire.Cause_CAUSE_LAUNCH, "/no/dir"},
		{"no input", func(p *wire.Program) { p.Stdin = "nothing.txt" }, wire.Cause_CAUSE_LAUNCH, "nothing.txt"},
		{"another user", func(p *wire.Program) { p.Uid += 77 }, wire.Cause_CAUSE_MACHINE, "the claim is of uid"},
	}
	for _, tt := range tests {
		prog := s.shell("exit 0")
		tt.change(prog)
		x := s.run(claim, prog)
		if x.GetStatus().GetCause() != tt.cause || !strings.Contains(x.GetStatus().GetReason(), tt.reason) {
			t.Errorf("%s: got %v, want %v with %q", tt.name, x.GetStatus(), tt.cause, tt.reason)
		}
	}
	if got, want := describe(s.run(claim, s.shell("exit 0"))), `code 0 signal 0 cause CAUSE_EXITED out "" err ""`; got != want {
		t.Errorf("afterwards: got %s, want %s", got, want)
	}
}

func TestFilesInPlace(t *testing.T) {
	p := newPlace(t)
	s := p.connect("host1", 1)
	prog := s.shell("")
	prog.Arguments, prog.Script = []string{"x", "y z"}, "cat; echo \"$#:$2\"; echo e >&2\n"
	prog.Cwd = t.TempDir()
	prog.Stdin, prog.Stdout, prog.JoinOutput = "in.txt", "out.txt", true
	if err := os.WriteFile(filepath.Join(prog.Cwd, "in.txt"), []byte("input\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	x := s.run(s.claim(), prog)
	got, err := os.ReadFile(filepath.Join(prog.Cwd, "out.txt"))
	if want := "input\n2:y z\ne\n"; err != nil || string(got) != want {
		t.Errorf("got %q (%v, %s), want %q", got, err, describe(x), want)
	}
	s.claim() // the script is removed after the acknowledgement, before the claim's next work; let other work pass
	if left := p.scratchLeft(); len(left) > 0 {
		t.Errorf("left in scratch: %v", left)
	}
}

// scratchLeft lists what is in the scratch directory once nothing changes there any more.
func (p *place) scratchLeft() []string {
	var names []string
	for range 100 {
		names, _ = filepath.Glob(filepath.Join(p.node.Startds[0].Dir, "scratch", "*"))
		if len(names) == 0 {
			return nil
		}
		wait(10 * time.Millisecond)
	}
	return names
}

// wait lets another process go on.
func wait(d time.Duration) { <-time.After(d) }

func TestScratch(t *testing.T) {
	for _, uid := range []uint32{uint32(os.Geteuid()), 4321} {
		t.Run(fmt.Sprint(uid), func(t *testing.T) {
			if uid != uint32(os.Geteuid()) && os.Geteuid() != 0 {
				t.Skip("only root can run tasks of other users")
			}
			p := newPlace(t)
			s := p.connect("host1", 1)
			s.uid = uid
			testScratch(t, p, s)
		})
	}
}

func testScratch(t *testing.T, p *place, s *schedd) {
	prog := s.shell(`id -u; cat in/a.txt > result.txt; dd if=/dev/zero bs=1000 count=1000 of=big 2>/dev/null; mktemp -p "$TMPDIR" >&2; test "$PWD" = "$ROOST_SCRATCH"`)
	prog.Cwd, prog.Scratch = "", true
	a := s.activate(s.claim(), prog, true)
	ready := s.next("room for input").GetInput()
	if ready.GetAttempt().GetJob() != a.Job || ready.GetScratch() == "" {
		t.Fatalf("got %v", ready)
	}
	put(t, s, a, "in/a.txt", "hello")
	s.send(&wire.ToStartd{Of: &wire.ToStartd_Launch{Launch: &wire.Launch{Attempt: a}}})
	x := s.exited(a)
	if st := x.GetStatus(); st.GetCode() != 0 || st.GetCause() != 0 || string(x.GetStdout()) != fmt.Sprintln(s.uid) {
		t.Fatalf("got %s %v", describe(x), st)
	}
	var names []string
	for _, o := range x.GetOutputs() {
		names = append(names, fmt.Sprintf("%s:%d", o.GetName(), o.GetSize()))
	}
	if got, want := strings.Join(names, " "), "big:1000000 result.txt:5"; got != want {
		t.Errorf("outputs: got %s, want %s", got, want)
	}
	got := fetch(t, s, a, "result.txt", "big", fetchStdout)
	if got["result.txt"] != "hello" || len(got["big"]) != 1000000 || got[fetchStdout] != fmt.Sprintln(s.uid) {
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

func put(t *testing.T, s *schedd, a *wire.AttemptRef, name, text string) {
	t.Helper()
	stream, err := s.client.Put(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(text))
	for _, c := range []*wire.FileChunk{
		{Schedd: s.name, Attempt: a}, {Entry: &wire.FileEntry{Name: name, Mode: 0o644}}, {Data: []byte(text)}, {Eof: true, Sha256: sum[:]},
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

func fetch(t *testing.T, s *schedd, a *wire.AttemptRef, names ...string) map[string]string {
	t.Helper()
	got, err := fetchAll(s, a, names...)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// fetchAll fetches files and checks their digests.
func fetchAll(s *schedd, a *wire.AttemptRef, names ...string) (map[string]string, error) {
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
	p := newPlace(t)
	s := p.connect("host1", 1)
	claim := s.claim()
	a := s.activate(claim, s.shell("trap 'echo bye; exit 5' TERM; echo on; sleep 60 & wait"), false)
	s.started(a)
	s.tail(a, "on\n")
	s.vacate(a, false)
	if got, want := describe(s.exited(a)), `code 5 signal 0 cause CAUSE_REMOVED out "on\nbye\n" err ""`; got != want {
		t.Errorf("with notice: got %s, want %s", got, want)
	}
	s.acknowledge(a)
	a = s.activate(claim, s.shell("trap '' TERM; sleep 60 & wait; sleep 60"), false)
	s.started(a)
	s.vacate(a, true)
	if got, want := describe(s.exited(a)), `code 0 signal 9 cause CAUSE_REMOVED out "" err ""`; got != want {
		t.Errorf("at once: got %s, want %s", got, want)
	}
}

// tail waits until the attempt has written text.
func (s *schedd) tail(a *wire.AttemptRef, text string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
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
	p := newPlace(t)
	s := p.connect("host1", 1)
	prog := s.shell("echo one; read x <fifo; echo two")
	prog.Cwd, prog.Stdout = t.TempDir(), "out.txt"
	fifo := filepath.Join(prog.Cwd, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	a := s.activate(s.claim(), prog, false)
	s.started(a)
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
	p := newPlace(t)
	s := p.connect("host1", 1)
	reply := s.ask(func(r *wire.ClaimRequest) { r.LeaseS = 1 })
	a := s.activate(reply.GetClaim(), s.shell("sleep 60"), false)
	x := s.exited(a)
	if x.GetStatus().GetCause() != wire.Cause_CAUSE_LEASE {
		t.Errorf("got %s", describe(x))
	}
	p.ads.await(t, "has all free again", func(_ *wire.AdUpdate, ad *classad.Ad) bool { n, _ := ad.Int(roost.AttrCpus); return n == 4 })
	s.acknowledge(a)
	if lost := s.next("the loss of the claim").GetLost(); lost.GetClaim() != reply.GetClaim() {
		t.Errorf("got %v", lost)
	}
	reply = s.ask(func(r *wire.ClaimRequest) { r.LeaseS = 1 })
	s.send(&wire.ToStartd{Of: &wire.ToStartd_Renew{Renew: &wire.RenewLeases{Sequence: 7, LeaseS: 60}}})
	if r := s.next("the renewal").GetRenewed(); r.GetSequence() != 7 {
		t.Errorf("got %v", r)
	}
	if got := describe(s.run(reply.GetClaim(), s.shell("sleep 1.3; echo alive"))); !strings.Contains(got, `"alive\n"`) {
		t.Errorf("renewed: got %s", got)
	}
}

func TestRefusals(t *testing.T) {
	p := newPlace(t)
	s := p.connect("host1", 1)
	first := s.ask(func(r *wire.ClaimRequest) { r.Epoch = 2 })
	if first.GetClaim() == 0 {
		t.Fatal(first.GetReason())
	}
	tests := []struct {
		name, want string
		change     func(*wire.ClaimRequest)
	}{
		{"forged", "not made for this machine", func(r *wire.ClaimRequest) { r.Epoch, r.Capability = 2, bytes.Repeat([]byte{1}, 32) }},
		{"old epoch", "epoch 1", func(*wire.ClaimRequest) {}},
		{"used", "used before", func(r *wire.ClaimRequest) { r.Epoch, r.Grant = 2, s.grant-3; s.grant = r.Grant }},
		{"too big", "3 of 4 cpus", func(r *wire.ClaimRequest) { r.Epoch, r.Resources = 2, &wire.Resources{MilliCpu: 4000} }},
		{"requirements", "Requirements are false", func(r *wire.ClaimRequest) { r.Epoch, r.Ad = 2, `[Requirements = TARGET.Memory > 100000]` }},
		{"no ad", "line 1", func(r *wire.ClaimRequest) { r.Epoch, r.Ad = 2, `[Requirements = ` }},
	}
	for _, tt := range tests {
		if got := s.ask(tt.change); got.GetClaim() != 0 || !strings.Contains(got.GetReason(), tt.want) {
			t.Errorf("%s: got claim %d, %q; want %q", tt.name, got.GetClaim(), got.GetReason(), tt.want)
		}
	}
}

func TestAdShowsClaim(t *testing.T) {
	p := newPlace(t)
	s := p.connect("host1", 1)
	reply := s.ask(nil)
	u := p.ads.await(t, "shows the claim", func(u *wire.AdUpdate, _ *classad.Ad) bool { return u.GetSequence() >= reply.GetAdSequence() })
	ad, err := classad.Parse(u.GetAd())
	if err != nil {
		t.Fatal(err)
	}
	for attr, want := range map[string]int64{
		roost.AttrCpus: 3, roost.AttrTotalCpus: 4, roost.AttrNumClaims: 1, roost.AttrMemory: 4096 - 256, roost.AttrUpdateSequence: int64(u.GetSequence()),
	} {
		if got, ok := ad.Int(attr); !ok || got != want {
			t.Errorf("%s: got %d, want %d", attr, got, want)
		}
	}
	s.send(&wire.ToStartd{Of: &wire.ToStartd_Release{Release: &wire.ReleaseClaim{Claim: reply.GetClaim()}}})
	p.ads.await(t, "has all free", func(_ *wire.AdUpdate, ad *classad.Ad) bool { n, _ := ad.Int(roost.AttrCpus); return n == 4 })
	p.stop()
	p.ads.await(t, "is withdrawn", func(u *wire.AdUpdate, _ *classad.Ad) bool { return u.GetInvalidate() })
}

func TestNewerSessionFencesOlder(t *testing.T) {
	p := newPlace(t)
	old := p.connect("host1", 5)
	claim := old.claim()
	s := p.connect("host1", 6)
	if got := s.welcome.GetClaims(); len(got) != 1 || got[0].GetClaim() != claim || got[0].GetAttempt() != nil {
		t.Fatalf("welcome: got %v", got)
	}
	late := time.After(10 * time.Second)
	for open := true; open; {
		select {
		case _, open = <-old.heard:
		case <-late:
			t.Fatal("the older session goes on")
		}
	}
	a := s.activate(claim, s.shell("exit 4"), false)
	if x := s.exited(a); x.GetStatus().GetCode() != 4 {
		t.Errorf("got %s", describe(x))
	}
	s.acknowledge(a)
	other := p.connect("host2", 1)
	if len(other.welcome.GetClaims()) != 0 {
		t.Errorf("another schedd is shown %v", other.welcome.GetClaims())
	}
}

func TestAdoption(t *testing.T) {
	p := newPlace(t)
	s := p.connect("host1", 1)
	dir := t.TempDir()
	block := func(name, then string) (uint64, *wire.AttemptRef) {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
		prog := s.shell("echo " + name + "; read x <" + filepath.Join(dir, name) + "; " + then)
		prog.Scratch = name == "scratch"
		claim := s.claim()
		a := s.activate(claim, prog, false)
		s.started(a)
		s.tail(a, name+"\n")
		return claim, a
	}
	unblock := func(name string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("go\n"), 0); err != nil {
			t.Fatal(err)
		}
	}
	_, during := block("during", "exit 7")
	_, after := block("after", "exit 8")
	_, scratch := block("scratch", "echo made > made; exit 9")
	idle := s.claim()
	s.run(idle, s.shell("exit 0")) // so that its starter is there; whether the acknowledgement is still heard, nobody knows
	last := &wire.AttemptRef{Job: s.task, Attempt: 1}
	p.kill()
	unblock("during")
	awaitEnd(t, p, during)
	p.start()
	s2 := p.connect("host1", 2)
	if got := len(s2.welcome.GetClaims()); got != 4 {
		t.Fatalf("welcome: %d claims, want 4: %v", got, s2.welcome.GetClaims())
	}
	codes := map[uint64]int32{}
	for _, c := range s2.welcome.GetClaims() {
		if x := c.GetExited(); x != nil {
			codes[x.GetAttempt().GetJob()] = x.GetStatus().GetCode()
		}
	}
	s2.acknowledge(last)
	delete(codes, last.Job)
	unblock("after")
	unblock("scratch")
	var listed string
	for len(codes) < 3 {
		m := s2.next("news of an exit")
		if x := m.GetExited(); x != nil && x.GetAttempt().GetJob() != last.Job {
			codes[x.GetAttempt().GetJob()] = x.GetStatus().GetCode()
			for _, o := range x.GetOutputs() {
				listed += o.GetName()
			}
		}
	}
	if codes[during.Job] != 7 || codes[after.Job] != 8 || codes[scratch.Job] != 9 || listed != "made" {
		t.Errorf("got %v and outputs %q", codes, listed)
	}
	if got := fetch(t, s2, scratch, "made"); got["made"] != "made\n" {
		t.Errorf("fetched %q", got)
	}
	for _, a := range []*wire.AttemptRef{during, after, scratch} {
		s2.acknowledge(a)
	}
	if got, want := describe(s2.run(idle, s2.shell("echo again"))), `code 0 signal 0 cause CAUSE_EXITED out "again\n" err ""`; got != want {
		t.Errorf("on the idle claim: got %s, want %s", got, want)
	}
	s2.send(&wire.ToStartd{Of: &wire.ToStartd_Release{Release: &wire.ReleaseClaim{Claim: idle}}})
	if lost := s2.next("the end of the claim").GetLost(); lost.GetClaim() != idle {
		t.Errorf("released: got %v", lost)
	}
	if id := s2.claim(); id <= idle {
		t.Errorf("claim id %d was used again", id)
	}
}

// awaitEnd waits until the starter has written down the end of an attempt.
func awaitEnd(t *testing.T, p *place, a *wire.AttemptRef) {
	t.Helper()
	for range 500 {
		dirs, _ := filepath.Glob(filepath.Join(p.node.Startds[0].Dir, "claims", "*", "journal"))
		for _, d := range dirs {
			if st, _ := starter.ReadJournal(filepath.Dir(d)); st.Attempt.Job == a.Job && st.Phase == proto.Ended {
				return
			}
		}
		wait(10 * time.Millisecond)
	}
	t.Fatalf("attempt %v has not ended", a)
}

func TestShutdownVacates(t *testing.T) {
	p := newPlace(t)
	s := p.connect("host1", 1)
	s.claim()
	a := s.activate(s.claim(), s.shell("sleep 60 & sleep 61"), false)
	s.started(a)
	p.stop()
	x := s.exitedBeforeLoss(a)
	if x.GetStatus().GetCause() != wire.Cause_CAUSE_VACATED {
		t.Errorf("got %s", describe(x))
	}
	if left := starters(t, p); len(left) > 0 {
		t.Errorf("starters left: %v", left)
	}
	p.start()
	s2 := p.connect("host1", 2)
	claims := s2.welcome.GetClaims()
	if len(claims) != 1 || claims[0].GetAttempt().GetJob() != a.Job {
		t.Fatalf("the end that nobody recorded is lost: %v", claims)
	}
}

// exitedBeforeLoss waits for an exit, whatever else is lost meanwhile.
func (s *schedd) exitedBeforeLoss(a *wire.AttemptRef) *wire.Exited {
	s.t.Helper()
	for {
		if x := s.next("news of an exit").GetExited(); x.GetAttempt().GetJob() == a.Job {
			return x
		}
	}
}

// starters lists the processes that serve claims of the place.
func starters(t *testing.T, p *place) []string {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, f := range all {
		if text, _ := os.ReadFile(f); bytes.Contains(text, []byte(p.node.Startds[0].Dir)) {
			found = append(found, string(text))
		}
	}
	return found
}

func TestStarterDies(t *testing.T) {
	p := newPlace(t)
	s := p.connect("host1", 1)
	claim := s.claim()
	prog := s.shell("setsid sleep 4711 & echo on; sleep 4712")
	a := s.activate(claim, prog, false)
	s.started(a)
	s.tail(a, "on\n")
	killStarter(t, p)
	x := s.exited(a)
	if x.GetStatus().GetCause() != wire.Cause_CAUSE_MACHINE {
		t.Errorf("got %s", describe(x))
	}
	s.acknowledge(a)
	if lost := s.next("the loss of the claim").GetLost(); lost.GetClaim() != claim {
		t.Errorf("got %v", lost)
	}
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range all {
		if text, _ := os.ReadFile(f); string(text) == "sleep\x004711\x00" {
			t.Errorf("%s lives on", f)
		}
	}
}

func killStarter(t *testing.T, p *place) {
	t.Helper()
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range all {
		text, _ := os.ReadFile(f)
		if bytes.HasPrefix(text, []byte("roost-starter\x00"+p.node.Startds[0].Dir)) {
			var pid int
			fmt.Sscanf(f, "/proc/%d/", &pid)
			syscall.Kill(pid, syscall.SIGKILL)
			return
		}
	}
	t.Fatal("no starter found")
}
