package document

import (
	"cmp"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
)

// JobGraph is what a job waits for and what waits for it, at any distance.
type JobGraph struct {
	Version      int             `json:"v"`
	Job          Job             `json:"job"`
	Jobs         []GraphJob      `json:"jobs"`                 // by column, and from above in each
	Dependencies []JobDependency `json:"dependencies"`         // in the order of Jobs
	Conditions   []string        `json:"conditions,omitempty"` // of the job itself: "on:2"
	Cut          bool            `json:"cut,omitempty"`        // there are further jobs
}

// GraphJob is a job of a graph. It has its id alone if it has left the queue and the
// history, or is not shown to the reader.
type GraphJob struct {
	ID     string `json:"id"`
	Name   string `json:"name,omitempty"`
	Owner  string `json:"owner,omitempty"`
	State  string `json:"state,omitempty"`
	Column int    `json:"column"` // jobs that wait for no other one are in column 0
}

// JobDependency says that a job waits for another one, or that one of both runs (runone).
type JobDependency struct {
	From string `json:"from"` // what is waited for
	To   string `json:"to"`
	Type string `json:"type"` // as PBS has it: "afterok"
}

// PlainJobID returns an id of a job without the brackets of an array.
func PlainJobID(id string) string {
	if open, end := strings.IndexByte(id, '['), strings.IndexByte(id, ']'); open > 0 && end > open {
		return id[:open] + id[end+1:]
	}
	return id
}

// Arrange gives each job its column, right of all that it waits for. It orders the jobs
// of a column by the places of those, and then by their ids.
func (g *JobGraph) Arrange() {
	slices.SortFunc(g.Jobs, func(a, b GraphJob) int {
		x, _ := roost.ParseJobID(PlainJobID(a.ID), "")
		y, _ := roost.ParseJobID(PlainJobID(b.ID), "")
		return cmp.Or(cmp.Compare(x.Seq, y.Seq), cmp.Compare(a.ID, b.ID))
	})
	at := map[string]int{}
	for i := range g.Jobs {
		at[PlainJobID(g.Jobs[i].ID)] = i
	}
	for range g.Jobs { // as often as the longest chain can be
		moved := false
		for _, d := range g.Dependencies {
			from, to := &g.Jobs[at[d.From]], &g.Jobs[at[d.To]]
			if d.IsOrdered() && to.Column <= from.Column && from.Column+1 < len(g.Jobs) {
				to.Column, moved = from.Column+1, true
			}
		}
		if !moved {
			break
		}
	}
	place := map[string]float64{}
	slices.SortStableFunc(g.Jobs, func(a, b GraphJob) int { return cmp.Compare(a.Column, b.Column) })
	for first := 0; first < len(g.Jobs); {
		end := first
		for end < len(g.Jobs) && g.Jobs[end].Column == g.Jobs[first].Column {
			end++
		}
		column := g.Jobs[first:end]
		height := map[string]float64{}
		for i := range column {
			height[column[i].ID] = g.meanPlace(PlainJobID(column[i].ID), place)
		}
		slices.SortStableFunc(column, func(a, b GraphJob) int { return cmp.Compare(height[a.ID], height[b.ID]) })
		for i := range column {
			place[PlainJobID(column[i].ID)] = float64(i) / float64(len(column))
		}
		first = end
	}
	slices.SortFunc(g.Dependencies, func(a, b JobDependency) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Type, b.Type))
	})
}

// IsOrdered reports whether one of the two jobs comes before the other.
func (d JobDependency) IsOrdered() bool { return d.Type != "runone" && d.Type != "syncwith" }

// meanPlace is the mean place of the jobs that a job waits for; 0 if there are none.
func (g *JobGraph) meanPlace(id string, place map[string]float64) float64 {
	sum, n := 0.0, 0.0
	for _, d := range g.Dependencies {
		if from, ok := place[d.From]; ok && d.To == id && d.IsOrdered() {
			sum, n = sum+from, n+1
		}
	}
	return sum / max(n, 1)
}
