package web

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire"
)

// TestFlowPage checks the nodes of a flow, in JSON and as a page with their graph.
func TestFlowPage(t *testing.T) {
	w := newTestWeb(t)
	cookie := w.logIn("ann")
	get := func(path string) string { return w.do(as(w.request("GET", path, ""), cookie)).Body.String() }
	if answer := w.do(as(w.request("GET", "/v1/jobs/1.n1/flow", ""), cookie)); answer.Code != 404 ||
		!strings.Contains(answer.Body.String(), "it is no flow") {
		t.Errorf("of a job that is no flow: %d %s", answer.Code, answer.Body)
	}
	w.schedd.flow = []*wire.FlowNode{
		{Name: "A", Kind: "JOB", State: "done", Children: []string{"B", "~C"}},
		{Name: "B", Kind: "JOB", State: "failed", Attempt: 2, Retries: 2, Reason: "exit code 3", Job: "7.n1"},
		{Name: "C", Kind: "JOB", State: "job", Job: "8.n1", Children: []string{"B"}},
	}
	var f document.FlowNodes
	if err := json.Unmarshal([]byte(get("/v1/jobs/1.n1/flow")), &f); err != nil || len(f.Nodes) != 3 || f.Cut ||
		f.Nodes[1].Reason != "exit code 3" || f.Job.Flow.States["failed"] != 1 {
		t.Errorf("got %v, %+v", err, f)
	}
	columns := map[string]int{}
	for _, n := range f.Graph().Jobs {
		columns[n.ID] = n.Column
	}
	if columns["A"] != 0 || columns["C"] != 1 || columns["B"] != 2 {
		t.Errorf("the columns are %v", columns)
	}
	f = document.FlowNodes{}
	if err := json.Unmarshal([]byte(get("/v1/jobs/1.n1/flow?state=failed&state=job&limit=1")), &f); err != nil ||
		len(f.Nodes) != 1 || f.Nodes[0].Name != "B" || !f.Cut {
		t.Errorf("of some nodes: %v, %+v", err, f)
	}
	for path, all := range map[string][]string{
		"/jobs/1.n1/flow": {`href="/jobs/8.n1"`, "exit code 3", "2 of 2", `class="job failed"`, `class="edge any"`,
			`class="edge ok"`, `aria-label="nodes of flow 1.n1"`},
		"/jobs/1.n1/flow?state=done": {`<option selected>done</option>`},
		"/jobs/1.n1":                 {"3 nodes of a flow", `href="/jobs/1.n1/flow"`},
	} {
		page := get(path)
		for _, want := range all {
			if !strings.Contains(page, want) {
				t.Errorf("%s lacks %s: %s", path, want, page)
			}
		}
	}
	if answer := w.do(as(w.request("GET", "/v1/jobs/1.n1/flow?state=x", ""), cookie)); answer.Code != 400 {
		t.Errorf("of no state: got %d", answer.Code)
	}
}
