package match

import (
	"math"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// Matcher makes plans, and keeps the machines' ads in a table between them. It is not safe for concurrent use.
type Matcher struct {
	table   *classad.Table
	byName  map[string]*Machine
	byRow   []*Machine // nil where the table has no such row
	cycle   int        // rises with each plan
	scratch scratch
}

// NewMatcher returns a matcher that knows no machines yet.
func NewMatcher() *Matcher {
	t := &Matcher{byName: map[string]*Machine{}}
	t.table = classad.NewTable(classad.TableOptions{Requirements: []string{roost.AttrRequirements, roost.AttrStart}, Lax: true})
	return t
}

// sync brings the table up to date with the machines of a snapshot. A machine that is the same as in the last plan costs nothing but a look.
func (t *Matcher) sync(machines []*Machine) {
	for at, m := range machines {
		m.at, m.cycle = int32(at), t.cycle
		if m.inTable {
			continue
		}
		m.inTable = true
		if old := t.byName[m.Name]; old != nil && old.inTable && old.cycle != t.cycle {
			m.row, old.inTable = old.row, false
			t.table.Set(m.row, m.Ad)
		} else {
			m.row = t.table.Add(m.Ad)
		}
		for int(m.row) >= len(t.byRow) {
			t.byRow = append(t.byRow, nil)
		}
		t.byName[m.Name], t.byRow[m.row] = m, m
	}
	if t.table.Len() == len(machines) {
		return
	}
	for row, m := range t.byRow {
		if m != nil && m.cycle != t.cycle {
			t.table.Delete(classad.Row(row))
			m.inTable, t.byRow[row] = false, nil
			if t.byName[m.Name] == m {
				delete(t.byName, m.Name)
			}
		}
	}
}

// query is a class's request, compiled for the table.
func (t *Matcher) query(c *Class) *classad.Query {
	if c.query == nil {
		c.query = t.table.Compile(c.Ad)
	}
	return c.query
}

// noMatch is the rank of a machine that does not match.
var noMatch = math.NaN()

// usable is a rank as an order can use it: 0 where it is not a number.
func usable(rank float64) float64 {
	if rank != rank {
		return 0
	}
	return rank
}
