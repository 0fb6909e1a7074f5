package schedd

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/roost-batch/roost/internal/wire"
)

// newestPage asks for a part of the list of the newest jobs. It returns its rows, and the
// place behind which the next part begins.
func (p *testPool) newestPage(req *wire.QueryRequest, after []*wire.RowPlace) ([]*wire.JobStatus, []*wire.RowPlace) {
	p.Helper()
	req.Newest = true
	answer, err := receive(p.client.QueryPool(p.ctx(), &wire.PoolQuery{Query: req, After: after}))
	if err != nil {
		p.Fatal(err)
	}
	var rows []*wire.JobStatus
	for _, row := range answer {
		rows = append(rows, row.GetStatus())
	}
	if len(rows) > 0 {
		after = []*wire.RowPlace{{Node: hostName, Place: rows[len(rows)-1].GetPlace()}}
	}
	return rows, after
}

// TestNewestPages walks through all parts of the list while jobs are submitted and
// removed. Two of them have changed places. Each job that stays unchanged has to be
// shown once, and none twice.
func TestNewestPages(t *testing.T) {
	p := newPool(t)
	p.stop()
	p.addEndedJobs("a", "b", "c")
	p.start()
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range 40 {
		p.submit(fmt.Sprint("first ", i), 1+i%2, `HoldOnSubmit = true`)
	}
	p.act(wire.ActRequest_REMOVE, "7")
	p.actWith(&wire.ActRequest{Verb: wire.ActRequest_ORDER,
		Selection: &wire.Selection{Selectors: []string{"10", "20"}}})
	for _, history := range []bool{false, true} {
		all, _ := p.newestPage(&wire.QueryRequest{History: history}, nil)
		want := p.query(&wire.QueryRequest{History: history, Selection: &wire.Selection{}})
		want = slices.DeleteFunc(want, func(s *wire.JobStatus) bool {
			return !history && s.GetCounts()["removed"] == s.GetTasks()
		})
		if len(all) != len(want) || len(all) < 39 {
			t.Fatalf("history %v: got %d jobs, want %d", history, len(all), len(want))
		}
		changed, seen := map[string]bool{}, map[string]int{}
		var after []*wire.RowPlace
		for round := 0; ; round++ {
			var rows []*wire.JobStatus
			if rows, after = p.newestPage(&wire.QueryRequest{History: history, Limit: 4}, after); len(rows) == 0 {
				break
			}
			for _, r := range rows {
				seen[r.GetId()]++
			}
			p.submit(fmt.Sprint(history, " more ", round), 1, `HoldOnSubmit = true`)
			id := all[rng.IntN(len(all))].GetId()
			if p.act(wire.ActRequest_REMOVE, id).GetError() == "" {
				changed[id] = true
			}
		}
		for _, s := range all {
			if n := seen[s.GetId()]; n > 1 || n == 0 && !changed[s.GetId()] {
				t.Errorf("history %v: %s was shown %d times", history, s.GetId(), n)
			}
		}
	}
}

// TestNewestConditions checks the conditions of such a list against all of its rows, with
// and without those of the history.
func TestNewestConditions(t *testing.T) {
	p := newPool(t)
	p.stop()
	p.addEndedJobs("a", "b", "Job 1")
	p.start()
	for i := range 12 {
		p.submit(fmt.Sprint(i), 1, fmt.Sprintf(`JobName = "Job %d"; HoldOnSubmit = %v`, i%3, i%2 == 0))
	}
	for idle := -1; idle != 0 && p.Context().Err() == nil; { // those that are not held are about to leave that state
		idle = 0
		all, _ := p.newestPage(&wire.QueryRequest{}, nil)
		for _, s := range all {
			idle += int(s.GetCounts()["idle"])
		}
	}
	for name, c := range map[string]struct {
		req  *wire.QueryRequest
		want func(*wire.JobStatus) bool
	}{
		"state": {&wire.QueryRequest{Selection: &wire.Selection{States: []string{"held"}}},
			func(s *wire.JobStatus) bool { return s.GetCounts()["held"] > 0 }},
		"several states": {&wire.QueryRequest{Selection: &wire.Selection{States: []string{"idle", "completed"}}},
			func(s *wire.JobStatus) bool { return s.GetCounts()["idle"]+s.GetCounts()["completed"] > 0 }},
		"failed": {&wire.QueryRequest{Selection: &wire.Selection{States: []string{"failed"}}},
			func(s *wire.JobStatus) bool { return s.GetCounts()["failed"] > 0 }},
		"name": {&wire.QueryRequest{NamePart: "job 1"}, func(s *wire.JobStatus) bool { return s.GetName() == "Job 1" }},
		"mine": {&wire.QueryRequest{Selection: &wire.Selection{Mine: true}},
			func(*wire.JobStatus) bool { return true }},
		"owner": {&wire.QueryRequest{Owners: []string{"nobody-of-that-name"}},
			func(*wire.JobStatus) bool { return false }},
		"band":  {&wire.QueryRequest{Bands: []string{"production"}}, func(*wire.JobStatus) bool { return false }},
		"queue": {&wire.QueryRequest{Queues: []string{"none"}}, func(*wire.JobStatus) bool { return false }},
	} {
		for _, history := range []bool{false, true} {
			all, _ := p.newestPage(&wire.QueryRequest{History: history}, nil)
			want := slices.DeleteFunc(all, func(s *wire.JobStatus) bool { return !c.want(s) })
			c.req.History = history
			if got, _ := p.newestPage(c.req, nil); numbers(got) != numbers(want) {
				t.Errorf("%s, history %v: got %s, want %s", name, history, numbers(got), numbers(want))
			}
		}
	}
	for _, req := range []*wire.QueryRequest{{Tasks: true}, {Ads: true},
		{Selection: &wire.Selection{Selectors: []string{"1"}}}, {Selection: &wire.Selection{Constraint: "true"}}} {
		req.Newest = true
		if rows, err := receive(p.client.QueryPool(p.ctx(), &wire.PoolQuery{Query: req})); err == nil {
			t.Errorf("%v: got %v", req, rows)
		}
	}
}
