package startd

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/wire"
)

// spareStarterPIDs lists the starters of the place that have no claim, by the directory
// that is to be the claim's.
func spareStarterPIDs(t *testing.T, p *testStartd) map[string]int {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, f := range all {
		text, _ := os.ReadFile(f)
		arguments := strings.Split(string(text), "\x00")
		if len(arguments) < 2 || arguments[0] != "roost-starter" ||
			!strings.HasPrefix(arguments[1], p.node.Startds[0].Dir) {
			continue
		}
		if _, err := os.Stat(filepath.Join(arguments[1], "claim")); err == nil {
			continue
		}
		if found[arguments[1]], err = strconv.Atoi(strings.Split(f, "/")[2]); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// awaitSpares waits until there are so many spare starters.
func awaitSpares(t *testing.T, p *testStartd, count int) map[string]int {
	t.Helper()
	var found map[string]int
	for range 1000 {
		if found = spareStarterPIDs(t, p); len(found) == count {
			return found
		}
		waitBriefly(10 * time.Millisecond)
	}
	t.Fatalf("got %v, want %d spare starters", found, count)
	return nil
}

// TestSpareStarters checks that claims get the spare starters, with their own limits, and
// that others are made for those. A startd that is killed leaves its spares to nobody,
// and one that is stopped leaves none.
func TestSpareStarters(t *testing.T) {
	t.Parallel()
	p := newTestStartdWith(t, func(p *testStartd) { p.node.Startds[0].Spares = new(2) })
	before := awaitSpares(t, p, 2)
	s := p.connect("host1", 1)
	for range 3 { // the third has to make its own, or gets a new one
		a := s.activate(s.claim(), s.shell("echo $PPID; exec sleep 1000"), false)
		s.awaitStarted(a)
	}
	for dir, pid := range before {
		if _, err := os.Stat(filepath.Join(dir, "claim")); err != nil {
			t.Errorf("no claim has the spare starter %d: %v", pid, err)
		}
		if text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup"); err == nil && os.Geteuid() == 0 &&
			!strings.Contains(string(text), filepath.Base(dir)) {
			t.Errorf("the spare starter %d is in no group of its claim: %s", pid, text)
		}
	}
	awaitSpares(t, p, 2)
	p.kill()
	left := awaitSpares(t, p, 2)
	p.start()
	fresh := awaitFreshSpares(t, p, left)
	if got := len(p.connect("host1", 2).welcome.GetClaims()); got != 3 {
		t.Errorf("after a restart there are %d claims, want 3", got)
	}
	p.stop()
	if got := starters(t, p); len(got) > 0 {
		t.Errorf("left: %v, spares were %v", got, fresh)
	}
}

// awaitFreshSpares waits until there are two spare starters, and none of the old ones.
func awaitFreshSpares(t *testing.T, p *testStartd, old map[string]int) (found map[string]int) {
	t.Helper()
	for range 1000 {
		found = spareStarterPIDs(t, p)
		for dir := range found {
			if old[dir] != 0 {
				found = nil
			}
		}
		if len(found) == 2 {
			return found
		}
		waitBriefly(10 * time.Millisecond)
	}
	t.Fatalf("got %v, before %v, want two new ones", spareStarterPIDs(t, p), old)
	return nil
}

// TestSpareStarterDies checks that a claim makes its own starter after a spare one has
// died.
func TestSpareStarterDies(t *testing.T) {
	t.Parallel()
	p := newTestStartdWith(t, func(p *testStartd) { p.node.Startds[0].Spares = new(1) })
	s := p.connect("host1", 1)
	for _, pid := range awaitSpares(t, p, 1) {
		if process, err := os.FindProcess(pid); err != nil || process.Kill() != nil {
			t.Fatalf("kill %d: %v", pid, err)
		}
	}
	awaitSpares(t, p, 0)
	a := s.activate(s.claim(), s.shell("exit 3"), false)
	if x := s.awaitExit(a); x.GetStatus().GetCode() != 3 || x.GetStatus().GetCause() != wire.Cause_CAUSE_EXITED {
		t.Errorf("got %s", exitText(x))
	}
}

// TestNoSpareStarters checks that there are none where the settings say so, and none on a
// machine that takes no claims.
func TestNoSpareStarters(t *testing.T) {
	t.Parallel()
	p := newTestStartdWith(t, func(p *testStartd) { p.node.Startds[0].Spares = new(0) })
	s := p.connect("host1", 1)
	a := s.activate(s.claim(), s.shell("exit 0"), false)
	s.awaitExit(a)
	if got := spareStarterPIDs(t, p); len(got) > 0 {
		t.Errorf("got %v", got)
	}
}
