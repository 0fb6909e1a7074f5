package metrics

import "github.com/roost-batch/roost/internal/wire"

// ChunkCounters counts the parts of container images and packages that a machine gets
// from others and sends to them. It implements transfer.Counter.
type ChunkCounters struct {
	received, sent, failed *Counter
}

func newChunkCounters(r *Registry) *ChunkCounters {
	return &ChunkCounters{
		received: r.Counter("image_received_bytes_total",
			"Bytes of images and packages that came, from other machines and from the checkpoint server.",
			Label{Name: "source", Values: []string{"machine", "server"}}),
		sent: r.Counter("image_sent_bytes_total", "Bytes of images and packages that were sent to other machines."),
		failed: r.Counter("image_source_failures_total",
			"Other machines that did not send what was to come from them: wrong bytes, nothing in time, or a refusal.",
			Label{Name: "reason", Values: []string{"damaged", "slow", "busy", "missing", "other"}}),
	}
}

// Received counts bytes of a chunk that is right.
func (c *ChunkCounters) Received(bytes int, fromServer bool) {
	source := 0
	if fromServer {
		source = 1
	}
	c.received.Add(float64(bytes), source)
}

// Sent counts bytes of a chunk that was sent to another machine.
func (c *ChunkCounters) Sent(bytes int) { c.sent.Add(float64(bytes)) }

// Failed counts a source from which not all came.
func (c *ChunkCounters) Failed(outcome wire.ChunkResult_Outcome) {
	at := map[wire.ChunkResult_Outcome]int{
		wire.ChunkResult_OUTCOME_DAMAGED: 0, wire.ChunkResult_OUTCOME_SLOW: 1,
		wire.ChunkResult_OUTCOME_BUSY: 2, wire.ChunkResult_OUTCOME_MISSING: 3,
	}
	if i, ok := at[outcome]; ok {
		c.failed.Inc(i)
		return
	}
	c.failed.Inc(4)
}
