package startd

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/claim"
	"github.com/roost-batch/roost/startd/slot"
)

// cgroupsOf is the control groups of a place's startd, as somebody else sees them.
func cgroupsOf(t *testing.T, p *testStartd) *cgroup.ParentGroup {
	t.Helper()
	h, err := claim.OpenParentCgroup(&p.node.Startds[0])
	if err != nil {
		t.Fatal(err)
	}
	if can := h.Enforcement(); !can.CPU || !can.Memory {
		t.Skipf("SKIPPED: this machine cannot limit tasks: %q", can.Missing)
	}
	return h
}

func TestClaimHasAGroup(t *testing.T) {
	p := newTestStartd(t)
	h := cgroupsOf(t, p)
	p.ads.awaitAd(t, "says what is enforced", func(_ *wire.AdUpdate, ad *classad.Ad) bool {
		list := ad.String()
		return strings.Contains(list, roost.AttrEnforces) && strings.Contains(list, `"memory"`) &&
			strings.Contains(list, roost.AttrCgroupVersion)
	})
	s := p.connect("host1", 1)
	id := s.claim()
	x := s.run(id, s.shell("cat /proc/self/cgroup"))
	if name := slot.ClaimID(id).String(); !strings.Contains(string(x.GetStdout()),
		claim.CgroupName(&p.node.Startds[0])+"/"+name) {
		t.Errorf("the task was in\n%s", x.GetStdout())
	}
	g, ok := h.FindGroup(slot.ClaimID(id).String())
	if !ok {
		t.Fatal("the claim has no group")
	}
	if o, _ := g.OOM(); o.MemoryLimit != 256*roost.MiB {
		t.Errorf("limit of memory: got %v", o.MemoryLimit)
	}
	s.send(&wire.ToStartd{Of: &wire.ToStartd_Release{Release: &wire.ReleaseClaim{Claim: id}}})
	s.nextMessage("the end of the claim")
	for range 500 {
		if _, ok = h.FindGroup(g.Path()[strings.LastIndexByte(g.Path(), '/')+1:]); !ok {
			break
		}
		waitBriefly(10 * time.Millisecond)
	}
	if ok {
		t.Error("the group is still there")
	}
	p.stop()
	if left, _ := filepath.Glob("/sys/fs/cgroup/*" + "/roost" +
		claim.CgroupName(&p.node.Startds[0])); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestNothingEscapesItsGroup checks that a process that hides from its starter dies with
// its claim. The process has removed the mark from its environment. It dies as well when
// startd and starter were killed and only the next startd can end it.
func TestNothingEscapesItsGroup(t *testing.T) {
	p := newTestStartd(t)
	cgroupsOf(t, p)
	s := p.connect("host1", 1)
	claim := s.claim()
	a := s.activate(claim, s.shell("env -i setsid sleep 86399.5 & echo there >n1/stray.new; mv "+
		"n1/stray.new n1/stray; exec sleep 1000"), false)
	s.awaitStarted(a)
	var text []byte
	for range 500 {
		if text, _ = os.ReadFile(filepath.Join(p.node.Dir, "n1/stray")); text != nil {
			break
		}
		waitBriefly(10 * time.Millisecond)
	}
	if text == nil {
		t.Fatal("no sign of the task")
	}
	stray := pidOf(t, "sleep\x0086399.5\x00")
	p.kill()
	killStarter(t, p)
	p.start()
	for range 1000 {
		if syscall.Kill(stray, 0) == syscall.ESRCH {
			break
		}
		waitBriefly(10 * time.Millisecond)
	}
	if syscall.Kill(stray, 0) != syscall.ESRCH {
		t.Errorf("process %d has escaped", stray)
		syscall.Kill(stray, syscall.SIGKILL)
	}
}

// pidOf waits for a process with these arguments, and returns its number outside of its
// own namespace.
func pidOf(t *testing.T, arguments string) int {
	t.Helper()
	for range 1000 {
		paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, path := range paths {
			if text, _ := os.ReadFile(path); string(text) == arguments {
				pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
				return pid
			}
		}
		waitBriefly(10 * time.Millisecond)
	}
	t.Fatalf("no process %q", arguments)
	return 0
}
