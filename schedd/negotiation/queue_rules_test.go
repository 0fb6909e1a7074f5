package negotiation

import (
	"testing"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// TestStopped checks which tasks may not be put on existing claims. They are the tasks of
// stopped queues, those of routing queues, and all tasks while the pool is stopped.
func TestStopped(t *testing.T) {
	p := &wire.Policy{Queues: []*wire.JobQueue{{Name: "work", Enabled: true}, {Name: "still", Stopped: true},
		{Name: "in", Routing: true}}}
	l := &LeaderConn{stream: &leaderSession{admission: quotaAdmission{policy: p}}}
	for _, all := range []bool{false, true} {
		p.All = &wire.JobQueue{Stopped: all}
		for name, want := range map[string]bool{"work": all, "": all, "unknown": all, "still": true, "in": true} {
			if got := l.IsRequestStopped(&queue.Request{Queue: name}); got != want {
				t.Errorf("queue %q, the pool stopped %v: got %v, want %v", name, all, got, want)
			}
		}
	}
	if l.stream = nil; l.IsRequestStopped(&queue.Request{Queue: "still"}) {
		t.Error("without a negotiator nobody knows that a queue is stopped")
	}
}
