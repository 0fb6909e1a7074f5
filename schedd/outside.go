package schedd

import (
	"time"

	"github.com/roost-batch/roost/schedd/history"
)

// outside is what the loop has done elsewhere, and does not wait for: what comes of it comes back as news.
type outside interface {
	// connect begins the upkeep of a session with a node, until the peer's stop is called.
	connect(node, address string) *peerNode
	// again has an op run in a later turn.
	again(op)
	// collect brings the output of an attempt home; outputStored follows.
	collect(*collection)
	// bury writes jobs into the history; moved is to be called then.
	bury(records []history.Record, before map[uint64]int)
}

// errands are those of a daemon.
type errands struct{ *Schedd }

func (e errands) connect(node, address string) *peerNode {
	return e.Schedd.connect(e.life, node, address)
}

func (e errands) again(o op) { go e.post(e.life, o) }

func (e errands) collect(c *collection) {
	ctx := e.beginTransfer(c.attempt)
	go func() {
		err := c.run(ctx)
		e.post(e.life, outputStored{c.peer.name, c.attempt, c.exited, err, c.kept})
	}()
}

func (e errands) bury(records []history.Record, before map[uint64]int) {
	go func() {
		err := e.fill(records)
		e.post(e.life, op(func(now time.Time) { e.moved(now, records, before, err) }))
	}()
}
