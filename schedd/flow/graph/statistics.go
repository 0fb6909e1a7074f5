package graph

// Statistics describes the shape of a graph.
type Statistics struct {
	Nodes        int // all, with join nodes
	ByKind       [ServiceNode + 1]int
	Arcs         int
	WeakArcs     int
	Height       int   // nodes on the longest path, join nodes counted
	Width        int   // most nodes of one depth
	WidthByDepth []int // nodes of each depth
}

// Statistics measures the graph. Height and widths leave out the kinds of nodes without
// arcs; they mean nothing if there is a cycle.
func (g *Graph) Statistics() Statistics {
	s := Statistics{Nodes: g.count, Arcs: g.Arcs()}
	for _, a := range g.children {
		if a.IsWeak() {
			s.WeakArcs++
		}
	}
	for _, n := range g.Nodes() {
		s.ByKind[n.Kind]++
		if n.Kind.HasArcs() {
			s.Height = max(s.Height, int(n.Depth)+1)
		}
	}
	s.WidthByDepth = make([]int, s.Height)
	for _, n := range g.Nodes() {
		if n.Kind.HasArcs() {
			s.WidthByDepth[n.Depth]++
			s.Width = max(s.Width, s.WidthByDepth[n.Depth])
		}
	}
	return s
}
