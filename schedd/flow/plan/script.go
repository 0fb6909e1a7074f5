package plan

import (
	"path"
	"slices"
	"strings"

	"github.com/roost-batch/roost/schedd/flow/graph"
)

// ScriptWords returns the program of a script and its arguments. An argument that is a
// macro, as in $RETURN, is replaced by its value. One that macro does not know, for which
// it reports false, stays as it is.
func (p *Plan) ScriptWords(s *NodeScript, macro func(name string) (value string, ok bool)) []string {
	words := strings.Fields(p.Texts.Text(s.Command))
	for i, w := range words {
		if name, ok := strings.CutPrefix(w, "$"); ok && i > 0 {
			if value, ok := macro(name); ok {
				words[i] = value
			}
		}
	}
	if len(words) == 0 {
		words = []string{"/bin/true"}
	} else if strings.Contains(words[0], "/") && !path.IsAbs(words[0]) {
		words[0] = "./" + path.Clean(words[0])
	}
	return words
}

// ScriptDirectory returns where the scripts of a node run. It is absolute.
func (p *Plan) ScriptDirectory(id graph.NodeID) string {
	return p.absolute(p.Directory, p.Texts.Text(p.SettingsOf(id).Directory))
}

// DebugFile returns the file that gets output of a script of a node; empty: none does. It
// is absolute.
func (p *Plan) DebugFile(id graph.NodeID, s *NodeScript) string {
	if s.DebugFile == 0 {
		return ""
	}
	return p.absolute(p.ScriptDirectory(id), p.Texts.Text(s.DebugFile))
}

// SaveDirectory has the save points whose names have no directory.
const SaveDirectory = "save_files"

// SavePoint returns the file that gets the nodes that are done when a node begins first;
// empty: there is none. It is absolute.
func (p *Plan) SavePoint(id graph.NodeID) string {
	name := p.Texts.Text(p.SettingsOf(id).SavePoint)
	switch {
	case name == "":
		return ""
	case !strings.Contains(name, "/"):
		name = path.Join(SaveDirectory, name)
	}
	return p.absolute(p.Directory, name)
}

func (p *Plan) absolute(directory, name string) string {
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(directory, name)
}

// parentIndex has the parents of each node, those of one beside each other.
type parentIndex struct {
	first []uint32
	list  []graph.NodeID
}

// ParentNames returns the names of the nodes that a node waits for. Where a join node is
// between them, they are those on its other side. The first call builds an index.
func (p *Plan) ParentNames(id graph.NodeID) (names []string) {
	if p.parents == nil {
		p.parents = newParentIndex(p.Graph)
	}
	for _, parent := range p.parents.of(id) {
		if p.Graph.Node(parent).Kind == graph.JoinNode {
			names = append(names, p.ParentNames(parent)...)
		} else {
			names = append(names, p.Graph.Name(parent))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func newParentIndex(g *graph.Graph) *parentIndex {
	x := &parentIndex{first: make([]uint32, g.Len()+1), list: make([]graph.NodeID, g.Arcs())}
	for id, n := range g.Nodes() {
		x.first[id+1] = x.first[id] + n.Parents
	}
	next := slices.Clone(x.first)
	for id := range g.Nodes() {
		for _, a := range g.Children(id) {
			x.list[next[a.Child()]] = id
			next[a.Child()]++
		}
	}
	return x
}

func (x *parentIndex) of(id graph.NodeID) []graph.NodeID { return x.list[x.first[id]:x.first[id+1]] }
