package dag

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost/schedd/flow/graph"
)

// readySet are the nodes that may begin: those that are not done, and whose parents all
// are. Join nodes are done as soon as their parents are.
func readySet(flow *Flow) (ready []string) {
	g := flow.Graph
	done, waits := make([]bool, g.Len()), make([]int, g.Len())
	for id, n := range g.Nodes() {
		done[id], waits[id] = n.Flags&graph.DoneFlag != 0, int(n.Parents)
	}
	var finish func(id graph.NodeID)
	finish = func(id graph.NodeID) {
		for _, a := range g.Children(id) {
			if waits[a.Child()]--; waits[a.Child()] == 0 && g.Node(a.Child()).Kind == graph.JoinNode {
				finish(a.Child())
			}
		}
	}
	for id := range g.Nodes() {
		if done[id] {
			finish(id)
		}
	}
	for id, n := range g.Nodes() {
		if !done[id] && waits[id] == 0 && n.Kind != graph.JoinNode {
			ready = append(ready, fmt.Sprint(g.Name(id), " ", n.Retry))
		}
	}
	return ready
}

// TestRescueRoundTrip holds that what is written to a rescue file is read from it. The
// same nodes are ready then.
func TestRescueRoundTrip(t *testing.T) {
	partial := 0
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 3))
		files := randomFiles(random)
		opts := ParseOptions{SkipFileTests: true}
		before, diags := Parse(files, []string{"0.dag"}, opts)
		if diags.HasErrors() {
			continue // a cycle
		}
		want := &Rescue{}
		for id, n := range before.Graph.Nodes() {
			switch {
			case n.Kind == graph.JoinNode:
			case random.IntN(2) == 0:
				want.Done = append(want.Done, id)
			case random.IntN(2) == 0:
				want.Retries = append(want.Retries, RemainingRetry{id, random.IntN(5)})
			}
		}
		var b strings.Builder
		header := RescueHeader{Flow: "0.dag", Created: "today\nRETRY n0 9", Failed: want.Done}
		if err := WriteRescue(&b, before, want, header); err != nil {
			t.Fatal(err)
		}
		want.Apply(before)
		files["0.dag.rescue001"] = b.String()
		after, _ := Parse(files, []string{"0.dag"}, opts)
		got, diags := ReadRescue(files, "0.dag.rescue001", after)
		if len(diags.List) > 0 || !slices.Equal(got.Done, want.Done) || !slices.Equal(got.Retries, want.Retries) {
			t.Fatalf("seed %d: got %+v, want %+v; %v", seed, got, want, diags.List)
		}
		got.Apply(after)
		ready := readySet(before)
		if !slices.Equal(readySet(after), ready) {
			t.Fatalf("seed %d: ready are %v, want %v", seed, readySet(after), ready)
		}
		if len(ready) > 0 && len(want.Done) > 0 {
			partial++
		}
	}
	if partial < 60 {
		t.Errorf("%d flows of 300 are done in part", partial)
	}
}

// TestRescueNames holds that names with quotes and backslashes come back.
func TestRescueNames(t *testing.T) {
	files := textFiles{"x.dag": "JOB \"a'b\" d\nJOB 'c\"d' d\nJOB 'e\\\\' d\nJOB done d\nSPLICE S s.dag\n",
		"s.dag": "JOB n d"}
	flow := parseGood(t, files)
	all := &Rescue{}
	for id := range flow.Graph.Nodes() {
		all.Done = append(all.Done, id)
	}
	var b strings.Builder
	if err := WriteRescue(&b, flow, all, RescueHeader{Flow: "x.dag"}); err != nil {
		t.Fatal(err)
	}
	files["r"] = b.String()
	if got, diags := ReadRescue(files, "r", flow); len(diags.List) > 0 || !slices.Equal(got.Done, all.Done) {
		t.Errorf("got %v, %v of\n%s", got, diags.List, b.String())
	}
	if _, ok := flow.Graph.Find([]byte(`e\`)); !ok || !strings.Contains(b.String(), "DONE S+n\n") {
		t.Errorf("got\n%s", b.String())
	}
}

// TestBadRescues holds what is wrong with rescue files, and that the later of two lines
// counts.
func TestBadRescues(t *testing.T) {
	flow := parseGood(t, textFiles{"x.dag": "JOB A d\nJOB B d\nFINAL F d\n"})
	for text, want := range map[string]string{
		"DONE A\nDONE A\nRETRY B 1\nRETRY B 2\nDONE F": "[0 2] [{1 2}]",
		"# nothing\n":  "[] []",
		"DONE C\nDONE": `1 there is no node "C"; 2 DONE has no name of a node`,
		"RETRY A\nRETRY A x\nRETRY A 1 UNLESS-EXIT 2": `1 RETRY has no number of retries; 2 "x" is no number of retries; 3 "UNLESS-EXIT" is one word too many`,
		"DONE ALL_NODES": "1 DONE is not for ALL_NODES",
		"DONE A\nJOB A d\nPARENT A CHILD B\nJOB B {\n}": "2 a rescue file has no JOB",
		"DNOE A": `1 there is no command "DNOE"`,
	} {
		r, diags := ReadRescue(textFiles{"r": text}, "r", flow)
		got := fmt.Sprint(r.Done, " ", r.Retries)
		if len(diags.List) > 0 {
			var list []string
			for _, d := range diags.List {
				list = append(list, fmt.Sprint(d.Line, " ", d.Summary))
			}
			got = strings.Join(list, "; ")
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	if _, diags := ReadRescue(textFiles{}, "r", flow); diags.Missing != 1 || len(flow.Files) != 1 {
		t.Errorf("got %v", diags.List)
	}
}

// TestRescueFiles holds the names of rescue files, and which one is the newest.
func TestRescueFiles(t *testing.T) {
	one, two := []string{"d/x.dag"}, []string{"d/x.dag", "y.dag"}
	if got := RescueName(one, 7) + " " + RescueName(two, 120); got != "d/x.dag.rescue007 d/x.dag_multi.rescue120" {
		t.Errorf("got %s", got)
	}
	files := textFiles{"d/x.dag.rescue001": "", "d/x.dag.rescue012": "", "d/x.dag_multi.rescue002": ""}
	if a, b, c := NewestRescue(files, one), NewestRescue(files, two), NewestRescue(files, []string{"y"}); a != 12 ||
		b != 2 || c != 0 {
		t.Errorf("got %d, %d, %d", a, b, c)
	}
}
