package pmi

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkTree exchanges the keys of 131,072 ranks through a tree. 64 ranks are on each
// of 2,048 nodes, with 200 bytes each, and a node has up to 16 children.
func BenchmarkTree(b *testing.B) {
	const nodes, ranks, arity = 2048, 64, 16
	value := strings.Repeat("v", 200-len("r131071"))
	for b.Loop() {
		tree := newTestTree(nodes, ranks, arity)
		for i, n := range tree.nodes {
			for r := range ranks {
				n.ApplyInput(r, []byte(initLine+fmt.Sprintf("cmd=put kvsname=kvs key=r%d value=%s\n", i*ranks+r, value)+
					"cmd=barrier_in\n"))
			}
			n.TakeReplies()
			tree.up(i, 0, n.TakeMessages()[0])
		}
		for i, n := range tree.nodes {
			if got := len(n.TakeReplies()); got != ranks {
				b.Fatalf("%d ranks of node %d have left the barrier", got, i)
			}
		}
		last := tree.nodes[nodes-1]
		last.ApplyInput(0, []byte("cmd=get kvsname=kvs key=r0\n"))
		if got := last.TakeReplies(); len(got) != 1 || !strings.Contains(got[0].Data, "rc=0") {
			b.Fatalf("got %+v", got)
		}
	}
}

// testTree is a collector at each node, for that node and its children.
type testTree struct {
	arity      int
	nodes      []*Node
	collectors []*Collector
}

func newTestTree(nodes, ranks, arity int) *testTree {
	t := &testTree{arity: arity}
	for i := range nodes {
		children := min(max(nodes-1-i*arity, 0), arity)
		t.nodes = append(t.nodes, NewNode(NodeSpec{KVSName: "kvs", FirstRank: i * ranks, Ranks: ranks,
			Size: nodes * ranks, Nodes: nodes}))
		t.collectors = append(t.collectors, NewCollector(1+children))
	}
	return t
}

// up gives a collector a message of a contributor. What comes of it goes to the parent,
// and from the root down to all.
func (t *testTree) up(at, contributor int, m Message) {
	for _, e := range t.collectors[at].Apply(contributor, m) {
		if at == 0 {
			t.down(e.Message, 0)
			continue
		}
		m = e.Message
		m.Kind = Barrier
		t.up((at-1)/t.arity, 1+(at-1)%t.arity, m)
	}
}

func (t *testTree) down(m Message, at int) {
	t.nodes[at].ApplyMessage(m)
	for child := at*t.arity + 1; child <= min((at+1)*t.arity, len(t.nodes)-1); child++ {
		t.down(m, child)
	}
}
