package graph

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// TestNodeSize holds the size of a node, of which a flow may have millions.
func TestNodeSize(t *testing.T) {
	if size := unsafe.Sizeof(Node{}); size != 48 {
		t.Errorf("a node has %d bytes, want 48", size)
	}
}

// naiveGraph is a graph as maps of names.
type naiveGraph struct {
	names    []string
	children map[string]map[string]bool // whether the arc is weak
}

func (n *naiveGraph) add(parent, child string, weak bool) {
	if n.children[parent] == nil {
		n.children[parent] = map[string]bool{}
	}
	if before, ok := n.children[parent][child]; ok {
		weak = weak && before
	}
	n.children[parent][child] = weak
}

// hasCycle removes nodes without parents until there are none.
func (n *naiveGraph) hasCycle() bool {
	left := map[string]bool{}
	for _, name := range n.names {
		left[name] = true
	}
	for len(left) > 0 {
		waits := map[string]bool{}
		for parent := range left {
			for child := range n.children[parent] {
				waits[child] = true
			}
		}
		before := len(left)
		for name := range left {
			if !waits[name] {
				delete(left, name)
			}
		}
		if len(left) == before {
			return true
		}
	}
	return false
}

// depth is the number of arcs of the longest path to a node.
func (n *naiveGraph) depth(name string, known map[string]int) int {
	if d, ok := known[name]; ok {
		return d
	}
	most := 0
	for parent, children := range n.children {
		if _, ok := children[name]; ok {
			most = max(most, n.depth(parent, known)+1)
		}
	}
	known[name] = most
	return most
}

// TestRandomGraphs compares graphs with naive ones of maps.
func TestRandomGraphs(t *testing.T) {
	cycles := 0
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		g, naive := New(), &naiveGraph{children: map[string]map[string]bool{}}
		for i := range 1 + random.IntN(40) {
			name := fmt.Sprint("n", i)
			naive.names = append(naive.names, name)
			if id, isNew, err := g.AddNode([]byte(name), JobNode); int(id) != i || !isNew || err != nil {
				t.Fatalf("node %d: got %d, %v, %v", i, id, isNew, err)
			}
		}
		count := len(naive.names)
		for range random.IntN(80) {
			a, b, weak := random.IntN(count), random.IntN(count), random.IntN(4) == 0
			if random.IntN(60) > 0 {
				a, b = min(a, b), max(a, b)
			}
			if a == b && random.IntN(20) > 0 {
				continue
			}
			naive.add(naive.names[a], naive.names[b], weak)
			if err := g.Depend([]NodeID{NodeID(a)}, []NodeID{NodeID(b)}, weak, true); err != nil {
				t.Fatal(err)
			}
		}
		cycle := g.Finish()
		if (cycle != nil) != naive.hasCycle() {
			t.Fatalf("seed %d: got the cycle %v, want one: %v", seed, cycle, naive.hasCycle())
		}
		compareArcs(t, seed, g, naive)
		if cycle != nil {
			cycles++
			checkCycle(t, seed, g, cycle)
			continue
		}
		known := map[string]int{}
		for id, n := range g.Nodes() {
			if want := naive.depth(g.Name(id), known); int(n.Depth) != want {
				t.Fatalf("seed %d: node %d has the depth %d, want %d", seed, id, n.Depth, want)
			}
		}
	}
	if cycles < 25 || cycles > 175 {
		t.Errorf("%d of 200 graphs have a cycle", cycles)
	}
}

func compareArcs(t *testing.T, seed uint64, g *Graph, naive *naiveGraph) {
	t.Helper()
	arcs, parents := 0, map[NodeID]uint32{}
	for id := range g.Nodes() {
		for _, a := range g.Children(id) {
			weak, ok := naive.children[g.Name(id)][g.Name(a.Child())]
			if !ok || weak != a.IsWeak() {
				t.Fatalf("seed %d: the arc from %d to %d, weak %v", seed, id, a.Child(), a.IsWeak())
			}
			arcs++
			parents[a.Child()]++
		}
	}
	want := 0
	for _, list := range naive.children {
		want += len(list)
	}
	if arcs != want || g.Arcs() != want {
		t.Fatalf("seed %d: got %d arcs, counted as %d, want %d", seed, arcs, g.Arcs(), want)
	}
	for id, n := range g.Nodes() {
		if n.Parents != parents[id] {
			t.Fatalf("seed %d: node %d has %d parents, want %d", seed, id, n.Parents, parents[id])
		}
	}
}

