package schedd

import (
	"testing"

	"github.com/roost-batch/roost/internal/wire"
)

// awaitArchived waits until all jobs have left the queue for the history.
func (p *testPool) awaitArchived() {
	p.Helper()
	for ctx := p.ctx(); p.recoveredQueue().Len() > 0; {
		if ctx.Err() != nil {
			p.Fatal("jobs are still in the queue")
		}
	}
}

// TestRetryEndedJob checks that a failed job can run again for as long as the history
// knows it. The job has its number, its events and its next attempt, also after a
// restart. Its record in the history covers both of its runs.
func TestRetryEndedJob(t *testing.T) {
	for _, verb := range []wire.ActRequest_Verb{wire.ActRequest_RETRY, wire.ActRequest_RERUN} {
		p := newPool(t)
		p.stop()
		p.addEndedJobs("a", "b")
		p.start()
		if r := p.act(verb, "1"); r.GetError() != "" || r.GetTasks() != 1 {
			t.Fatalf("%v: got %v", verb, r)
		}
		const want = "returned retried"
		if got := p.jobTimeline("1"); got != want {
			t.Errorf("%v: what happened: %s, want %s", verb, got, want)
		}
		p.stop()
		p.start()
		if r := p.act(wire.ActRequest_HOLD, "1"); r.GetError() != "" {
			t.Errorf("%v: after a restart it is not in the queue: %v", verb, r)
		}
		if r := p.act(wire.ActRequest_REMOVE, "1"); r.GetError() != "" {
			t.Fatalf("%v: %v", verb, r)
		}
		p.awaitArchived()
		if got := p.jobTimeline("1"); got != want+" held removed" {
			t.Errorf("%v: what the history knows: %s", verb, got)
		}
		if r := p.act(verb, "1"); r.GetError() != "" {
			t.Errorf("%v: a second time: %v", verb, r)
		}
	}
}
