package dag

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost/schedd/flow/graph"
)

// naiveFlow reads a part of the language with maps and strings.Fields: JOB, PARENT,
// RETRY, PRIORITY and SPLICE.
type naiveFlow struct {
	retry, priority map[string]int
	arcs            map[string]bool // "A>B"; true: weak
	isCyclic        bool
}

func parseNaively(files textFiles, name string) *naiveFlow {
	f := &naiveFlow{map[string]int{}, map[string]int{}, map[string]bool{}, false}
	f.read(files, name, "")
	left := maps.Clone(f.retry)
	for before := -1; len(left) > 0 && len(left) != before; {
		before = len(left)
		waits := map[string]bool{}
		for arc := range f.arcs {
			parent, child, _ := strings.Cut(arc, ">")
			if _, ok := left[parent]; ok {
				waits[child] = true
			}
		}
		maps.DeleteFunc(left, func(name string, _ int) bool { return !waits[name] })
	}
	f.isCyclic = len(left) > 0
	return f
}

// read reads a file and returns its nodes without parents, and those without children.
func (f *naiveFlow) read(files textFiles, name, prefix string) (initial, terminal []string) {
	splices := map[string][2][]string{}
	var own, lines []string
	for _, line := range strings.Split(files[name], "\n") {
		switch w := strings.Fields(line); {
		case len(w) == 0:
		case w[0] == "JOB":
			own = append(own, prefix+w[1])
			f.retry[prefix+w[1]] = 0
		case w[0] == "SPLICE":
			first, last := f.read(files, w[2], prefix+w[1]+"+")
			splices[w[1]] = [2][]string{first, last}
			initial, terminal = append(initial, first...), append(terminal, last...)
		default:
			lines = append(lines, line)
		}
	}
	ends := func(words []string, side int) (list []string) {
		for _, w := range words {
			if s, ok := splices[w]; ok {
				list = append(list, s[side]...)
			} else {
				list = append(list, prefix+w)
			}
		}
		return list
	}
	for _, line := range lines {
		w := strings.Fields(line)
		weak := w[0] == "WEAK"
		if weak {
			w = w[1:]
		}
		switch w[0] {
		case "PARENT":
			i := slices.Index(w, "CHILD")
			for _, a := range ends(w[1:i], 1) {
				for _, b := range ends(w[i+1:], 0) {
					before, ok := f.arcs[a+">"+b]
					f.arcs[a+">"+b] = weak && (!ok || before)
				}
			}
		case "RETRY", "PRIORITY":
			values := f.retry
			if w[0] == "PRIORITY" {
				values = f.priority
			}
			names := []string{prefix + w[1]}
			if w[1] == "ALL_NODES" {
				names = own
			}
			for _, name := range names {
				values[name] = atoi(w[2])
			}
		}
	}
	all := append(append(slices.Clone(own), initial...), terminal...)
	slices.Sort(all)
	var first, last []string
	for _, n := range slices.Compact(all) {
		isChild, isParent := false, false
		for arc := range f.arcs {
			isParent = isParent || strings.HasPrefix(arc, n+">")
			isChild = isChild || strings.HasSuffix(arc, ">"+n)
		}
		if !isChild {
			first = append(first, n)
		}
		if !isParent {
			last = append(last, n)
		}
	}
	return first, last
}

func atoi(text string) (n int) {
	fmt.Sscan(text, &n)
	return n
}

// randomFiles makes a flow of some files.
func randomFiles(random *rand.Rand) textFiles {
	files := textFiles{}
	for level := 2; level >= 0; level-- {
		var lines, names []string
		for i := range 1 + random.IntN(6) {
			name := fmt.Sprint("n", i)
			names = append(names, name)
			lines = append(lines, "JOB "+name+" d")
		}
		for i := range random.IntN(3) {
			if level < 2 {
				name := fmt.Sprint("s", i)
				names = append(names, name)
				lines = append(lines, fmt.Sprintf("SPLICE %s %d.dag", name, level+1+random.IntN(2-level)))
			}
		}
		pick := func(from, to int) string {
			var list []string
			for range 1 + random.IntN(3) {
				list = append(list, names[from+random.IntN(to-from)])
			}
			return strings.Join(list, " ")
		}
		for range random.IntN(6) {
			cut, weak := random.IntN(len(names)), ""
			if random.IntN(4) == 0 {
				weak = "WEAK "
			}
			if cut == 0 || random.IntN(40) == 0 {
				lines = append(lines, weak+"PARENT "+pick(0, len(names))+" CHILD "+pick(0, len(names)))
				continue
			}
			lines = append(lines, weak+"PARENT "+pick(0, cut)+" CHILD "+pick(cut, len(names)))
		}
		for range random.IntN(4) {
			name := "n0"
			if random.IntN(3) == 0 {
				name = "ALL_NODES"
			}
			lines = append(lines, fmt.Sprintf("%s %s %d", []string{"RETRY", "PRIORITY"}[random.IntN(2)], name,
				random.IntN(9)))
		}
		files[fmt.Sprintf("%d.dag", level)] = strings.Join(lines, "\n")
	}
	return files
}

