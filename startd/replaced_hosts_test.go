package startd

import (
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/wire"
)

// TestReplacedHosts checks that a job that has released machines finds that in its host
// files. Messages from another schedd have no effect, and a job without such files gets
// none.
func TestReplacedHosts(t *testing.T) {
	t.Parallel()
	p := newTestStartd(t)
	s, other := p.connect("host1", 1), p.connect("host2", 1)
	claim := s.claim()
	send := func(s *fakeSchedd, a *wire.AttemptRef, nodes ...string) {
		s.send(&wire.ToStartd{Of: &wire.ToStartd_HostFiles{HostFiles: &wire.HostFiles{Attempt: a, NodeFile: nodes,
			GpuFile: []string{"n1-gpu0"}}}})
	}
	program := s.shell(`until grep -q n9 $PBS_NODEFILE || [ $(wc -l < $PBS_NODEFILE) = 2 ]; do sleep 0.05; done
		cat $PBS_NODEFILE $PBS_GPUFILE`)
	program.NodeFile = []string{"n1", "n1", "n2"}
	a := s.activate(claim, program, false)
	s.awaitStarted(a)
	send(other, a, "n9")
	send(s, a, "n1", "n3")
	x := s.awaitOnlyExit(a)
	if got := string(x.GetStdout()); got != "n1\nn3\nn1-gpu0\n" {
		t.Errorf("got %q, %v", got, x.GetStatus())
	}
	s.acknowledge(a)

	a = s.activate(claim, s.shell(`sleep 0.3; echo "${PBS_NODEFILE-none}"`), false)
	s.awaitStarted(a)
	send(s, a, "n1")
	if x := s.awaitOnlyExit(a); !strings.HasPrefix(string(x.GetStdout()), "none") {
		t.Errorf("got %q, %v", x.GetStdout(), x.GetStatus())
	}
}
