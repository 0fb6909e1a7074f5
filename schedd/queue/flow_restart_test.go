package queue

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/roost-batch/roost/schedd/flow/graph"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// flowCode is what a part of a node ends with in TestFlowRestarts.
func flowCode(seed uint64, p *FlowPart) int32 {
	rng := rand.New(rand.NewPCG(seed, uint64(p.Node)<<20|uint64(p.Attempt)<<4|uint64(p.Part)))
	if rng.IntN(4) > 0 {
		return 0
	}
	return int32(1 + rng.IntN(3))
}

// TestFlowRestarts runs random flows in queues that are restored from logs and snapshots.
// Some logs end between the job of a part and the word that it has begun. Each flow ends
// as without restarts, and no part has two jobs (F1, F7).
func TestFlowRestarts(t *testing.T) {
	restarts := 0
	for seed := range uint64(60) {
		calm, _ := runRandomFlow(t, seed, 0)
		wild, n := runRandomFlow(t, seed, 6)
		if calm != wild {
			t.Fatalf("seed %d: it ends as %s, and with restarts as %s", seed, calm, wild)
		}
		restarts += n
	}
	if restarts < 50 {
		t.Errorf("there were %d restarts", restarts)
	}
}

// runRandomFlow runs a random flow, and returns the states of its nodes at the end. One
// step in so many is a restart; 0: none is.
func runRandomFlow(t *testing.T, seed uint64, restartsIn int) (outcome string, restarts int) {
	rng := rand.New(rand.NewPCG(seed, 7))
	p := newFlowPlan(t)
	names := []string{}
	for i := range 2 + rng.IntN(12) {
		var parents []string
		for _, name := range names {
			if rng.IntN(3) == 0 {
				parents = append(parents, name)
			}
		}
		name := fmt.Sprint("n", i)
		n := p.node(name, parents...)
		n.Retry = uint16(rng.IntN(3))
		if rng.IntN(4) == 0 {
			n.Flags |= graph.NoopFlag
		}
		pre, post := "", ""
		if rng.IntN(3) == 0 {
			pre = "/bin/pre"
		}
		if rng.IntN(3) == 0 {
			post = "/bin/post"
		}
		p.scripts(n, pre, post)
		names = append(names, name)
	}
	d := newTestQueue(t)
	id := d.submitFlow(p)
	rng = rand.New(rand.NewPCG(seed, uint64(restartsIn)))
	for step := 0; !d.queue.jobs[id.Seq].isFinal(); step++ {
		if step > 2000 {
			t.Fatalf("seed %d: the flow does not end: %s", seed, d.queue.jobs[id.Seq].flow.reason())
		}
		if rng.IntN(2) == 0 {
			d.advance()
		}
		if restartsIn > 0 && rng.IntN(restartsIn) == 0 {
			d.restart(rng)
			restarts++
		}
		if rng.IntN(2) == 0 {
			d.advance()
		}
		var open []*job
		for _, j := range d.queue.jobs {
			if j.part != nil && !j.isFinal() {
				open = append(open, j)
			}
		}
		if len(open) == 0 {
			continue
		}
		j := open[rng.IntN(len(open))]
		d.runTask(j.id("h"), eventlog.AttemptExit{Code: flowCode(seed, j.part)})
	}
	var b strings.Builder
	_, _, err := d.queue.FlowNodes(id.Seq, 0, func(n FlowNode) bool {
		fmt.Fprintf(&b, "%s %v %d, ", n.Name, n.State, n.Attempt)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), restarts
}

// restart replaces the queue by one that is made from the log, whose end may be missing,
// or from snapshots.
func (d *testQueue) restart(rng *rand.Rand) {
	d.Helper()
	again := New("h")
	if rng.IntN(2) == 0 {
		last := d.log[len(d.log)-1]
		isBegin := last.Type == eventlog.Submitted && last.Submission.Flow == nil
		if (last.Type == eventlog.FlowAdvanced || isBegin) && rng.IntN(2) == 0 {
			d.log = d.log[:len(d.log)-1]
		}
		for _, e := range d.log {
			decoded, err := eventlog.DecodeEvent(eventlog.AppendEvent(nil, &e))
			if err != nil {
				d.Fatal(err)
			}
			again.Apply(decoded)
		}
	} else {
		for seq := range d.queue.jobs {
			b, _ := d.queue.Snapshot(seq)
			if err := again.RestoreSnapshot(b); err != nil {
				d.Fatal(err)
			}
		}
		again.RaiseLastSeq(d.queue.LastSeq())
		d.log = nil
		for seq := range d.queue.jobs {
			b, _ := d.queue.Snapshot(seq)
			d.log = append(d.log, eventlog.JobEvent{Type: eventlog.Returned, Time: d.now.UnixNano(), Job: seq,
				Snapshot: b})
		}
	}
	again.Check()
	d.queue = again
}
