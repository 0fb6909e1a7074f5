package queue

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost/schedd/flow/graph"
	"github.com/roost-batch/roost/schedd/flow/jobstate"
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
	d := newTestQueue(t)
	id := d.submitFlow(randomFlowPlan(t, rng))
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
		d.endAnyPart(rng, seed)
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

// endAnyPart ends the job of a part, if there is one.
func (d *testQueue) endAnyPart(rng *rand.Rand, seed uint64) {
	var open []*job
	for _, seq := range slices.Sorted(maps.Keys(d.queue.jobs)) {
		if j := d.queue.jobs[seq]; j.part != nil && !j.isFinal() {
			open = append(open, j)
		}
	}
	if len(open) > 0 {
		j := open[rng.IntN(len(open))]
		d.runTask(j.id("h"), eventlog.AttemptExit{Code: flowCode(seed, j.part)})
	}
}

// TestJobstateLog runs random flows, and stops the writer of their jobstate logs in the
// middle of what it writes. After a restart each line is in the file once.
func TestJobstateLog(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 11))
		d := newTestQueue(t)
		p := randomFlowPlan(t, rng)
		p.Reports.JobstateLog = "/home/alice/jobstate.log"
		id := d.submitFlow(p)
		file, written, lines := "", 0, 0
		var all []eventlog.JobEvent
		take := func() {
			for _, e := range JobstateEntries(d.queue) {
				file += strings.Join(e.Lines, "\n") + "\n"
				lines += len(e.Lines)
			}
		}
		for step := 0; !d.queue.jobs[id.Seq].isFinal() && step < 2000; step++ {
			d.advance()
			d.endAnyPart(rng, seed)
			all, d.log = append(all, d.log...), nil
			switch rng.IntN(6) {
			case 0:
				take()
			case 1:
				take()
				NoteJobstateWritten(d.queue, id.Seq, lines)
				written, lines = len(file), 0
			case 2:
				take()
				file = file[:written+rng.IntN(len(file)-written+1)]
				if rng.IntN(2) == 0 {
					d.queue = d.restoredCopy()
				} else {
					d.queue = New("h")
					for _, e := range all {
						d.queue.Apply(e)
					}
				}
				for _, e := range JobstateEntries(d.queue) {
					file += jobstate.Missing(file, e.Lines)
					lines = len(e.Lines)
				}
			}
		}
		take()
		again := New("h")
		for _, e := range all {
			again.Apply(e)
		}
		want := strings.Join(JobstateEntries(again)[0].Lines, "\n") + "\n"
		if file != want || !strings.HasSuffix(want, " ***\n") {
			t.Fatalf("seed %d: the file has\n%s\nwant\n%s", seed, file, want)
		}
	}
}

// randomFlowPlan returns a plan of some nodes, some of which have scripts or retries.
func randomFlowPlan(t *testing.T, rng *rand.Rand) *flowPlan {
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
	return p
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
