package startd

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
)

func TestGenerationsRise(t *testing.T) {
	dir := t.TempDir()
	var last slot.ClaimID
	for i := range 5 {
		switch i {
		case 2:
			os.Remove(filepath.Join(dir, "generation"))
		case 3:
			os.WriteFile(filepath.Join(dir, "generation"), []byte("junk"), 0o600)
		}
		first, err := nextGeneration(dir, []slot.ClaimID{last})
		if err != nil || first <= last {
			t.Fatalf("start %d: got %d after %d (%v)", i, first, last, err)
		}
		last = first + 100
	}
}

// TestAttemptRecord: a shorter record takes the place of a longer one.
func TestAttemptRecord(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "attempt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, want := range []attemptRecord{
		{Job: 1, Attempt: 1, Outputs: []string{"a long name of a file", "another"},
			Before: map[string]fileAge{"x": {1, 2}}},
		{Job: 2, Attempt: 3, Stdout: "out"},
	} {
		if err := writeAttempt(f, &want); err != nil {
			t.Fatal(err)
		}
		got, err := readAttempt(dir)
		if err != nil || got.Job != want.Job || got.Stdout != want.Stdout || len(got.Outputs) != len(want.Outputs) ||
			len(got.Before) != len(want.Before) {
			t.Errorf("got %+v (%v), want %+v", got, err, want)
		}
	}
}

// TestNothingSurvivesABoot: what was here before a boot, or without a starter, is gone,
// with its processes and files.
func TestNothingSurvivesABoot(t *testing.T) {
	p := newTestStartd(t)
	s := p.connect("host1", 1)
	prog := s.shell("sleep 60")
	prog.Scratch = true
	a := s.activate(s.claim(), prog, false)
	s.awaitStarted(a)
	idle := s.claim()
	s.run(idle, s.shell("exit 0"))
	p.kill()
	dirs, err := filepath.Glob(filepath.Join(p.node.Startds[0].Dir, "claims", "*", "claim"))
	if err != nil || len(dirs) != 2 {
		t.Fatalf("claim files: %v, %v", dirs, err)
	}
	for _, d := range dirs {
		f, err := readClaimFile(filepath.Dir(d))
		if err != nil {
			t.Fatal(err)
		}
		killStarter(t, p)
		f.BootID = "another"
		if err := writeClaimFile(filepath.Dir(d), f); err != nil {
			t.Fatal(err)
		}
	}
	p.start()
	if got := p.connect("host1", 2).welcome.GetClaims(); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	left, _ := filepath.Glob(filepath.Join(p.node.Startds[0].Dir, "claims", "[0-9]*"))
	if left = append(left, p.scratchLeft()...); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestBigOutput: what is too much to come along is fetched.
func TestBigOutput(t *testing.T) {
	p := newTestStartd(t)
	s := p.connect("host1", 1)
	a := s.activate(s.claim(), s.shell("head -c 100000 /dev/zero; echo small >&2"), false)
	x := s.awaitOnlyExit(a)
	if len(x.GetStdout()) != 0 || x.GetStdoutSize() != 100000 || string(x.GetStderr()) != "small\n" ||
		x.GetStderrSize() != 6 {
		t.Errorf("got %d of %d bytes, %q", len(x.GetStdout()), x.GetStdoutSize(), x.GetStderr())
	}
	if got := fetchFile(t, s, a, fetchStdout, fetchStderr); len(got[fetchStdout]) != 100000 ||
		got[fetchStderr] != "small\n" {
		t.Errorf("fetched %d bytes and %q", len(got[fetchStdout]), got[fetchStderr])
	}
}

// TestVacateBeforeLaunch: an attempt that waits for its input has nothing to kill.
func TestVacateBeforeLaunch(t *testing.T) {
	p := newTestStartd(t)
	s := p.connect("host1", 1)
	prog := s.shell("exit 0")
	prog.Scratch = true
	a := s.activate(s.claim(), prog, true)
	if s.nextMessage("room for input").GetInput() == nil {
		t.Fatal("no room for input")
	}
	s.vacate(a, false)
	if x := s.awaitOnlyExit(a); x.GetStatus().GetCause() != wire.Cause_CAUSE_REMOVED ||
		x.GetStatus().GetReason() == "" {
		t.Errorf("got %v", x)
	}
	s.acknowledge(a)
	if left := p.scratchLeft(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
