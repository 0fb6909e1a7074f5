package startd

import (
	"strings"
	"testing"
	"time"
)

// TestTellKilled holds that a job of qsub finds it behind its own output, and no other
// job does.
func TestTellKilled(t *testing.T) {
	p := newTestStartd(t)
	s := p.connect("host1", 1)
	claim := s.claim()
	for id, want := range map[string]string{
		"PBS_JOBID=1.host1": `err "first\n=>> PBS: job killed: walltime 0 exceeded limit 0\n"`,
		"OTHER=1":           `err "first\n"`,
	} {
		program := s.shell("echo first >&2; sleep 60")
		program.Environment = append(program.Environment, []byte(id))
		program.WalltimeNs, program.NoticeNs = int64(300*time.Millisecond), int64(100*time.Millisecond)
		a := s.activate(claim, program, false)
		if got := exitText(s.awaitOnlyExit(a)); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", id, got, want)
		}
		s.acknowledge(a)
	}
}
