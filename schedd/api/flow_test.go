package api

import (
	"errors"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/schedd/flow/graph"
	"github.com/roost-batch/roost/schedd/flow/plan"
	"github.com/roost-batch/roost/schedd/queue"
)

// TestFlowScriptsRefused checks that a submit node without a startd takes no flow with a
// script. Other flows it takes.
func TestFlowScriptsRefused(t *testing.T) {
	p := &plan.Plan{Graph: graph.New(), Settings: []plan.NodeSettings{{}, {Pre: 1}}}
	id, _, err := p.Graph.AddNode([]byte("a"), graph.JobNode)
	if err != nil {
		t.Fatal(err)
	}
	specs := []queue.SubmitSpec{{}, {Flow: &queue.FlowSubmission{Plan: p}}}
	node := &config.Node{Name: "login1"}
	if err := checkFlowScripts(node, specs); err != nil {
		t.Errorf("a flow without scripts: %v", err)
	}
	p.Graph.Node(id).Settings = 1
	if err := checkFlowScripts(node, specs); !errors.Is(err, roost.Invalid) ||
		!strings.Contains(err.Error(), "login1 has no startd") {
		t.Errorf("got %v", err)
	}
	node.Startds = make([]config.StartdSettings, 1)
	if err := checkFlowScripts(node, specs); err != nil {
		t.Errorf("with a startd: %v", err)
	}
}

// TestParseFlow checks that a submission with a bad plan is refused.
func TestParseFlow(t *testing.T) {
	if f, err := parseFlow(nil); f != nil || err != nil {
		t.Errorf("no plan: %v, %v", f, err)
	}
	if _, err := parseFlow([]byte("\x01plan")); !errors.Is(err, roost.Invalid) && !errors.Is(err, roost.Exhausted) {
		t.Errorf("got %v", err)
	}
}

// TestTakeFlowJobs checks that what is done to the jobs of a submission comes back into
// it, their columns included.
func TestTakeFlowJobs(t *testing.T) {
	p := &plan.Plan{Graph: graph.New(), Texts: graph.NewTextTable(), Templates: []plan.JobTemplate{{}, {Count: 2}}}
	id, _, err := p.Graph.AddNode([]byte("a"), graph.JobNode)
	if err != nil {
		t.Fatal(err)
	}
	p.Graph.Node(id).Description = 1
	specs := []queue.SubmitSpec{{Ad: classad.New(), Count: 1},
		{Ad: classad.New(), Count: 1, Flow: &queue.FlowSubmission{Plan: p, Ads: []*classad.Ad{nil, classad.New()}}}}
	all := withFlowJobs(specs)
	if len(all) != 3 || all[2].Count != 2 {
		t.Fatalf("the jobs are %+v", all)
	}
	for i := range all {
		all[i].Ad = classad.New()
		all[i].Ad.SetInt("N", int64(i))
		all[i].Columns = []queue.TaskColumn{{Name: "c"}}
	}
	takeFlowJobs(specs, all)
	for i, ad := range []*classad.Ad{specs[0].Ad, specs[1].Ad, specs[1].Flow.Ads[1]} {
		if n, _ := ad.Int("N"); n != int64(i) {
			t.Errorf("ad %d is %v", i, ad)
		}
	}
	if len(specs[0].Columns) != 1 || specs[1].Flow == nil {
		t.Errorf("the submission is %+v", specs)
	}
	if err := checkStoredFlows(specs, all); err != nil {
		t.Error(err)
	}
	all[2].Ad.SetString(roost.AttrStoredInput, "x")
	if err := checkStoredFlows(specs, all); !errors.Is(err, roost.Invalid) {
		t.Errorf("got %v", err)
	}
}
