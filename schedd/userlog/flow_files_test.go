package userlog

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/flow"
	"github.com/roost-batch/roost/schedd/flow/graph"
	"github.com/roost-batch/roost/schedd/flow/plan"
	"github.com/roost-batch/roost/schedd/queue"
)

// capturedFlow is a flow of which one node has failed, one runs and one is futile.
func capturedFlow(t *testing.T, dir string) *queue.FlowCapture {
	t.Helper()
	p := &plan.Plan{Graph: graph.New(), Files: []string{`/a "b".dag`}, Reports: plan.Reports{
		Status: plan.StatusFile{Name: filepath.Join(dir, "status"), MinInterval: 30},
		Dots: []plan.DotFile{{Name: filepath.Join(dir, "once.dot"), Source: "style", Commands: "rankdir=LR;"},
			{Name: filepath.Join(dir, "many.dot"), IsUpdated: true, Numbered: true}}}}
	for _, name := range []string{"A", "B", "C", "D"} {
		if _, _, err := p.Graph.AddNode([]byte(name), graph.JobNode); err != nil {
			t.Fatal(err)
		}
	}
	p.Graph.Node(0).Flags = graph.DoneFlag
	p.Graph.AddArc(0, 1, false)
	p.Graph.AddArc(0, 2, true)
	p.Graph.AddArc(2, 3, false)
	p.Graph.Finish()
	return &queue.FlowCapture{Seq: 7, Time: time.Unix(1_800_000_000, 0), Plan: p, Phase: flow.Executing,
		Status: flow.StatusNodeFailed, States: []flow.NodeState{flow.Done, flow.JobRuns, flow.Failed, flow.Futile},
		Attempts: []uint16{0, 2, 0, 0}, Tasks: map[graph.NodeID]queue.NodeTasks{1: {Queued: 3, Held: 1, Idle: 1}},
		Reasons: map[graph.NodeID]string{2: "exit code 3\nsee the \"log\""}}
}

// TestStatusFile checks a node status file word for word, and that its ads can be read.
func TestStatusFile(t *testing.T) {
	var b strings.Builder
	c := capturedFlow(t, "/d")
	if err := writeStatus(&b, c); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Type = \"DagStatus\";\n  DagFiles = {\n    \"/a \\\"b\\\".dag\"\n  };\n" +
		"  Timestamp = 1800000000; /* \"",
		"  DagStatus = 3; /* \"STATUS_SUBMITTED ()\" */\n  NodesTotal = 4;\n  NodesDone = 1;\n  NodesPre = 0;\n" +
			"  NodesQueued = 1;\n  NodesPost = 0;\n  NodesReady = 0;\n  NodesUnready = 0;\n  NodesFutile = 1;\n" +
			"  NodesFailed = 1;\n  JobProcsHeld = 1;\n  JobProcsIdle = 2; /* includes held */\n]\n",
		"  Node = \"A\";\n  NodeStatus = 5; /* \"STATUS_DONE\" */\n  StatusDetails = \"User defined as DONE\";\n",
		"  Node = \"B\";\n  NodeStatus = 3; /* \"STATUS_SUBMITTED\" */\n  StatusDetails = \"idle\";\n" +
			"  RetryCount = 2;\n  JobProcsQueued = 3;\n  JobProcsHeld = 1;\n]\n",
		"StatusDetails = \"exit code 3 see the \\\"log\\\"\";\n", "  NextUpdate = 1800000030; /* \""} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the file lacks\n%s\nin\n%s", want, b.String())
		}
	}
	ads := strings.SplitAfter(b.String(), "\n]\n")
	for _, text := range ads[:len(ads)-1] {
		if _, err := classad.Parse(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if len(ads) != 7 || ads[6] != "" {
		t.Errorf("there are %d ads", len(ads)-1)
	}
	c.Phase = flow.Ended
	b.Reset()
	if err := writeStatus(&b, c); err != nil || !strings.Contains(b.String(),
		"DagStatus = 6; /* \"STATUS_ERROR (failed)\" */") || !strings.Contains(b.String(), "NextUpdate = 0;") {
		t.Errorf("at the end: %v\n%s", err, b.String())
	}
}

// TestFlowFiles checks when which files are written.
func TestFlowFiles(t *testing.T) {
	dir := t.TempDir()
	c := capturedFlow(t, dir)
	f := NewFlowFiles(newTestWriter(t).agents, slog.New(slog.DiscardHandler),
		func(context.Context, uint64) *queue.FlowCapture { return c })
	report := func(at time.Time) bool {
		seq, r := f.take(at)
		if r != nil {
			f.report(t.Context(), seq, r)
		}
		return r != nil
	}
	names := func() string {
		list, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range list {
			names = append(names, e.Name())
		}
		return strings.Join(names, " ")
	}
	now := time.Now()
	if f.Change(7); !report(now) || names() != "many.dot.0 once.dot status" {
		t.Fatalf("first there are %s", names())
	}
	if f.Change(7); report(now) {
		t.Error("the next version came at once")
	}
	if err := os.Remove(filepath.Join(dir, "once.dot")); err != nil {
		t.Fatal(err)
	}
	if !report(now.Add(time.Hour)) || names() != "many.dot.0 many.dot.1 status" {
		t.Errorf("then there are %s", names())
	}
	if report(now.Add(2 * time.Hour)) {
		t.Error("a version came without a change")
	}
	c.Plan.Reports.Status.IsAlways = true
	f.Change(7)
	if !report(now.Add(2*time.Hour)) || !report(now.Add(3*time.Hour)) {
		t.Error("no version came without a change, with ALWAYS-UPDATE")
	}
	last := *c
	last.Phase = flow.Ended
	if f.Finish(&last); !report(now) || len(f.rows) > 0 {
		t.Errorf("at the end there is %v", f.rows)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "status")); err != nil || !strings.Contains(string(got), "(failed)") {
		t.Errorf("the last status is %s, %v", got, err)
	}
	if f.Resume(7); !report(now) || strings.Contains(names(), "once.dot") == false {
		t.Errorf("after a restart there are %s", names())
	}
	once, err := os.ReadFile(filepath.Join(dir, "once.dot"))
	if err != nil || !strings.Contains(string(once), "    \"C\" [shape=ellipse label=\"C (I)\"];\n") ||
		!strings.Contains(string(once), "// Beginning of commands included from style.\nrankdir=LR;\n// End of") {
		t.Errorf("the first picture: %v\n%s", err, once)
	}
	dot, err := os.ReadFile(filepath.Join(dir, "many.dot.0"))
	for _, want := range []string{"digraph DAG {\n    label=\"DAGMan Job status at ",
		"    \"B\" [shape=ellipse peripheries=2 label=\"B (R)\"];\n", "    \"A\" -> \"C\" [style=dashed];\n"} {
		if err != nil || !strings.Contains(string(dot), want) {
			t.Errorf("the picture lacks %s: %v\n%s", want, err, dot)
		}
	}
}

// TestSavePoint checks that an older save point stays under another name.
func TestSavePoint(t *testing.T) {
	agents := newTestWriter(t).agents
	dir := t.TempDir()
	save := queue.FlowRescue{Base: filepath.Join(dir, "save_files", "A.save")}
	for _, text := range []string{"one", "two", "three"} {
		save.Text = text
		if err := WriteSavePoint(t.Context(), agents, save); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"A.save": "three", "A.save.old": "two"} {
		if got, err := os.ReadFile(filepath.Join(dir, "save_files", name)); err != nil || string(got) != want {
			t.Errorf("%s has %q, %v", name, got, err)
		}
	}
}
