package plan

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/flow"
	"github.com/roost-batch/roost/schedd/flow/graph"
)

// randomPlan returns a plan with all that a plan may have.
func randomPlan(t testing.TB, rng *rand.Rand, nodes int) *Plan {
	p := &Plan{Graph: graph.New(), Texts: graph.NewTextTable(), Templates: make([]JobTemplate, 1),
		Settings: make([]NodeSettings, 1), Scripts: make([]NodeScript, 1), Categories: make([]Category, 1),
		Directory: "/home/alice", Environment: []string{"A=b", "C=d e"}, Files: []string{"/home/alice/a.dag"},
		RescueBase: "/home/alice/a.dag",
		Limits:     flow.Limits{Jobs: rng.IntN(10), IdleTasks: 1000, Pre: 20, Post: 20}, DepthFirst: rng.IntN(2) == 0,
		AlwaysRunPost: rng.IntN(2) == 0, StopsAtFailure: rng.IntN(2) == 0}
	if rng.IntN(2) == 0 {
		p.Reports = Reports{JobstateLog: "/home/alice/js.log", FirstSequence: rng.IntN(9),
			Status: StatusFile{Name: "/home/alice/st", MinInterval: rng.IntN(90), IsAlways: rng.IntN(2) == 0},
			Dots:   []DotFile{{Name: "/home/alice/a.dot", Source: "h", Commands: "rankdir=LR;", Numbered: true}}}
	}
	text := func(format string, args ...any) graph.TextID {
		id, ok := p.Texts.Add(fmt.Appendf(nil, format, args...))
		if !ok {
			t.Fatal("no room for a text")
		}
		return id
	}
	for i := range 3 {
		p.Templates = append(p.Templates, JobTemplate{Ad: fmt.Sprintf(`[Cmd = "/bin/p%d"]`, i), Count: 1 + i,
			Columns: [][]string{nil, {"seed"}, {"seed", "file"}}[i], NodeColumns: []string{ColumnRetry},
			Source: "a.sub"})
		p.Scripts = append(p.Scripts, NodeScript{Command: text("./s.sh %d $RETURN", i),
			Defer: flow.ExitRule{Code: i, IsSet: i > 0}, DeferSeconds: i, DebugFile: text("out%d", i),
			DebugOutput: uint8(i)})
		p.Settings = append(p.Settings, NodeSettings{Directory: text("d%d", i), SavePoint: text("save%d", i),
			Pre: uint32(i), Post: uint32(3 - i), Tolerance: i, ToleranceIsShare: i == 1, FailsFast: i == 2,
			Rules: flow.NodeRules{HasPre: i > 0, HasPost: true, PreSkip: flow.ExitRule{Code: 5, IsSet: true},
				AbortOn: flow.ExitRule{Code: -9, IsSet: i == 1}}})
		p.Categories = append(p.Categories, Category{Name: fmt.Sprint("c", i), MaxJobs: i - 1})
	}
	var ids []graph.NodeID
	for i := range nodes {
		if len(ids) > 1 && rng.IntN(8) == 0 {
			ids = append(ids, p.Graph.AddJoin())
			continue
		}
		id, isNew, err := p.Graph.AddNode(fmt.Appendf(nil, "node%d", i), graph.JobNode)
		if err != nil || !isNew {
			t.Fatal(err)
		}
		n := p.Graph.Node(id)
		n.Description, n.Settings, n.Category = uint32(1+rng.IntN(3)), uint32(rng.IntN(4)), uint16(rng.IntN(4))
		n.Line, n.Retry, n.Priority = uint32(i), uint16(rng.IntN(4)), int16(rng.IntN(100)-50)
		n.Vars = uint32(len(p.Values))
		for k := range len(p.Template(id).Columns) * p.Template(id).Count {
			p.Values = append(p.Values, text("value %d of %d", k, rng.IntN(100)))
		}
		ids = append(ids, id)
	}
	for i, child := range ids {
		for range min(i, rng.IntN(3)) {
			p.Graph.AddArc(ids[rng.IntN(i)], child, rng.IntN(4) == 0)
		}
	}
	if rng.IntN(2) == 0 {
		p.Final, _, _ = p.Graph.AddNode([]byte("the-end"), graph.FinalNode)
		p.Graph.Node(p.Final).Description, p.HasFinal = 1, true
	}
	p.Graph.Finish()
	return p
}

