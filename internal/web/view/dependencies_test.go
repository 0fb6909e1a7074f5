package view

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire"
)

// graphPool finds the jobs of a test, by id.
type graphPool map[string]*wire.JobStatus

func (p graphPool) find(id string) (*wire.JobStatus, error) {
	if s := p[id]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("job %s: %w", id, roost.NotFound)
}

// add adds a job with what it was submitted with, and what is left of that.
func (p graphPool) add(id, submitted string, left ...string) {
	ad := "[JobName = \"x\"]"
	if submitted != "" {
		ad = fmt.Sprintf("[DependsOn = {%s}]", submitted)
	}
	p[document.PlainJobID(id)] = &wire.JobStatus{Id: id, Name: "name " + id, State: "idle", Tasks: 1, Ad: ad,
		Depends: left}
}

// graphText writes jobs by column, and dependencies.
func graphText(g document.JobGraph) string {
	var lines []string
	for _, j := range g.Jobs {
		lines = append(lines, fmt.Sprintf("%d %s %s", j.Column, j.ID, j.State))
	}
	for _, d := range g.Dependencies {
		lines = append(lines, fmt.Sprintf("%s %s %s", d.From, d.Type, d.To))
	}
	return strings.Join(lines, "\n")
}

// TestTraceDependencies traces the same jobs from each of them. There are a diamond, an
// array, and a job that is not shown.
func TestTraceDependencies(t *testing.T) {
	p := graphPool{}
	p.add("1.h", "", "beforeok:2.h", "beforeok:3.h")
	p.add("2[].h", `"afterok:1"`, "afterok:1.h", "beforeok:4.h")
	p.add("3.h", `"afterok:1.h", "afterok:1.h"`, "afterok:1.h", "beforeany:4.h")
	// The job 5 has left the history; the dependency upon it is fulfilled.
	p.add("4.h", `"afterokarray:2[][3]", "afterany:3.h", "afterok:5"`, "on:2", "afterokarray:2[][3].h", "afterany:3.h")
	want := `0 1.h idle
0 5.h 
1 2[].h idle
1 3.h idle
2 4.h idle
1.h afterok 2.h
1.h afterok 3.h
2.h afterokarray 4.h
3.h afterany 4.h
5.h afterok 4.h`
	for id, s := range p {
		g, err := traceDependencies(s, p.find)
		if err != nil {
			t.Fatal(err)
		}
		if got := graphText(g); got != want {
			t.Errorf("from %s: got\n%s\nwant\n%s", id, got, want)
		}
		if conditions := len(g.Conditions) > 0; conditions != (id == "4.h") || g.Cut {
			t.Errorf("from %s: conditions %q, cut %v", id, g.Conditions, g.Cut)
		}
	}
}

// TestBoundedGraph traces a chain that is longer than a graph may be. Then jobs wait for
// each other, and have texts that are no dependencies.
func TestBoundedGraph(t *testing.T) {
	p := graphPool{}
	for i := 1; i <= 3*maxGraphJobs; i++ {
		p.add(fmt.Sprintf("%d.h", i), "", fmt.Sprintf("afterok:%d.h", i+1))
	}
	g, err := traceDependencies(p["1.h"], p.find)
	if err != nil || !g.Cut || len(g.Jobs) != maxGraphJobs || len(g.Dependencies) != maxGraphJobs-1 {
		t.Errorf("got %d jobs, %d dependencies, cut %v, %v", len(g.Jobs), len(g.Dependencies), g.Cut, err)
	}
	p = graphPool{}
	p.add("1.h", `"", ":", "afterok:", "afterok:x", "after:1.h", "<b>:2.h"`, "afterok:2.h", "runone:2.h")
	p.add("2.h", "", "afterok:1.h", "runone:1.h")
	g, err = traceDependencies(p["1.h"], p.find)
	far := func(j document.GraphJob) bool { return j.Column > 1 }
	if err != nil || len(g.Jobs) != 2 || slices.ContainsFunc(g.Jobs, far) {
		t.Errorf("got %s, %v", graphText(g), err)
	}
	broken := func(string) (*wire.JobStatus, error) { return nil, roost.Unavailable }
	if _, err := traceDependencies(p["1.h"], broken); err == nil {
		t.Error("an error of the queue is not returned")
	}
}
