package api

import (
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
