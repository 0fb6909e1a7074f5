package pool

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/schedd/queue"
)

// cellQueueName is the name of the cell's queue, and so the host in the ids of its jobs.
const cellQueueName = "cell"

// cellQueue is the queue of the cell: its members, and what is committed.
type cellQueue struct {
	jobReporter
	members   []*cellMember
	committed *queue.Queue // after all batches that any member has applied
	batches   uint64       // number of these
	coreCount uint32       // number of schedds that members have started
}

func newCellQueue(p *Pool, members int) *cellQueue {
	c := &cellQueue{committed: queue.New(cellQueueName)}
	c.jobReporter = newJobReporter(p, cellQueueName, func() *queue.Queue { return c.committed })
	for i := range members {
		c.members = append(c.members, newCellMember(p, c, i))
	}
	return c
}

// observeBatch reports a batch that a member applies, if no other one has done so before.
func (c *cellQueue) observeBatch(number uint64, events []queue.JobEvent) {
	if number != c.batches {
		return
	}
	c.batches++
	for i := range events {
		c.committed.Apply(events[i])
		c.reportCommitted(events[i : i+1])
	}
}

// reportState reports to the observer the state of the jobs of a batch at a member that
// follows.
func (c *cellQueue) reportState(m *cellMember, number uint64, events []queue.JobEvent) {
	if c.sim.cfg.Observe == nil {
		return
	}
	sum, seen := crc32.NewIEEE(), map[uint64]bool{}
	for i := range events {
		if seq := events[i].Job; !seen[seq] {
			seen[seq] = true
			snapshot, _ := m.follower.Snapshot(seq)
			sum.Write(snapshot)
		}
	}
	c.sim.observe(audit.Event{Type: audit.Digested, Key: cellQueueName, Node: m.name, Entry: number,
		Digest: uint64(sum.Sum32())})
}

// leader returns the member that acts for the queue, nil if there is none. If several
// believe that they do, n chooses.
func (c *cellQueue) leader(n int) *cellMember {
	for i := range c.members {
		m := c.members[(n+i)%len(c.members)]
		if m.isUp && m.core != nil && m.nextDaemonTime() <= m.pool.loop.Now() {
			return m
		}
	}
	return nil
}

// encodeEntry returns an entry of the log of the cell's queue. It has the number of a
// batch, and its events as in the log of a schedd.
func encodeEntry(number uint64, events []queue.JobEvent) []byte {
	return encodeBatch(binary.AppendUvarint(nil, number), events)
}

func decodeEntry(text []byte) (number uint64, batch []byte) {
	number, n := binary.Uvarint(text)
	if n <= 0 {
		panic(fmt.Sprintf("an entry of the cell's queue without a number: %x", text))
	}
	return number, text[n:]
}