// checkCycle holds that there is an arc from each node of a cycle to the next one.
func checkCycle(t *testing.T, seed uint64, g *Graph, cycle []NodeID) {
	t.Helper()
	for i, id := range cycle {
		next := cycle[(i+1)%len(cycle)]
		if !slices.ContainsFunc(g.Children(id), func(a Arc) bool { return a.Child() == next }) {
			t.Fatalf("seed %d: %v is no cycle: there is no arc from %d to %d", seed, cycle, id, next)
		}
	}
}

// TestJoins holds that arcs from many nodes to many cost their sum.
func TestJoins(t *testing.T) {
	const n = 1000
	g := New()
	var parents, children []NodeID
	for i := range 2 * n {
		id, _, _ := g.AddNode(fmt.Append(nil, i), JobNode)
		if i < n {
			parents = append(parents, id)
		} else {
			children = append(children, id)
		}
	}
	if err := g.Depend(parents, children, false, true); err != nil {
		t.Fatal(err)
	}
	if cycle := g.Finish(); cycle != nil {
		t.Fatal(cycle)
	}
	s := g.Statistics()
	if s.Arcs != 2*n || s.ByKind[JoinNode] != 1 || s.ByKind[JobNode] != 2*n || s.Height != 3 || s.Width != n ||
		!slices.Equal(s.WidthByDepth, []int{n, 1, n}) {
		t.Errorf("got %+v", s)
	}
	join := g.Children(parents[7])
	if len(join) != 1 || len(g.Children(join[0].Child())) != n || g.Name(join[0].Child()) != "" {
		t.Errorf("got the children %v", join)
	}
}

// TestNames holds that names are found among many, and that a name is there once.
func TestNames(t *testing.T) {
	g, texts := New(), NewTextTable()
	const n = 50_000
	for i := range n {
		name := fmt.Append(nil, "node-", i*7919%n)
		id, isNew, err := g.AddNode(name, JobNode)
		if err != nil || !isNew || int(id) != i {
			t.Fatalf("%s: got %d, %v, %v", name, id, isNew, err)
		}
		if id, ok := texts.Add(name); !ok || int(id) != i+1 {
			t.Fatalf("%s: got the text %d", name, id)
		}
	}
	for i := range n {
		name := fmt.Append(nil, "node-", i*7919%n)
		id, found := g.Find(name)
		text, known := texts.Find(name)
		if !found || !known || int(id) != i || int(text) != i+1 || texts.Text(text) != string(name) {
			t.Fatalf("%s: got %d and %d", name, id, text)
		}
		if again, isNew, _ := g.AddNode(name, JobNode); isNew || again != id {
			t.Fatalf("%s: got another node %d", name, again)
		}
	}
	if _, found := g.Find([]byte("node")); found {
		t.Error("a name was found that no node has")
	}
	if _, _, err := g.AddNode(make([]byte, MaxNameSize+1), JobNode); err == nil {
		t.Error("a name was accepted that is too long")
	}
	if _, ok := texts.Add(make([]byte, MaxTextSize+1)); ok {
		t.Error("a text was accepted that is too long")
	}
	if id, ok := texts.Add(make([]byte, MaxTextSize)); !ok || len(texts.Bytes(id)) != MaxTextSize {
		t.Error("a text was refused that fills a page")
	}
}

// TestLongCycle holds that a cycle of many nodes is found without a deep stack.
func TestLongCycle(t *testing.T) {
	g := New()
	const n = 100_000
	for i := range n {
		g.AddNode(fmt.Append(nil, i), JobNode)
	}
	for i := range n {
		g.AddArc(NodeID(i), NodeID((i+1)%n), i%2 == 0)
	}
	if cycle := g.Finish(); len(cycle) != n {
		t.Errorf("the cycle has %d nodes, want %d", len(cycle), n)
	}
}
