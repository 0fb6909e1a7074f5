package startd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/internal/failpoint"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
)

// resizeRun is a startd with one claim whose task holds some memory.
type resizeRun struct {
	*testing.T
	p     *testStartd
	s     *fakeSchedd
	group *cgroup.ClaimGroup
	a     *wire.AttemptRef
}

const resizeHold = `( head -c 30000000 /dev/zero; echo >n1/held; while :; do sleep 0.1; done ) | tail >/dev/null`

func newResizeRun(t *testing.T) *resizeRun {
	p := newTestStartd(t)
	h := cgroupsOf(t, p)
	r := &resizeRun{T: t, p: p, s: p.connect("host1", 1)}
	claim := r.s.claim()
	r.a = r.s.activate(claim, r.s.shell(resizeHold), false)
	r.s.awaitStarted(r.a)
	for range 6000 {
		if _, err := os.Stat(filepath.Join(p.node.Dir, "n1/held")); err == nil {
			break
		}
		waitBriefly(testTimeout / 6000)
	}
	var ok bool
	if r.group, ok = h.FindGroup(slot.ClaimID(claim).String()); !ok {
		t.Fatal("the claim has no group")
	}
	return r
}

// ask sends a resize, and does not wait for the answer.
func (r *resizeRun) ask(s *fakeSchedd, memory roost.Bytes) {
	s.send(&wire.ToStartd{Of: &wire.ToStartd_Resize{Resize: &wire.Resize{Attempt: r.a,
		Resources: &wire.Resources{MilliCpu: 1000, Memory: int64(memory)}}}})
}

// resize changes the memory of the claim, and returns the refusal.
func (r *resizeRun) resize(memory roost.Bytes) string {
	r.Helper()
	r.ask(r.s, memory)
	for {
		m := r.s.nextMessage("the answer to a resize")
		if got := m.GetResized(); got.GetAttempt().GetJob() == r.a.Job {
			if got.GetResources().GetMemory() != int64(memory) {
				r.Fatalf("got %v, asked for %v", got, memory)
			}
			return got.GetReason()
		}
		if m.GetExited() != nil {
			r.Fatalf("the task has ended: %v", m)
		}
	}
}

// expect checks what the kernel allows the task.
func (r *resizeRun) expect(memory roost.Bytes) {
	r.Helper()
	if o, err := r.group.OOM(); err != nil || o.MemoryLimit != memory || o.Kills != 0 {
		r.Fatalf("%+v, %v; want %v", o, err, memory)
	}
}

// reopen starts the startd again after it was killed. It returns the memory of its claim.
func (r *resizeRun) reopen(incarnation uint64, env ...string) roost.Bytes {
	r.Helper()
	r.p.start(env...)
	r.s = r.p.connect("host1", incarnation)
	claims := r.s.welcome.GetClaims()
	if len(claims) != 1 || !claims[0].GetRunning() {
		r.Fatalf("got %v", claims)
	}
	return roost.Bytes(claims[0].GetResources().GetMemory())
}

// TestResizeTask makes the claim of a running task larger and smaller. The kernel's
// limits follow, a startd that is killed finds them, and the task lives on.
func TestResizeTask(t *testing.T) {
	r := newResizeRun(t)
	r.expect(256 * roost.MiB)
	if why := r.resize(512 * roost.MiB); why != "" {
		t.Fatal(why)
	}
	r.expect(512 * roost.MiB)
	if why := r.resize(16 * roost.MiB); !strings.Contains(why, "its processes use") {
		t.Errorf("less than it uses: %q", why)
	}
	r.expect(512 * roost.MiB)
	if why := r.resize(1 << 50); !strings.Contains(why, "are there for it") {
		t.Errorf("more than the machine has: %q", why)
	}
	if why := r.resize(128 * roost.MiB); why != "" {
		t.Fatal(why)
	}
	r.expect(128 * roost.MiB)
	r.ask(r.p.connect("host2", 1), 64*roost.MiB) // another schedd has no such attempt
	if why := r.resize(128 * roost.MiB); why != "" {
		t.Errorf("it has that already: %q", why)
	}
	r.expect(128 * roost.MiB)

	r.p.kill()
	if got := r.reopen(2); got != 128*roost.MiB {
		t.Errorf("a restart finds %v", got)
	}
	r.expect(128 * roost.MiB)
	r.ask(r.s, 192*roost.MiB)
	r.p.kill() // somewhere on the way
	if got := r.reopen(3); got != 128*roost.MiB && got != 192*roost.MiB {
		t.Errorf("a restart finds %v", got)
	}
	if why := r.resize(192 * roost.MiB); why != "" {
		t.Fatal(why)
	}
	r.expect(192 * roost.MiB)
}

// TestResizeKilledBetween kills the startd between the steps of a resize. What it adopts
// is never less than the kernel allows, and its schedd asks again.
func TestResizeKilledBetween(t *testing.T) {
	if !failpoint.Enabled {
		t.Skip("SKIPPED: crashes at points are in builds with the tag faults")
	}
	r := newResizeRun(t)
	faults := t.TempDir()
	incarnation := uint64(2)
	for _, c := range []struct {
		point        string
		to, restored roost.Bytes
	}{
		{failpoint.StartdInResize, 512 * roost.MiB, 512 * roost.MiB},
		{failpoint.StartdAfterResize, 768 * roost.MiB, 768 * roost.MiB},
		{failpoint.StartdInResize, 128 * roost.MiB, 768 * roost.MiB},
		{failpoint.StartdAfterResize, 64 * roost.MiB, 64 * roost.MiB},
	} {
		r.p.kill()
		r.reopen(incarnation, "ROOST_FAULT_DIR="+faults)
		if err := os.WriteFile(filepath.Join(faults, c.point), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		r.ask(r.s, c.to)
		r.p.cmd.Wait()
		if got := r.reopen(incarnation + 1); got != c.restored {
			t.Errorf("%s, to %v: a restart finds %v, want %v", c.point, c.to, got, c.restored)
		}
		r.expect(c.restored)
		if why := r.resize(c.to); why != "" {
			t.Error(why)
		}
		r.expect(c.to)
		incarnation += 2
	}
}
