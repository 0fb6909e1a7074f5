package api

import (
	"errors"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
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
