package graph

import (
	"fmt"
	"iter"
	"slices"
)

// Graph is a graph of nodes with names. Nodes and arcs are added first; Finish makes what
// the other methods need.
type Graph struct {
	pages []*nodePage
	count int
	names textSlab
	index hashIndex

	added    [][]addedArc // arcs in the order of AddArc, in pages; nil after Finish
	children []Arc        // of all nodes, those of one beside each other
}

// addedArc is an arc before Finish.
type addedArc struct {
	parent NodeID
	end    Arc
}

const arcsOfPage = 1 << 12

// New returns a graph without nodes.
func New() *Graph { return &Graph{index: newHashIndex()} }

// Len is the number of nodes, with join nodes.
func (g *Graph) Len() int { return g.count }

// Arcs is the number of arcs. Before Finish it counts those that were added twice.
func (g *Graph) Arcs() int {
	if n := len(g.added); n > 0 {
		return (n-1)*arcsOfPage + len(g.added[n-1])
	}
	return len(g.children)
}

// Node returns a node, whose exported fields its caller may change.
func (g *Graph) Node(id NodeID) *Node { return &g.pages[id/nodesOfPage][id%nodesOfPage] }

// Nodes are all nodes in the order of their numbers.
func (g *Graph) Nodes() iter.Seq2[NodeID, *Node] {
	return func(yield func(NodeID, *Node) bool) {
		for i := range g.count {
			if !yield(NodeID(i), g.Node(NodeID(i))) {
				return
			}
		}
	}
}

// NameBytes returns the name of a node, which must not be changed. Join nodes have none.
func (g *Graph) NameBytes(id NodeID) []byte {
	n := g.Node(id)
	return g.names.text(n.nameStart, uint32(n.nameSize))
}

// Name returns the name of a node. Join nodes have none.
func (g *Graph) Name(id NodeID) string { return string(g.NameBytes(id)) }

// Find returns the node of a name.
func (g *Graph) Find(name []byte) (NodeID, bool) {
	number, _, ok := g.index.find(g.index.hash(name), func(n uint32) bool {
		return string(g.NameBytes(NodeID(n))) == string(name)
	})
	return NodeID(number), ok
}

// MaxNameSize bounds the name of a node in bytes.
const MaxNameSize = 4096

// AddNode adds a node, and reports whether the name is new. Where it is not, it returns
// the node that has it. It returns an error if there is no room for another node.
func (g *Graph) AddNode(name []byte, kind NodeKind) (id NodeID, isNew bool, err error) {
	hash := g.index.hash(name)
	number, slot, ok := g.index.find(hash, func(n uint32) bool {
		return string(g.NameBytes(NodeID(n))) == string(name)
	})
	if ok {
		return NodeID(number), false, nil
	}
	if len(name) > MaxNameSize {
		return 0, false, fmt.Errorf("the name has %d bytes, and at most %d are allowed", len(name), MaxNameSize)
	}
	start, ok := g.names.add(name)
	if !ok || g.count == MaxNodes {
		return 0, false, fmt.Errorf("there are more than %d nodes, or names of more than %d GiB", MaxNodes,
			maxSlabPages*slabPage>>30)
	}
	id = g.newNode()
	*g.Node(id) = Node{nameStart: start, nameSize: uint16(len(name)), Kind: kind}
	g.index.put(slot, hash, uint32(id))
	return id, true, nil
}

func (g *Graph) newNode() NodeID {
	if g.count%nodesOfPage == 0 {
		g.pages = append(g.pages, new(nodePage))
	}
	g.count++
	return NodeID(g.count - 1)
}

// AddJoin adds a join node.
func (g *Graph) AddJoin() NodeID {
	id := g.newNode()
	g.Node(id).Kind = JoinNode
	return id
}

// Depend makes each of the children wait for each of the parents. Neither list has a node
// twice. With joins there is a join node between them if both lists have several.
func (g *Graph) Depend(parents, children []NodeID, weak, joins bool) error {
	if joins && len(parents) > 1 && len(children) > 1 {
		if g.count == MaxNodes {
			return fmt.Errorf("there are more than %d nodes with the join nodes", MaxNodes)
		}
		join := g.AddJoin()
		for _, p := range parents {
			g.AddArc(p, join, weak)
		}
		parents, weak = []NodeID{join}, false
	}
	if g.Arcs()+len(parents)*len(children) > maxArcs {
		return fmt.Errorf("there are more than %d arcs", maxArcs)
	}
	for _, p := range parents {
		for _, c := range children {
			g.AddArc(p, c, weak)
		}
	}
	return nil
}

// maxArcs bounds the number of arcs, which 32 bits count.
const maxArcs = 1 << 30

// AddArc makes child wait for parent.
func (g *Graph) AddArc(parent, child NodeID, weak bool) {
	last := len(g.added) - 1
	if last < 0 || len(g.added[last]) == arcsOfPage {
		g.added, last = append(g.added, make([]addedArc, 0, arcsOfPage)), last+1
	}
	g.added[last] = append(g.added[last], addedArc{parent, newArc(child, weak)})
	g.Node(parent).arcs++
	g.Node(child).Parents++
}

// IsInitial reports whether no arc to the node has been added.
func (g *Graph) IsInitial(id NodeID) bool { return g.Node(id).Parents == 0 }

// IsTerminal reports whether no arc from the node has been added.
func (g *Graph) IsTerminal(id NodeID) bool { return g.Node(id).arcs == 0 }

// Finish builds the array of children. An arc that was added twice is there once, and a
// strong one replaces a weak one. Then it sets the depth of each node. It returns the
// nodes of a cycle; nil if there is none.
func (g *Graph) Finish() (cycle []NodeID) {
	g.fillChildren()
	g.added = nil
	g.compactChildren()
	return g.setDepths()
}

func (g *Graph) fillChildren() {
	g.children = make([]Arc, g.Arcs())
	first := uint32(0)
	for _, n := range g.Nodes() {
		n.firstArc = first
		first += n.arcs
		n.arcs = 0
	}
	for i, page := range g.added {
		for _, a := range page {
			n := g.Node(a.parent)
			g.children[n.firstArc+n.arcs] = a.end
			n.arcs++
		}
		g.added[i] = nil
	}
}

// compactChildren sorts the children of each node and removes what is there twice.
func (g *Graph) compactChildren() {
	end := uint32(0)
	for _, n := range g.Nodes() {
		list := g.children[n.firstArc : n.firstArc+n.arcs]
		if len(list) > 1 {
			slices.Sort(list)
		}
		n.firstArc = end
		last := ^NodeID(0)
		for _, a := range list {
			if a.Child() == last {
				g.Node(last).Parents--
				continue
			}
			last = a.Child()
			g.children[end] = a
			end++
		}
		n.arcs = end - n.firstArc
	}
	g.children = g.children[:end]
}

// Children are the arcs from a node, in the order of the children's numbers. The list
// must not be changed.
func (g *Graph) Children(id NodeID) []Arc {
	n := g.Node(id)
	return g.children[n.firstArc : n.firstArc+n.arcs : n.firstArc+n.arcs]
}
