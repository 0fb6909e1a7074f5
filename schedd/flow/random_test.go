package flow

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/roost-batch/roost/schedd/flow/graph"
)

// naiveNode is a node of the naive executor.
type naiveNode struct {
	strong, weak []int // parents
	retry        int
	rules        NodeRules
	done         bool
}

// randomCode returns what a part of a node ends with. It depends on nothing else.
func randomCode(seed uint64, node, attempt int, part NodePart) int {
	rng := rand.New(rand.NewPCG(seed, uint64(node)<<20|uint64(attempt)<<4|uint64(part)))
	if rng.IntN(4) > 0 {
		return 0
	}
	return 1 + rng.IntN(3)
}

// naiveStates runs the nodes one after another, parents first, and returns their states.
func naiveStates(seed uint64, nodes []naiveNode, alwaysPost bool) []NodeState {
	states := make([]NodeState, len(nodes))
	for i, n := range nodes {
		states[i] = Failed
		if n.done {
			states[i] = Done
			continue
		}
		for _, p := range n.strong {
			if states[p] != Done {
				states[i] = Futile
			}
		}
		for _, p := range n.weak {
			if states[p] == Futile {
				states[i] = Futile
			}
		}
		for attempt := 0; states[i] == Failed && attempt <= n.retry; attempt++ {
			code, decided := 0, false
			if n.rules.HasPre {
				code = randomCode(seed, i, attempt, PrePart)
				if code != 0 && n.rules.PreSkip.matches(code) {
					code, decided = 0, true
				}
			}
			if !decided && (code == 0 || alwaysPost && n.rules.HasPost) {
				if code == 0 {
					code = randomCode(seed, i, attempt, JobPart)
				}
				if n.rules.HasPost {
					code = randomCode(seed, i, attempt, PostPart)
				}
			}
			if code == 0 {
				states[i] = Done
			} else if n.rules.UnlessExit.matches(code) {
				break
			}
		}
	}
	return states
}

// randomFlow returns a flow and the same for the naive executor.
func randomFlow(t *testing.T, rng *rand.Rand) (*testFlow, []naiveNode) {
	f := newTestFlow(t)
	nodes := make([]naiveNode, 1+rng.IntN(30))
	f.Categories = append(f.Categories, 1+rng.IntN(3))
	f.AlwaysRunPost, f.DepthFirst = rng.IntN(2) == 0, rng.IntN(2) == 0
	for i := range nodes {
		id := f.jobs(fmt.Sprint("n", i))[0]
		n := &nodes[i]
		n.retry = rng.IntN(3)
		n.rules = NodeRules{HasPre: rng.IntN(3) == 0, HasPost: rng.IntN(3) == 0,
			PreSkip: ExitRule{1, rng.IntN(4) == 0}, UnlessExit: ExitRule{2, rng.IntN(4) == 0}}
		f.rule(id, n.rules)
		node := f.Graph.Node(id)
		node.Retry, node.Priority, node.Category = uint16(n.retry), int16(rng.IntN(3)), uint16(rng.IntN(2))
		if n.done = rng.IntN(12) == 0; n.done {
			node.Flags |= graph.DoneFlag
		}
	}
	for range rng.IntN(2 * len(nodes)) {
		a, b := rng.IntN(len(nodes)), rng.IntN(len(nodes))
		if a == b {
			continue
		}
		parent, child, weak := min(a, b), max(a, b), rng.IntN(4) == 0
		f.Graph.AddArc(graph.NodeID(parent), graph.NodeID(child), weak)
		if weak {
			nodes[child].weak = append(nodes[child].weak, parent)
		} else {
			nodes[child].strong = append(nodes[child].strong, parent)
		}
	}
	return f, nodes
}

// randomRunner runs a flow in a random order. Sometimes it begins again from the recorded
// events, or from a snapshot and the events after it, as after a crash.
type randomRunner struct {
	*testRun
	rng    *rand.Rand
	seed   uint64
	limits Limits
	events []FlowEvent

	snapshot []byte             // the state after the first of the events
	recorded int                // how many
	done     map[PartBegun]bool // parts that were begun: nothing is begun twice
}

func (r *randomRunner) record(e FlowEvent) {
	r.events = append(r.events, e)
	r.apply(e)
}

