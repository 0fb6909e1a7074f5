package page

import (
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/document"
)

// TestEvictionsPage renders a chain with both kinds of causes, and one without any.
func TestEvictionsPage(t *testing.T) {
	pages, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	full := document.PreemptionChain{ID: "5.n1", Evictions: []document.Eviction{
		{Attempt: 1, Node: "n1", Time: "2026-11-28T05:26:30.000Z", Cause: "preempted", Wall: 9, Lost: 4,
			Preemptor: &document.PreemptionParty{Job: "8.n2", Owner: "ann", Band: "production"}, NextAttempt: 2,
			NextNode: "n2", NextTime: "2026-11-28T05:26:40.000Z"},
		{Attempt: 2, Node: "n2", Time: "2026-11-28T05:27:30.000Z", Cause: "vacated", Reason: "the owner is back"}},
		Displaced: []document.Displacement{{PreemptionParty: document.PreemptionParty{Job: "3.n1", Owner: "bob",
			Band: "free"}, Attempt: 2, Time: "2026-11-28T05:26:40.000Z"}}}
	for want, chain := range map[string]document.PreemptionChain{
		`<a href="/jobs/8.n2">8.n2</a> of ann (production)`: full,
		`<a href="/jobs/3.n1">3.n1</a> of bob (free)`:       full,
		`4.0s since its last checkpoint`:                    full,
		`<a href="/nodes/n2">see the node</a>`:              full,
		`not yet`:                                           full,
		`No attempt was ended early`:                        {ID: "5.n1"},
		`<h1>Preemption of 5.n1</h1>`:                       {ID: "5.n1"},
	} {
		var b strings.Builder
		err := pages.Render(&b, "evictions", Frame{User: "ann", Path: "/tasks/5.n1/evictions", Data: chain})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in the page:\n%s", want, b.String())
		}
	}
}