// TestEncode checks that what is decoded is what was encoded, for random plans.
func TestEncode(t *testing.T) {
	for seed := range 200 {
		rng := rand.New(rand.NewPCG(uint64(seed), 1))
		p := randomPlan(t, rng, 1+rng.IntN(60))
		form, err := Encode(p)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(form)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		again, err := Encode(got)
		if err != nil || !bytes.Equal(form, again) {
			t.Fatalf("seed %d: another form after a second time, %v", seed, err)
		}
		for id, n := range p.Graph.Nodes() {
			if g := got.Graph.Node(id); got.Graph.Name(id) != p.Graph.Name(id) || g.Parents != n.Parents ||
				g.Depth != n.Depth ||
				!reflect.DeepEqual(got.Graph.Children(id), p.Graph.Children(id)) ||
				!reflect.DeepEqual(got.ColumnsOf(id), p.ColumnsOf(id)) || *got.SettingsOf(id) != *p.SettingsOf(id) {
				t.Fatalf("seed %d: node %d is %+v, was %+v", seed, id, g, n)
			}
		}
		if !reflect.DeepEqual(got.Templates, p.Templates) || !reflect.DeepEqual(got.Scripts, p.Scripts) ||
			!reflect.DeepEqual(got.Categories, p.Categories) || !reflect.DeepEqual(got.Limits, p.Limits) {
			t.Fatalf("seed %d: %+v", seed, got)
		}
	}
}

// TestBadPlan checks that a damaged plan is refused, or gives one that is whole.
func TestBadPlan(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	form, err := Encode(randomPlan(t, rng, 20))
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for range 5000 {
		bad := bytes.Clone(form)
		if rng.IntN(4) == 0 {
			bad = bad[:rng.IntN(len(bad))]
		} else {
			bad[rng.IntN(len(bad))] ^= byte(1 + rng.IntN(255))
		}
		p, err := Decode(bad)
		switch {
		case err == nil:
			p.Definition()
			for id := range p.Graph.Nodes() {
				p.ColumnsOf(id)
			}
		case !errors.Is(err, roost.Invalid) && !errors.Is(err, roost.Exhausted):
			t.Fatalf("another kind of error: %v", err)
		default:
			refused++
		}
	}
	if refused < 4000 {
		t.Errorf("%d of 5000 damaged plans were refused", refused)
	}
	if _, err := Decode([]byte("\x01\xff\xff\xff\xff\x0f")); !errors.Is(err, roost.Exhausted) {
		t.Errorf("a plan of 4 GiB in six bytes: %v", err)
	}
	if _, err := Decode([]byte{2}); !errors.Is(err, roost.Invalid) {
		t.Errorf("a plan of another version: %v", err)
	}
}

// FuzzDecode checks that no form brings the program down.
func FuzzDecode(f *testing.F) {
	form, err := Encode(randomPlan(f, rand.New(rand.NewPCG(2, 1)), 20))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(form)
	f.Fuzz(func(_ *testing.T, form []byte) {
		if p, err := Decode(form); err == nil {
			flow.New(p.Definition(), p.Limits)
		}
	})
}

// TestParentNames checks the parents of a node, with those behind join nodes.
func TestParentNames(t *testing.T) {
	p := &Plan{Graph: graph.New()}
	var ids []graph.NodeID
	for _, name := range []string{"a", "b", "c", "d"} {
		id, _, err := p.Graph.AddNode([]byte(name), graph.JobNode)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if err := p.Graph.Depend(ids[:2], ids[2:], false, true); err != nil {
		t.Fatal(err)
	}
	p.Graph.Finish()
	if got := p.ParentNames(ids[3]); !reflect.DeepEqual(got, []string{"a", "b"}) {
		t.Errorf("its parents are %q", got)
	}
}

// TestScriptWords checks what a script runs as.
func TestScriptWords(t *testing.T) {
	p := &Plan{Texts: graph.NewTextTable()}
	command, _ := p.Texts.Add([]byte("bin/post.sh $RETURN $NOTHING -x=$RETURN"))
	words := p.ScriptWords(&NodeScript{Command: command}, func(name string) (string, bool) {
		return "7", name == "RETURN"
	})
	if want := []string{"./bin/post.sh", "7", "$NOTHING", "-x=$RETURN"}; !reflect.DeepEqual(words, want) {
		t.Errorf("it runs %q, want %q", words, want)
	}
}

func BenchmarkDecode(b *testing.B) {
	form, err := Encode(randomPlan(b, rand.New(rand.NewPCG(3, 1)), 100_000))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(len(form))/100_000, "bytes/node")
	for b.Loop() {
		if _, err := Decode(form); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(100_000*float64(b.N)/b.Elapsed().Seconds(), "nodes/s")
}
