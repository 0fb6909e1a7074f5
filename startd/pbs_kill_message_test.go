package startd

import (
	"strconv"
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
	for id, pattern := range map[string]string{
		"PBS_JOBID=1.host1": `err "first\n=>> PBS: job killed: walltime %d exceeded limit %d\n"`,
		"OTHER=1":           `err "first\n"`,
	} {
		// On a busy machine the shell may come too late for a short walltime.
		for walltime := 300 * time.Millisecond; ; walltime *= 4 {
			program := s.shell("echo first >&2; sleep 600")
			program.Environment = append(program.Environment, []byte(id))
			program.WalltimeNs, program.NoticeNs = int64(walltime), int64(100*time.Millisecond)
			a := s.activate(claim, program, false)
			got := exitText(s.awaitOnlyExit(a))
			s.acknowledge(a)
			if !strings.Contains(got, "first") && walltime < time.Minute {
				continue
			}
			want := strings.ReplaceAll(pattern, "%d", strconv.Itoa(int(walltime/time.Second)))
			if !strings.Contains(got, want) {
				t.Errorf("%s: got %s, want %s", id, got, want)
			}
			break
		}
	}
}
