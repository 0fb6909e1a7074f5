package match

import (
	"math"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// Matcher makes plans, and keeps the machines' ads in a table between them. It is not
// safe for concurrent use.
type Matcher struct {
	table           *classad.Table
	byName          map[string]*Machine
	numberByRow     []int32       // by row: the machine's number
	machineByRow    []*Machine    // nil where the table has no such row
	cycleNumber     int           // rises with each plan
	machineTable                  // how the machines stand
	fragmentation   fragmentState // how useful the idle GPUs are
	changedMachines []int32       // machines that began anew in this plan
	minCandidates   int           // candidates that are kept at least: not many more than units are wanted are needed
	scratch         cycleScratch
}

// NewMatcher returns a matcher that knows no machines yet.
func NewMatcher() *Matcher {
	t := &Matcher{byName: map[string]*Machine{}, minCandidates: 256}
	t.table = classad.NewTable(classad.TableOptions{Requirements: []string{roost.AttrRequirements, roost.AttrStart},
		MatchAllByDefault: true})
	return t
}

// compiledQuery is a class's request, compiled for the table.
func (t *Matcher) compiledQuery(c *RequestClass) *classad.Query {
	if c.compiledFor != t {
		c.compiledFor, c.query, c.rankCountsPrefer, c.noFit = t, t.table.Compile(c.Ad), nil, noFitCache{}
	}
	return c.query
}

// noMatch is the rank of a machine that does not match.
var noMatch = math.NaN()

// rankOrZero is a rank as an order can use it: 0 where it is not a number.
func rankOrZero(rank float64) float64 {
	if rank != rank {
		return 0
	}
	return rank
}
