package schedd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// tableRows asks as qstat does.
func (p *testPool) tableRows(req *wire.QueryRequest, words ...string) (rows []*wire.JobStatus) {
	p.Helper()
	req.Table, req.Selection = true, &wire.Selection{Selectors: words}
	answer, err := receive(p.client.QueryPool(p.ctx(), &wire.PoolQuery{Query: req}))
	if err != nil {
		p.Fatal(err)
	}
	for _, part := range answer {
		if part.GetStatus() != nil {
			rows = append(rows, part.GetStatus())
		}
		for _, text := range part.GetBatch().GetJobs() {
			m := &wire.JobStatus{}
			if err := proto.Unmarshal(text, m); err != nil {
				p.Fatal(err)
			}
			rows = append(rows, m)
		}
	}
	return rows
}

// numbers are the ids of rows, and of what was refused why.
func numbers(rows []*wire.JobStatus) string {
	var parts []string
	for _, r := range rows {
		if refused := r.GetRefused(); refused != nil {
			parts = append(parts, refused.GetSelector()+"="+roost.ErrorKind(refused.GetKind()).Error())
			continue
		}
		parts = append(parts, strings.TrimSuffix(r.GetId(), "."+hostName))
	}
	return strings.Join(parts, " ")
}

// TestTables checks that a table has the same rows as another query, the oldest first.
// This holds whatever has changed since the last table. It also checks the result of each
// selector separately.
func TestTables(t *testing.T) {
	p := newPool(t)
	p.stop()
	p.addEndedJobs("a", "b")
	p.start()
	rng := rand.New(rand.NewPCG(1, 9))
	for i := range 12 {
		p.submit(fmt.Sprint(i), 1+i%3, `JobName = "j\377"; HoldOnSubmit = true; Environment = {"SECRET=1"}`)
	}
	for range 6 {
		id := fmt.Sprint(3 + rng.IntN(12))
		p.act(wire.ActRequest_REMOVE, id)
		for _, history := range []bool{false, true} {
			want := p.query(&wire.QueryRequest{History: history, Selection: &wire.Selection{}})
			slices.Reverse(want)
			want = slices.DeleteFunc(want, func(s *wire.JobStatus) bool {
				return !history && s.GetCounts()["removed"] == s.GetTasks()
			})
			got := p.tableRows(&wire.QueryRequest{History: history})
			if numbers(got) != numbers(want) {
				t.Fatalf("history %v: got %s, want %s", history, numbers(got), numbers(want))
			}
			for i := range got {
				if !proto.Equal(got[i], want[i]) {
					t.Errorf("got %v, want %v", got[i], want[i])
				}
			}
		}
	}
	p.act(wire.ActRequest_REMOVE, "5")
	for _, c := range []struct {
		words   string
		history bool
		want    string
	}{
		{"4 99 3", true, "4 99=not found 3"}, {"1 5", false, "1=already finished 5=already finished"},
		{"2 1", true, "2 1"}, {"8[1] 8[7] 8[0-5]", true, "8[1] 8[7]=not found 8[0] 8[1] 8[2]"},
		{"3.nowhere 4", true, "3.nowhere=not found 4"}, {"x", true, "x=invalid request"}, {"4[]", true, "4"},
	} {
		got := strings.ReplaceAll(numbers(p.tableRows(&wire.QueryRequest{History: c.history},
			strings.Fields(c.words)...)), roost.Finished.Error(), "already finished")
		if c.words == "8[1] 8[7] 8[0-5]" && !strings.HasPrefix(got, "8[1] 8[7]=") {
			t.Errorf("%s: got %s", c.words, got)
		} else if c.words != "8[1] 8[7] 8[0-5]" && got != c.want {
			t.Errorf("%s: got %s, want %s", c.words, got, c.want)
		}
	}
	for _, r := range p.tableRows(&wire.QueryRequest{Ads: true, Attributes: []string{roost.AttrJobName, "nothing"}}) {
		if !strings.HasPrefix(r.GetAd(), `[JobName = "j`) || strings.Contains(r.GetAd(), "SECRET") || r.GetDiscreet() {
			t.Fatalf("the ad is %s", r.GetAd())
		}
	}
	if got := p.tableRows(&wire.QueryRequest{History: true, Owners: []string{"nobody-of-that-name"}}); len(got) > 0 {
		t.Errorf("somebody else's are %v", got)
	}
	whole := numbers(p.tableRows(&wire.QueryRequest{History: true}))
	if got := numbers(p.tableRows(&wire.QueryRequest{History: true, Since: 1})); got != whole {
		t.Errorf("since ever: got %s, want %s", got, whole)
	}
	if got := numbers(p.tableRows(&wire.QueryRequest{History: true, Since: math.MaxInt64})); "1 2 "+got != whole {
		t.Errorf("with none of the past: got %s of %s", got, whole)
	}
	if got := numbers(p.tableRows(&wire.QueryRequest{History: true, Ended: true})); !strings.HasPrefix(got, "1 2") ||
		!strings.Contains(got, "5") {
		t.Errorf("those that have ended are %s", got)
	}
}

// TestOrderedTables checks that a list shows jobs that have exchanged positions at their
// new positions. This holds among the jobs of one schedd, and between those of other
// schedds. The history lists the jobs in the order of submission.
func TestOrderedTables(t *testing.T) {
	p := newPool(t)
	for i := range 4 {
		p.submit(fmt.Sprint(i), 1, "HoldOnSubmit = true")
	}
	if r := p.actWith(&wire.ActRequest{Verb: wire.ActRequest_ORDER,
		Selection: &wire.Selection{Selectors: []string{"1", "3"}}}); r.GetError() != "" {
		t.Fatal(r)
	}
	p.stop()
	p.start() // it is on disk
	rows := p.tableRows(&wire.QueryRequest{})
	if got := numbers(rows); got != "3 2 1 4" {
		t.Errorf("the list is %s", got)
	}
	if rows[0].GetOrderTime() != rows[2].GetSubmitted() || rows[2].GetOrderTime() != rows[0].GetSubmitted() ||
		rows[1].GetOrderTime() != 0 {
		t.Errorf("others put them elsewhere: %v", rows)
	}
	if got := numbers(p.tableRows(&wire.QueryRequest{History: true})); got != "3 2 1 4" {
		t.Errorf("with those that have ended the list is %s", got)
	}
}

// TestTablesAreFresh checks that a user who submits a job and then lists jobs sees it.
// This holds however many other users list jobs at the same time.
func TestTablesAreFresh(t *testing.T) {
	p := newPool(t)
	stop := make(chan struct{})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					p.tableRows(&wire.QueryRequest{})
				}
			}
		})
	}
	for i := range 60 {
		id := p.submit(fmt.Sprint(i), 1, "HoldOnSubmit = true").GetIds()[0]
		if got := numbers(p.tableRows(&wire.QueryRequest{}, id)); got != strings.TrimSuffix(id, "."+hostName) {
			t.Fatalf("%s was printed, and a list has %s", id, got)
		}
		p.act(wire.ActRequest_REMOVE, id)
		if got := numbers(p.tableRows(&wire.QueryRequest{})); got != "" {
			t.Fatalf("%s was removed, and a list has %s", id, got)
		}
	}
	close(stop)
	all.Wait()
}
