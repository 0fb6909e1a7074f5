package dag

import (
	"path"

	"github.com/roost-batch/roost/schedd/flow/graph"
)

// nodeScope is what the names of one DAG file or splice refer to. INCLUDE reads a file in
// the scope of the including one.
type nodeScope struct {
	outer     *nodeScope
	prefix    []byte // before the names of its nodes
	depth     int    // splices around it
	directory string // of the splice; empty: the working directory
	first     int    // number of its first node
	last      int    // number behind its last node; 0: it is still being read
	inner     []*nodeScope
	splices   map[string]*nodeScope
	inline    map[graph.TextID]uint32 // SUBMIT-DESCRIPTION: descriptions by name

	// of a splice: its nodes without parents and without children
	initial, terminal []graph.NodeID
	pinsIn, pinsOut   map[int][]graph.NodeID
	connections       []spliceConnection
	isBroken          bool // its file has not been read; what names it is no mistake
}

func newScope(outer *nodeScope, first int) *nodeScope {
	s := &nodeScope{outer: outer, first: first, splices: map[string]*nodeScope{}, inline: map[graph.TextID]uint32{},
		pinsIn: map[int][]graph.NodeID{}, pinsOut: map[int][]graph.NodeID{}}
	if outer != nil {
		s.depth, s.directory = outer.depth+1, outer.directory
	}
	return s
}

// filePath is a file of the scope as FileReader gets it.
func (s *nodeScope) filePath(name string) string { return joinPath(s.directory, name) }

// joinPath is a name in a directory. Without a directory the name stays as it is.
func joinPath(directory, name string) string {
	if directory == "" || directory == "." || path.IsAbs(name) {
		return name
	}
	return path.Join(directory, name)
}

// nodes calls f for each node of the scope itself, without those of splices.
func (s *nodeScope) nodes(g *graph.Graph, f func(id graph.NodeID, n *graph.Node)) {
	inner := s.inner
	for i := s.first; i < g.Len(); i++ {
		if len(inner) > 0 && i == inner[0].first {
			i = inner[0].last - 1
			inner = inner[1:]
			continue
		}
		if n := g.Node(graph.NodeID(i)); n.Kind != graph.JoinNode {
			f(graph.NodeID(i), n)
		}
	}
}

// parseScope reads a DAG file with all that belongs to it. from is the line that names
// it; nil for the file that the user named.
func (p *flowParser) parseScope(s *nodeScope, name string, from *fileParser) {
	full := s.filePath(name)
	if !p.parseFile(s, full, 1, from) {
		s.last, s.isBroken = p.flow.Graph.Len(), true
		return
	}
	p.resolveDescriptions(s)
	p.parseFile(s, full, 2, from)
	p.connectSplices(s)
	s.last = p.flow.Graph.Len()
	if s.outer == nil {
		return
	}
	g := p.flow.Graph
	for i := s.first; i < s.last; i++ {
		id := graph.NodeID(i)
		if !g.Node(id).Kind.HasArcs() {
			continue
		}
		if g.IsInitial(id) {
			s.initial = append(s.initial, id)
		}
		if g.IsTerminal(id) {
			s.terminal = append(s.terminal, id)
		}
	}
}

// resolveDescriptions has nodes that name a SUBMIT-DESCRIPTION of their file use it.
func (p *flowParser) resolveDescriptions(s *nodeScope) {
	if len(s.inline) == 0 {
		return
	}
	s.nodes(p.flow.Graph, func(_ graph.NodeID, n *graph.Node) {
		if number, ok := s.inline[graph.TextID(n.Description)]; ok && n.Description != 0 &&
			n.Description&inlineBit == 0 && n.Kind != graph.SubflowNode {
			n.Description = number | inlineBit
		}
	})
}