// TestRandomFlows compares flows of several files with what a naive parser makes of them.
func TestRandomFlows(t *testing.T) {
	cyclic, joins := 0, 0
	for seed := range uint64(500) {
		files := randomFiles(rand.New(rand.NewPCG(seed, 2)))
		want := parseNaively(files, "0.dag")
		flow, diags := Parse(files, []string{"0.dag"}, ParseOptions{SkipFileTests: true})
		isCyclic := false
		for _, d := range diags.List {
			isCyclic = isCyclic || strings.Contains(d.Summary, "in a cycle")
			if !d.IsWarning && !strings.Contains(d.Summary, "in a cycle") {
				t.Fatalf("seed %d: %v", seed, d)
			}
		}
		if isCyclic != want.isCyclic {
			t.Fatalf("seed %d: got a cycle: %v, want %v\n%v", seed, isCyclic, want.isCyclic, files)
		}
		if isCyclic {
			cyclic++
		}
		if got := withoutJoins(flow); !maps.Equal(got, want.arcs) {
			t.Fatalf("seed %d: got %v\nwant %v\n%v", seed, got, want.arcs, files)
		}
		for id, n := range flow.Graph.Nodes() {
			name := flow.Graph.Name(id)
			if n.Kind == graph.JoinNode {
				joins++
			} else if int(n.Retry) != want.retry[name] || int(n.Priority) != want.priority[name] {
				t.Fatalf("seed %d: %s has %d retries and priority %d\n%v", seed, name, n.Retry, n.Priority, files)
			}
		}
	}
	if cyclic < 50 || cyclic > 450 || joins < 100 {
		t.Errorf("%d of 500 flows have a cycle, and there are %d join nodes", cyclic, joins)
	}
}

// withoutJoins are the arcs of a flow without its join nodes.
func withoutJoins(f *Flow) map[string]bool {
	arcs := map[string]bool{}
	add := func(from, to graph.NodeID, weak bool) {
		key := f.Graph.Name(from) + ">" + f.Graph.Name(to)
		before, ok := arcs[key]
		arcs[key] = weak && (!ok || before)
	}
	for id, n := range f.Graph.Nodes() {
		if n.Kind == graph.JoinNode {
			continue
		}
		for _, a := range f.Graph.Children(id) {
			if f.Graph.Node(a.Child()).Kind != graph.JoinNode {
				add(id, a.Child(), a.IsWeak())
				continue
			}
			for _, b := range f.Graph.Children(a.Child()) {
				add(id, b.Child(), a.IsWeak())
			}
		}
	}
	return arcs
}

// fuzzFiles are files of a fuzz test: x.dag, and others that it may name.
type fuzzFiles struct{ text string }

func (f fuzzFiles) Open(name string) (io.ReadCloser, error) {
	return textFiles{"x.dag": f.text, "s.dag": "JOB n d\nJOB m d\nPIN_IN n 1\nPIN_OUT m 1\nPIN_IN m 1",
		"t.dag": "SPLICE s s.dag\nJOB x d\nINCLUDE s.dag\nPARENT n CHILD s"}.Open(name)
}

func (f fuzzFiles) Exists(name string) bool { return name == "d" }

// FuzzParse holds that any text is read without a panic. Every diagnostic has its place
// and remedy, and what is accepted is sound.
func FuzzParse(f *testing.F) {
	f.Add(wholeLanguage)
	for _, b := range badLines() {
		f.Add("JOB a d\nJOB b d\nSPLICE s s.dag\nSPLICE t t.dag\n" + b.line)
	}
	f.Add("SPLICE a s.dag\nSPLICE b s.dag\nCONNECT a b\nPARENT a CHILD b\nINCLUDE s.dag\nPARENT n CHILD a+n\n" +
		"RETRY ALL_NODES 1")
	f.Fuzz(func(t *testing.T, text string) {
		flow, diags := Parse(fuzzFiles{text}, []string{"x.dag"}, ParseOptions{})
		for _, d := range diags.List {
			if d.Summary == "" || d.Detail == "" || d.File == "" || d.Line > 0 && (d.Column < 1 || d.Width < 1) {
				t.Fatalf("%+v", d)
			}
		}
		if len(diags.List) < MaxDiagnostics && diags.HasErrors() != slices.ContainsFunc(diags.List,
			func(d Diagnostic) bool { return !d.IsWarning }) {
			t.Fatalf("%d errors, and %v", diags.Errors, diags.List)
		}
		if diags.HasErrors() {
			return
		}
		parents := make([]uint32, flow.Graph.Len())
		for id, n := range flow.Graph.Nodes() {
			flow.Description(n)
			flow.Variables(n)
			if int(n.Settings) >= len(flow.Settings) || int(n.Category) >= len(flow.Categories) ||
				n.Kind != graph.JoinNode && n.Line == 0 {
				t.Fatalf("%+v", n)
			}
			for _, a := range flow.Graph.Children(id) {
				parents[a.Child()]++
				if flow.Graph.Node(a.Child()).Depth <= n.Depth {
					t.Fatalf("the depths of %d and its child %d", id, a.Child())
				}
			}
		}
		for id, n := range flow.Graph.Nodes() {
			if n.Parents != parents[id] {
				t.Fatalf("%d has %d parents, want %d", id, n.Parents, parents[id])
			}
		}
	})
}
