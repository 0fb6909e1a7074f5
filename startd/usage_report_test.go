package startd

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/internal/wire"
)

// TestOutOfMemory: the job is told that it was its memory, how much it was, and which
// process died of it.
func TestOutOfMemory(t *testing.T) {
	p := newTestStartd(t)
	cgroupsOf(t, p)
	s := p.connect("host1", 1)
	claim := s.requestClaim(func(r *wire.ClaimRequest) { r.Resources.Memory = 64 << 20; r.Ad = "[]" }).GetClaim()
	x := s.run(claim, s.shell("tail /dev/zero; exit 3"))
	st := x.GetStatus()
	if st.GetCause() != wire.Cause_CAUSE_MEMORY || st.GetCode() != 3 {
		t.Fatalf("got %s", exitText(x))
	}
	if r := st.GetReason(); !strings.HasPrefix(r,
		"it needed more memory than it asked for: the limit is 64MiB, the peak was ") || cgroup.CanReadKernelLog() &&
		!strings.Contains(r, "its process tail (") {
		t.Errorf("reason: %s", r)
	}
	if peak := st.GetUsage().GetPeakMemory(); peak < 32<<20 || peak > 64<<20 {
		t.Errorf("peak: got %d", peak)
	}
	// The next one on the same claim is not blamed for that, whatever else it fails of;
	// and one that loses a process and goes on has not failed.
	if x := s.run(claim, s.shell("exit 4")); x.GetStatus().GetCause() != wire.Cause_CAUSE_EXITED {
		t.Errorf("the next: %s, %s", exitText(x), x.GetStatus().GetReason())
	}
	if x := s.run(claim, s.shell("tail /dev/zero; exit 0")); x.GetStatus().GetCause() != wire.Cause_CAUSE_EXITED {
		t.Errorf("one that succeeds: %s, %s", exitText(x), x.GetStatus().GetReason())
	}
}

// TestMemoryFilesArePeak: memory that a task holds in files of shared memory is in its
// peak, though no process holds it.
func TestMemoryFilesArePeak(t *testing.T) {
	p := newTestStartd(t)
	cgroupsOf(t, p)
	s := p.connect("host1", 1)
	claim := s.requestClaim(func(r *wire.ClaimRequest) { r.Resources.Memory = 64 << 20; r.Ad = "[]" }).GetClaim()
	st := s.run(claim, s.shell("head -c 200M /dev/zero >/dev/shm/x; exit 3")).GetStatus()
	if st.GetCause() != wire.Cause_CAUSE_MEMORY || st.GetUsage().GetPeakMemory() < 60<<20 {
		t.Errorf("got %v", st)
	}
}

func TestUsageOfAnAttempt(t *testing.T) {
	p := newTestStartd(t)
	s := p.connect("host1", 1)
	x := s.run(s.claim(), s.shell("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"))
	u := x.GetStatus().GetUsage()
	if u == nil || u.GetUserCpu() < x.GetStatus().GetUserCpu() || u.GetWall() != x.GetStatus().GetWall() ||
		u.GetPeakMemory() == 0 || u.GetProcesses() != 0 {
		t.Errorf("got %v of %v", u, x.GetStatus())
	}
}

// TestUsageReport: what a running task uses is told while it runs, with groups and
// without.
func TestUsageReport(t *testing.T) {
	for _, enforce := range []string{"auto", "never"} {
		t.Run(enforce, func(t *testing.T) {
			t.Parallel()
			p := newTestStartd(t)
			p.stop()
			p.node.Startds[0].Limits.Enforce = "never"
			if enforce == "auto" {
				p.node.Startds[0].Limits.Enforce = ""
			}
			p.start()
			s := p.connect("host1", 1)
			a := s.activate(s.claim(), s.shell("i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; exec sleep 1000"),
				false)
			s.awaitStarted(a)
			late := time.After(time.Minute)
			for {
				var m *wire.FromStartd
				select {
				case m = <-s.messages:
				case <-late:
					t.Fatal("no report came")
				}
				if len(m.GetUsage().GetAttempts()) == 0 {
					continue
				}
				got := m.GetUsage().GetAttempts()[0]
				if u := got.GetUsage(); got.GetAttempt().GetJob() == a.Job && u.GetUserCpu() > 0 && u.GetMemory() > 0 &&
					u.GetWall() > 0 && u.GetSession() > 0 {
					if name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm",
						u.GetSession())); strings.HasPrefix(string(name), "roost") {
						t.Errorf("the session is that of %s", name)
					}
					break
				}
			}
			s.vacate(a, true)
			s.awaitOnlyExit(a)
		})
	}
}

// TestDiskQuota: a task that fills its scratch directory is told how far it went, and
// what it was.
func TestDiskQuota(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: disks are measured every 15 seconds")
	}
	t.Parallel()
	p := newTestStartd(t)
	s := p.connect("host1", 1)
	claim := s.requestClaim(func(r *wire.ClaimRequest) { r.Resources.Disk = 1 << 20 }).GetClaim()
	prog := s.shell("dd if=/dev/zero of=big bs=1M count=4 2>/dev/null; exec sleep 1000")
	prog.Scratch = true
	a := s.activate(claim, prog, false)
	x := s.awaitLateExit()
	if x.GetAttempt().GetJob() != a.Job || x.GetStatus().GetCause() != wire.Cause_CAUSE_DISK {
		t.Fatalf("got %v", x)
	}
	reason := x.GetStatus().GetReason() // its directories may take a block or two themselves
	if !strings.HasPrefix(reason, "it used more disk than it asked for: the limit is 1MiB, and "+
		"its directories hold 4") || !strings.Contains(reason, "; most of it in big (4MiB)") {
		t.Errorf("got %s", reason)
	}
}

// awaitLateExit waits for the end of an attempt for up to a minute.
func (s *fakeSchedd) awaitLateExit() (x *wire.Exited) {
	for end := time.Now().Add(time.Minute); x == nil && time.Now().Before(end); {
		select {
		case m := <-s.messages:
			x = m.GetExited()
		case <-time.After(time.Second):
		}
	}
	return x
}

// TestDiskQuotaOfCapturedOutput: what is captured lies on the machine's disk as well,
// and counts.
func TestDiskQuotaOfCapturedOutput(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: disks are measured every 15 seconds")
	}
	t.Parallel()
	p := newTestStartd(t)
	s := p.connect("host1", 1)
	claim := s.requestClaim(func(r *wire.ClaimRequest) { r.Resources.Disk = 1 << 20 }).GetClaim()
	a := s.activate(claim, s.shell("dd if=/dev/zero bs=1M count=4 2>/dev/null; exec sleep 1000"), false)
	x := s.awaitLateExit()
	if want := "most of it in its captured output (4MiB)"; x.GetAttempt().GetJob() != a.Job ||
		x.GetStatus().GetCause() != wire.Cause_CAUSE_DISK || !strings.HasSuffix(x.GetStatus().GetReason(), want) {
		t.Errorf("got %v, want %q", x.GetStatus(), want)
	}
}
