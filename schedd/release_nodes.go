package schedd

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// nodeRelease reads which machines a job is to give back.
func nodeRelease(m *wire.NodeRelease) queue.NodeRelease {
	r := queue.NodeRelease{Nodes: m.GetNodes(), Keep: int(m.GetKeep())}
	for _, chunk := range m.GetChunks() {
		r.Chunks = append(r.Chunks, int(chunk))
	}
	return r
}

// releasedTasks counts the tasks whose machines an event gives back.
func releasedTasks(e queue.JobEvent) (n uint32) {
	for _, r := range e.Ranges {
		n += uint32(r.Last - r.First + 1)
	}
	return n
}

// sendHostFiles tells the node of an attempt which machines its job has now. A node that
// is away is told on its next session.
func (s *Schedd) sendHostFiles(a roost.AttemptID) {
	hosts := s.queue.HostsOfAttempt(a)
	if len(hosts) == 0 {
		return
	}
	s.sendTo(s.queue.NodeOf(a), &wire.ToStartd{Of: &wire.ToStartd_HostFiles{HostFiles: &wire.HostFiles{
		Attempt: attemptRef(a), NodeFile: pbsNodeFile(hosts), GpuFile: s.pbsGPUFile(hosts),
	}}})
}
