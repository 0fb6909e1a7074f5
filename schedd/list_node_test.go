package schedd

import (
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/wire"
)

// TestTasksOfNode checks that the list of the tasks on a node has those that run there.
// Tasks of other nodes are not in it.
func TestTasksOfNode(t *testing.T) {
	p := newPool(t)
	p.submit("held", 2, "HoldOnSubmit = true")
	array := p.submit("array", 3, "").GetIds()[0]
	single := p.submit("single", 1, "").GetIds()[0]
	for range 4 {
		p.startd.started(receiveNext(t, p.startd.activated, "an attempt").GetAttempt())
	}
	p.await(array, "running 3")
	p.await(single, "running 1")
	running := p.query(&wire.QueryRequest{Selection: &wire.Selection{States: []string{"running"}}, Tasks: true})
	slices.SortFunc(running, func(a, b *wire.JobStatus) int { return strings.Compare(a.GetId(), b.GetId()) })
	node := running[0].GetNode()
	for state, want := range map[string][]*wire.JobStatus{"": running, "running": running, "suspended": nil} {
		q := &wire.QueryRequest{Node: node, Tasks: true, Selection: &wire.Selection{}}
		if state != "" {
			q.Selection.States = []string{state}
		}
		got := p.query(q)
		slices.SortFunc(got, func(a, b *wire.JobStatus) int { return strings.Compare(a.GetId(), b.GetId()) })
		if numbers(got) != numbers(want) || state == "" && len(got) != 4 {
			t.Errorf("%q on %s: got %s, want %s", state, node, numbers(got), numbers(want))
		}
	}
	if got := p.query(&wire.QueryRequest{Node: node, Tasks: true, Limit: 2}); len(got) != 2 {
		t.Errorf("at most 2: got %s", numbers(got))
	}
	if got := p.query(&wire.QueryRequest{Node: "elsewhere", Tasks: true}); len(got) > 0 {
		t.Errorf("on another node: %s", numbers(got))
	}
	for _, q := range []*wire.QueryRequest{{}, {Tasks: true, History: true}, {Tasks: true, Ads: true},
		{Tasks: true, Newest: true}, {Tasks: true, Table: true},
		{Tasks: true, Selection: &wire.Selection{Selectors: []string{"1"}}},
		{Tasks: true, Selection: &wire.Selection{Mine: true}},
		{Tasks: true, Selection: &wire.Selection{Constraint: "true"}}} {
		q.Node = node
		if rows, err := receive(p.client.Query(p.ctx(), q)); err == nil {
			t.Errorf("%v: got %v", q, rows)
		}
	}
}
