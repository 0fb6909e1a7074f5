package dag

import (
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/roost-batch/roost/schedd/flow/graph"
)

// textFiles are files for tests, by their names.
type textFiles map[string]string

func (f textFiles) Open(name string) (io.ReadCloser, error) {
	text, ok := f[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return io.NopCloser(strings.NewReader(text)), nil
}

func (f textFiles) Exists(name string) bool {
	_, ok := f[name]
	return ok
}

// parseText reads one DAG file without looking for the files of nodes.
func parseText(text string) (*Flow, *Diagnostics) {
	return Parse(textFiles{"x.dag": text}, []string{"x.dag"}, ParseOptions{SkipFileTests: true})
}

// parseGood reads one DAG file without errors.
func parseGood(t *testing.T, files textFiles) *Flow {
	t.Helper()
	flow, diags := Parse(files, []string{"x.dag"}, ParseOptions{SkipFileTests: true})
	if diags.HasErrors() {
		t.Fatalf("%v", diags.List)
	}
	return flow
}

// node is the node of a name.
func (f *Flow) node(t *testing.T, name string) *graph.Node {
	t.Helper()
	id, ok := f.Graph.Find([]byte(name))
	if !ok {
		t.Fatalf("there is no node %q", name)
	}
	return f.Graph.Node(id)
}

// arcs are the arcs of a flow as in "A>B" and, weak, "A~B", in the order of the parents.
// A join node is *.
func (f *Flow) arcs() string {
	var all []string
	name := func(id graph.NodeID) string {
		if f.Graph.Node(id).Kind == graph.JoinNode {
			return "*"
		}
		return f.Graph.Name(id)
	}
	for id := range f.Graph.Nodes() {
		for _, a := range f.Graph.Children(id) {
			sign := ">"
			if a.IsWeak() {
				sign = "~"
			}
			all = append(all, name(id)+sign+name(a.Child()))
		}
	}
	return strings.Join(all, " ")
}