func (r *randomRunner) step() {
	switch k := r.rng.IntN(20); {
	case k == 0:
		again, first := New(r.definition, Limits{}), 0
		if r.snapshot != nil && r.rng.IntN(2) == 0 {
			var err error
			if again, err = Restore(r.definition, r.snapshot); err != nil {
				r.t.Fatal(err)
			}
			first = r.recorded
		}
		for _, e := range r.events[first:] {
			again.Apply(e)
		}
		for id := range r.definition.Graph.Nodes() {
			if again.State(id) != r.State(id) || again.Attempt(id) != r.Attempt(id) || again.left[id] != r.left[id] {
				r.t.Fatalf("node %d is %v, and %v after a replay", id, r.State(id), again.State(id))
			}
		}
		if err := again.Check(); err != nil || string(again.Snapshot()) != string(r.Snapshot()) {
			r.t.Fatalf("after a replay: %v, snapshots %x and %x", err, again.Snapshot(), r.Snapshot())
		}
		r.Run = again
	case k == 1:
		r.record(FlowHalted{r.rng.IntN(2) == 0})
		r.snapshot, r.recorded = r.Snapshot(), len(r.events)
	case k == 2:
		r.limits = Limits{Jobs: r.rng.IntN(4), Pre: r.rng.IntN(3), Post: r.rng.IntN(3)}
		r.record(LimitsChanged{r.limits})
	case k < 12 || len(r.open) == 0:
		if e := r.Next(); e != nil {
			if b, ok := e.(PartBegun); ok {
				if r.done[b] {
					r.t.Fatalf("%+v was begun before", b)
				}
				r.done[b] = true
				r.open = append(r.open, b)
			}
			r.record(e)
			r.checkLimits()
		} else if len(r.open) == 0 && r.IsHalted() {
			r.record(FlowHalted{false})
		}
	default:
		i := r.rng.IntN(len(r.open))
		b := r.open[i]
		r.open = append(r.open[:i], r.open[i+1:]...)
		r.record(PartEnded{b.Node, b.Attempt, b.Part, randomCode(r.seed, int(b.Node), b.Attempt, b.Part), ""})
	}
}

// checkLimits checks the limits after something has begun.
func (r *randomRunner) checkLimits() {
	e, ok := r.events[len(r.events)-1].(PartBegun)
	if !ok {
		return
	}
	limit := [...]int{r.limits.Pre, r.limits.Jobs, r.limits.Post}[e.Part]
	if limit > 0 && r.running[e.Part] > limit {
		r.t.Fatalf("%d parts of kind %v run, and %d may", r.running[e.Part], e.Part, limit)
	}
	if n := r.definition.Graph.Node(e.Node); e.Part == JobPart && n.Category == 1 &&
		r.categoryJobs[1] > r.definition.Categories[1] {
		r.t.Fatalf("%d jobs of the category are in the queue", r.categoryJobs[1])
	}
}

// TestRandomFlows runs random flows in random orders, through restarts, halts and changes
// of the limits. Each node ends as the naive executor says.
func TestRandomFlows(t *testing.T) {
	seeds := uint64(2000)
	if testing.Short() {
		seeds = 300
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 1))
		f, nodes := randomFlow(t, rng)
		r := &randomRunner{testRun: f.begin(Limits{}), rng: rng, seed: seed, done: map[PartBegun]bool{}}
		steps := 0
		for ; r.Phase() != Ended; steps++ {
			if steps > 100_000 {
				t.Fatalf("seed %d: the flow does not end: %v", seed, r.Counts())
			}
			r.step()
		}
		want, failed := naiveStates(seed, nodes, f.AlwaysRunPost), false
		for i, s := range want {
			if got := r.State(graph.NodeID(i)); got != s {
				t.Fatalf("seed %d: node %d is %v, want %v", seed, i, got, s)
			}
			failed = failed || s != Done
		}
		if s, _ := r.Status(); failed != (s == StatusNodeFailed) {
			t.Fatalf("seed %d: the flow has status %d", seed, s)
		}
	}
}

// TestRandomRemovals removes random flows, or has them abort, at random times. Each ends,
// its FINAL node runs once after all else, or twice if it ran already, and a retry of the
// flow runs no node that is done.
func TestRandomRemovals(t *testing.T) {
	for seed := range uint64(1000) {
		rng := rand.New(rand.NewPCG(seed, 2))
		f, nodes := randomFlow(t, rng)
		for range rng.IntN(2) {
			f.Rules[f.Graph.Node(graph.NodeID(rng.IntN(len(nodes)))).Settings].AbortOn = ExitRule{3, true}
		}
		final := f.add("end", graph.FinalNode)
		for i := range rng.IntN(3) {
			f.add(fmt.Sprint("helper", i), graph.ServiceNode)
		}
		r := &randomRunner{testRun: f.begin(Limits{}), rng: rng, seed: seed, done: map[PartBegun]bool{}}
		removal := rng.IntN(60)
		for steps := 0; r.Phase() != Ended; steps++ {
			if steps > 100_000 {
				t.Fatalf("seed %d: the flow does not end: %v, %v", seed, r.Phase(), r.Counts())
			}
			if steps == removal {
				r.record(FlowRemoved{})
			}
			r.step()
		}
		r.checkFinal(final)
		done := r.DoneNodes()
		r.done = map[PartBegun]bool{}
		if r.Apply(FlowRetried{}); r.Phase() == Ended {
			t.Fatalf("seed %d: a retry does nothing", seed)
		}
		for _, id := range done {
			if r.State(id) != Done {
				t.Fatalf("seed %d: node %d was done, and is %v", seed, id, r.State(id))
			}
		}
	}
}

