package dag

import (
	"bufio"
	"io"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/schedd/flow/graph"
)

// WriteDOT writes a picture of the flow in the language of Graphviz. Weak arcs are
// dashed, join nodes are points, and nodes that are done are grey.
func WriteDOT(to io.Writer, f *Flow, title string) error {
	w := bufio.NewWriter(to)
	w.WriteString("digraph flow {\n  label=" + dotText([]byte(title)) + ";\n  node [shape=box];\n")
	var name []byte
	for id, n := range f.Graph.Nodes() {
		w.WriteString("  ")
		name = appendDotName(name[:0], f.Graph, id)
		w.Write(name)
		w.WriteString(dotStyle(n))
		w.WriteString(";\n")
	}
	for id := range f.Graph.Nodes() {
		name = appendDotName(name[:0], f.Graph, id)
		from := len(name)
		for _, a := range f.Graph.Children(id) {
			w.WriteString("  ")
			name = appendDotName(name[:from], f.Graph, a.Child())
			w.Write(name[:from])
			w.WriteString(" -> ")
			w.Write(name[from:])
			if a.IsWeak() {
				w.WriteString(" [style=dashed]")
			}
			w.WriteString(";\n")
		}
	}
	w.WriteString("}\n")
	return w.Flush()
}

// appendDotName adds the name of a node in quotes. Join nodes have a name that no node
// can have.
func appendDotName(to []byte, g *graph.Graph, id graph.NodeID) []byte {
	if g.Node(id).Kind == graph.JoinNode {
		return append(strconv.AppendUint(append(to, '"', ' '), uint64(id), 10), '"')
	}
	name := g.NameBytes(id)
	to = append(to, '"')
	for _, c := range name {
		if c == '"' || c == '\\' {
			to = append(to, '\\')
		}
		to = append(to, c)
	}
	return append(to, '"')
}

func dotText(text []byte) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ").Replace(string(text)) + `"`
}

// dotStyle are the attributes of a node.
func dotStyle(n *graph.Node) string {
	style := map[graph.NodeKind]string{graph.JoinNode: "shape=point", graph.SubflowNode: "shape=folder",
		graph.FinalNode: "peripheries=2", graph.ProvisionerNode: "shape=house",
		graph.ServiceNode: "shape=ellipse"}[n.Kind]
	if n.Flags&graph.DoneFlag != 0 {
		style += " style=filled fillcolor=lightgrey"
	} else if n.Flags&graph.NoopFlag != 0 {
		style += " style=dotted"
	}
	if style == "" {
		return ""
	}
	return " [" + strings.TrimSpace(style) + "]"
}
