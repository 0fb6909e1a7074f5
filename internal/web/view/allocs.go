package view

import (
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/wire"
)

// AllocList is a list of allocs: reserved parts of machines, and what is inside.
type AllocList struct {
	Version     int            `json:"v"`
	Allocs      []document.Job `json:"allocs"`
	Truncated   bool           `json:"truncated,omitempty"` // there are more
	Unreachable []Unreachable  `json:"unreachable,omitempty"`

	Filter AllocFilter `json:"-"`
}

// AllocFilter is what the address of a list of allocs says.
type AllocFilter struct {
	All bool
	Set string // the only alloc set
}

// maxAllocs bounds the allocs of a list.
const maxAllocs = 500

// Allocs lists the allocs of the user's sets, or of all users', that have not ended.
func Allocs(c *route.Call) (any, error) {
	f := AllocFilter{All: c.QueryValue("all") == "1", Set: c.QueryValue("set")}
	l := AllocList{Version: document.Version, Allocs: []document.Job{}, Filter: f}
	sel := &wire.Selection{Constraint: "Alloc =?= true", Mine: !f.All && f.Set == ""}
	if f.Set != "" {
		_, err := roost.ParseJobID(f.Set, "here")
		if err != nil || len(f.Set) > maxID || !strings.Contains(f.Set, ".") {
			return nil, fmt.Errorf("set: %.40q: %w: the id of an alloc set is wanted, as 12.n1", f.Set, roost.Invalid)
		}
		sel.Selectors = []string{f.Set}
	}
	query := &wire.QueryRequest{Selection: sel, Tasks: true, Limit: maxAllocs + 1}
	var err error
	l.Unreachable, err = queryPool(c, &wire.PoolQuery{Query: query}, func(s *wire.JobStatus) error {
		switch {
		case document.IsFinal(s) || s.GetAlloc() == nil:
		case len(l.Allocs) == maxAllocs:
			l.Truncated = true
		default:
			l.Allocs = append(l.Allocs, document.JobOf(s, true))
		}
		return nil
	})
	for _, u := range l.Unreachable {
		c.NoteUnreachable(u.Node)
	}
	return l, err
}