// checkFinal checks when the FINAL node has run.
func (r *randomRunner) checkFinal(final graph.NodeID) {
	r.t.Helper()
	attempts, again := map[int]bool{}, false
	for _, e := range r.events {
		switch e := e.(type) {
		case PartBegun:
			if e.Node == final {
				attempts[e.Attempt] = true
			} else if len(attempts) > 0 {
				r.t.Fatalf("seed %d: %s begins after FINAL", r.seed, r.name(e.Node))
			}
		case FlowRemoved:
			again = again || len(attempts) > 0
		}
	}
	if n := len(attempts); n != 1 && !(n == 2 && again) {
		r.t.Fatalf("seed %d: FINAL has run %d times", r.seed, n)
	}
}

// layeredFlow returns a flow of width nodes in each of depth layers. Each node waits for
// two of the layer before.
func layeredFlow(b *testing.B, width, depth int, noop bool) *Definition {
	f := newTestFlow(b)
	for i := range width * depth {
		id := f.jobs(fmt.Sprintf("node%07d", i))[0]
		if noop {
			f.Graph.Node(id).Flags |= graph.NoopFlag
		}
		if i >= width {
			f.Graph.AddArc(id-graph.NodeID(width), id, false)
			f.Graph.AddArc(graph.NodeID(i-width-i%width+(i+1)%width), id, false)
		}
	}
	f.Graph.Finish()
	return f.Definition
}

// BenchmarkNoop runs a flow of 1,000,000 nodes that run nothing, with 2,000,000 arcs.
func BenchmarkNoop(b *testing.B) {
	d := layeredFlow(b, 100_000, 10, true)
	for b.Loop() {
		r := New(d, Limits{Jobs: 1000, IdleTasks: 1000})
		for e := r.Next(); e != nil; e = r.Next() {
			r.Apply(e)
		}
		if r.Phase() != Ended {
			b.Fatal(r.Phase(), r.Counts())
		}
	}
	b.ReportMetric(float64(b.N)*1e6/b.Elapsed().Seconds(), "nodes/s")
}

// BenchmarkFutile lets the first layer of 1,000,000 nodes fail. All others wait for it.
func BenchmarkFutile(b *testing.B) {
	d := layeredFlow(b, 1000, 1000, false)
	for b.Loop() {
		b.StopTimer()
		r := New(d, Limits{})
		var begun []PartBegun
		for e := r.Next(); e != nil; e = r.Next() {
			r.Apply(e)
			begun = append(begun, e.(PartBegun))
		}
		b.StartTimer()
		for _, p := range begun {
			r.Apply(PartEnded{p.Node, p.Attempt, p.Part, 1, ""})
		}
		if r.Counts()[Futile] != 999_000 {
			b.Fatal(r.Counts())
		}
	}
}

// FuzzRestore reads damaged snapshots. Each is refused, or is a state that can be written
// again.
func FuzzRestore(f *testing.F) {
	t := newTestFlow(f)
	n := t.jobs("a", "b", "c")
	t.Graph.AddArc(n[0], n[1], false)
	t.Graph.Node(n[0]).Retry = 3
	t.rule(n[0], NodeRules{HasPre: true, HasPost: true})
	t.add("end", graph.FinalNode)
	r := t.begin(Limits{Jobs: 5, Categories: []int{-1, 3}})
	f.Add(r.Snapshot())
	r.start()
	f.Add(r.Snapshot())
	r.codes["a pre 0"] = 1
	r.endFirst()
	r.start()
	f.Add(r.Snapshot())
	r.apply(FlowRemoved{})
	f.Add(r.Snapshot())
	f.Fuzz(func(t *testing.T, data []byte) {
		again, err := Restore(r.definition, data)
		if err == nil {
			if _, err := Restore(r.definition, again.Snapshot()); err != nil {
				t.Fatal(err)
			}
		}
	})
}
