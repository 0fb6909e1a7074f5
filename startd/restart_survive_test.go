package startd

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/starter/proto"
	"github.com/roost-batch/roost/startd/starterclient"
)

func TestAdoption(t *testing.T) {
	p := newTestStartd(t)
	s := p.connect("host1", 1)
	dir, err := os.MkdirTemp("/var/tmp", "roost") // which tasks see that have a /tmp of their own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	block := func(name, then string) (uint64, *wire.AttemptRef) {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
		prog := s.shell("echo " + name + "; read x <" + filepath.Join(dir, name) + "; " + then)
		prog.Scratch = name == "scratch"
		claim := s.claim()
		a := s.activate(claim, prog, false)
		s.awaitStarted(a)
		s.awaitOutput(a, name+"\n")
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
	// so that its starter is there; whether the acknowledgement is still heard, nobody
	// knows
	s.run(idle, s.shell("exit 0"))
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
		m := s2.nextMessage("news of an exit")
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
	if got := fetchFile(t, s2, scratch, "made"); got["made"] != "made\n" {
		t.Errorf("fetched %q", got)
	}
	for _, a := range []*wire.AttemptRef{during, after, scratch} {
		s2.acknowledge(a)
	}
	if got, want := exitText(s2.run(idle, s2.shell("echo again"))),
		`code 0 signal 0 cause CAUSE_EXITED out "again\n" err ""`; got != want {
		t.Errorf("on the idle claim: got %s, want %s", got, want)
	}
	s2.send(&wire.ToStartd{Of: &wire.ToStartd_Release{Release: &wire.ReleaseClaim{Claim: idle}}})
	if lost := s2.nextMessage("the end of the claim").GetLost(); lost.GetClaim() != idle {
		t.Errorf("released: got %v", lost)
	}
	if id := s2.claim(); id <= idle {
		t.Errorf("claim id %d was used again", id)
	}
}

// awaitEnd waits until the starter has written down the end of an attempt.
func awaitEnd(t *testing.T, p *testStartd, a *wire.AttemptRef) {
	t.Helper()
	for range 500 {
		dirs, _ := filepath.Glob(filepath.Join(p.node.Startds[0].Dir, "claims", "*", "journal"))
		for _, d := range dirs {
			if st, _ := starterclient.ReadJournal(filepath.Dir(d)); st.Attempt.Job == a.Job && st.Phase == proto.Ended {
				return
			}
		}
		waitBriefly(10 * time.Millisecond)
	}
	t.Fatalf("attempt %v has not ended", a)
}

func TestShutdownVacates(t *testing.T) {
	t.Parallel()
	p := newTestStartd(t)
	s := p.connect("host1", 1)
	s.claim()
	a := s.activate(s.claim(), s.shell("sleep 60 & sleep 61"), false)
	s.awaitStarted(a)
	p.stop()
	x := s.awaitExitBeforeLoss(a)
	if x.GetStatus().GetCause() != wire.Cause_CAUSE_VACATED {
		t.Errorf("got %s", exitText(x))
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

// awaitExitBeforeLoss waits for an exit, whatever else is lost meanwhile.
func (s *fakeSchedd) awaitExitBeforeLoss(a *wire.AttemptRef) *wire.Exited {
	s.t.Helper()
	for {
		if x := s.nextMessage("news of an exit").GetExited(); x.GetAttempt().GetJob() == a.Job {
			return x
		}
	}
}

// starters lists the processes that serve claims of the place.
func starters(t *testing.T, p *testStartd) []string {
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
	p := newTestStartd(t)
	s := p.connect("host1", 1)
	claim := s.claim()
	prog := s.shell("setsid sleep 4711 & echo on; sleep 4712")
	a := s.activate(claim, prog, false)
	s.awaitStarted(a)
	s.awaitOutput(a, "on\n")
	killStarter(t, p)
	x := s.awaitOnlyExit(a)
	if x.GetStatus().GetCause() != wire.Cause_CAUSE_MACHINE || !x.GetStatus().GetBegun() {
		t.Errorf("got %s, begun: %v", exitText(x), x.GetStatus().GetBegun())
	}
	s.acknowledge(a)
	if lost := s.nextMessage("the loss of the claim").GetLost(); lost.GetClaim() != claim {
		t.Errorf("got %v", lost)
	}
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range all {
		if text, _ := os.ReadFile(f); string(text) == "sleep\x004711\x00" {
			t.Errorf("%s lives on", f)
		}
	}
}

func killStarter(t *testing.T, p *testStartd) {
	t.Helper()
	syscall.Kill(starterOf(t, p), syscall.SIGKILL)
}

// starterOf is the process id of a claim's starter of the place.
func starterOf(t *testing.T, p *testStartd) (pid int) {
	t.Helper()
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range all {
		text, _ := os.ReadFile(f)
		arguments := strings.Split(string(text), "\x00")
		if len(arguments) < 2 || arguments[0] != "roost-starter" ||
			!strings.HasPrefix(arguments[1], p.node.Startds[0].Dir) {
			continue
		}
		if _, err := os.Stat(filepath.Join(arguments[1], "claim")); err == nil { // else it is a spare
			fmt.Sscanf(f, "/proc/%d/", &pid)
			return pid
		}
	}
	t.Fatal("no starter found")
	return 0
}

// TestStarterDiesLate checks that the kernel kills a starter that does not end its task
// after the lease. The cause is the end of the lease, and no fault of the machine.
func TestStarterDiesLate(t *testing.T) {
	t.Parallel()
	p := newTestStartd(t)
	s := p.connect("host1", 1)
	a := s.activate(s.requestClaim(func(r *wire.ClaimRequest) { r.LeaseS = 2 }).GetClaim(), s.shell("sleep 60"), false)
	s.awaitStarted(a)
	pid, over := starterOf(t, p), make(chan struct{})
	var stopping sync.WaitGroup
	stopping.Go(func() { // also when the kernel lets it go on
		for tick := time.NewTicker(200 * time.Microsecond); ; {
			select {
			case <-over:
				tick.Stop()
				return
			case <-tick.C:
				syscall.Kill(pid, syscall.SIGSTOP)
			}
		}
	})
	x := s.awaitOnlyExit(a)
	close(over)
	stopping.Wait()
	if x.GetStatus().GetCause() != wire.Cause_CAUSE_LEASE {
		t.Errorf("got %s, want the end of its lease", exitText(x))
	}
}

// TestStopNotice checks that a server that is stopped gives its tasks the notice in its
// file. The tasks end as they like within that time.
func TestStopNotice(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		notice time.Duration
		want   string
	}{{30 * time.Second, "saved\n"}, {time.Second, ""}} {
		t.Run(tt.notice.String(), func(t *testing.T) {
			t.Parallel()
			p := newTestStartdWith(t, func(p *testStartd) { p.node.Startds[0].StopNotice = tt.notice })
			s := p.connect("host1", 1)
			program := s.shell("trap 'trap \"\" TERM; sleep 2.5; echo saved; exit 0' TERM; touch n1/ready; while :; " +
				"do sleep 0.02; done")
			program.NoticeNs = int64(20 * time.Second)
			a := s.activate(s.claim(), program, false)
			s.awaitStarted(a)
			await(t, "it runs", func() bool {
				_, err := os.Stat(filepath.Join(p.node.Dir, "n1/ready"))
				return err == nil
			})
			p.stop()
			if x := s.awaitExitBeforeLoss(a); string(x.GetStdout()) != tt.want {
				t.Errorf("with a notice of %v it printed %q, want %q: %s", tt.notice, x.GetStdout(), tt.want,
					exitText(x))
			}
		})
	}
}
