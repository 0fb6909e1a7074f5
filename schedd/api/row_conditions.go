package api

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/table"
)

// rowConditions are the conditions of a list that its rows are searched for.
type rowConditions struct {
	bands, queues []string
	namePart      string // in lower case
	states        table.StateSet
}

func newRowConditions(req *wire.QueryRequest, f selectionFilter) rowConditions {
	c := rowConditions{bands: req.GetBands(), queues: req.GetQueues(), namePart: strings.ToLower(req.GetNamePart())}
	for _, state := range f.States {
		c.states.Add(state)
	}
	if f.WithFailedTask {
		c.states.AddFailed()
	}
	return c
}

// isEmpty reports whether they admit each row.
func (c *rowConditions) isEmpty() bool {
	return len(c.bands) == 0 && len(c.queues) == 0 && c.namePart == "" && c.states == 0
}

// admits reports whether a row meets them. The rows of the history have to be decoded for
// that.
func (c *rowConditions) admits(r *table.JobRow) (bool, error) {
	if c.isEmpty() {
		return true, nil
	}
	terms := r.Terms
	if terms == nil {
		status := &wire.JobStatus{}
		if err := proto.Unmarshal([]byte(r.Text.String()), status); err != nil {
			return false, err
		}
		terms = termsOf(status)
	}
	return (len(c.bands) == 0 || slices.Contains(c.bands, terms.Band)) &&
		(len(c.queues) == 0 || slices.Contains(c.queues, terms.Queue)) &&
		(c.states == 0 || c.states.Overlaps(terms.States)) &&
		(c.namePart == "" || strings.Contains(terms.LowerName, c.namePart)), nil
}

// termsOf returns what the row of a job is searched by.
func termsOf(m *wire.JobStatus) *table.SearchTerms {
	terms := &table.SearchTerms{LowerName: strings.ToLower(m.GetName()), Queue: m.GetQueue(),
		Band: m.GetBand()}
	for name, tasks := range m.GetCounts() {
		if state, err := roost.ParseTaskState(name); err == nil && tasks > 0 {
			terms.States.Add(state)
		} else if name == "failed" && tasks > 0 {
			terms.States.AddFailed()
		}
	}
	return terms
}
