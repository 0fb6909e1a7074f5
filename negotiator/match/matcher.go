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
	atRow   []int32    // by row: the machine's number
	byRow   []*Machine // nil where the table has no such row
	cycle   int        // rises with each plan
	ground             // how the machines stand
	gpus    fragments  // how useful the idle GPUs are
	fresh   []int32    // machines that began anew in this plan
	fewest  int        // candidates that are kept at least: not many more than units are wanted are needed
	scratch scratch
}

// NewMatcher returns a matcher that knows no machines yet.
func NewMatcher() *Matcher {
	t := &Matcher{byName: map[string]*Machine{}, fewest: 256}
	t.table = classad.NewTable(classad.TableOptions{Requirements: []string{roost.AttrRequirements, roost.AttrStart}, Lax: true})
	return t
}

// query is a class's request, compiled for the table.
func (t *Matcher) query(c *Class) *classad.Query {
	if c.of != t {
		c.of, c.query, c.likes, c.barren = t, t.table.Compile(c.Ad), nil, barren{}
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
