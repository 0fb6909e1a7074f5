package startd

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/roost-batch/roost/internal/filesum"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/streams"
)

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
		killStarter(t, p)
		text, err := os.ReadFile(d)
		if err == nil {
			text, err = filesum.VerifyChecksum(text)
		}
		if err != nil {
			t.Fatal(err)
		}
		text = regexp.MustCompile(`"BootID":"[^"]*"`).ReplaceAll(text, []byte(`"BootID":"another"`))
		if err := os.WriteFile(d, filesum.AppendChecksum(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.start()
	if got := p.connect("host1", 2).welcome.GetClaims(); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	left, _ := filepath.Glob(filepath.Join(p.node.Startds[0].Dir, "claims", "*", "claim"))
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
	if got := fetchFile(t, s, a, streams.FetchStdout, streams.FetchStderr); len(got[streams.FetchStdout]) != 100000 ||
		got[streams.FetchStderr] != "small\n" {
		t.Errorf("fetched %d bytes and %q", len(got[streams.FetchStdout]), got[streams.FetchStderr])
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
