package match

import (
	"math"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// Matcher makes plans and stores the machines' ads in a table between them. It is not
// safe for concurrent use.
type Matcher struct {
	table           *classad.Table
	byName          map[string]*Machine
	numberByRow     []int32       // by row of the table: the machine's number
	machineByRow    []*Machine    // by row of the table; nil where there is no such row
	cycleNumber     int           // of the current cycle; rises by one with each plan
	machineTable                  // the state of the machines before a plan places anything
	fragmentation   fragmentState // how useful the idle GPUs are
	changedMachines []int32       // machines that were reset in this cycle
	// candidates that a heap retains at least; few more than the wanted units are ever
	// needed
	minCandidates int
	scratch       cycleScratch
}

// NewMatcher returns a matcher that knows no machines yet.
func NewMatcher() *Matcher {
	t := &Matcher{byName: map[string]*Machine{}, minCandidates: 256}
	t.table = classad.NewTable(classad.TableOptions{Requirements: []string{roost.AttrRequirements, roost.AttrStart},
		MatchAllByDefault: true})
	return t
}

// compiledQuery returns a class's request, compiled for the table.
func (t *Matcher) compiledQuery(c *RequestClass) *classad.Query {
	if c.compiledFor != t {
		c.compiledFor, c.query, c.rankCountsPrefer, c.noFit = t, t.table.Compile(c.Ad), nil, noFitCache{}
	}
	return c.query
}

// noMatch is the rank of a machine that does not match.
var noMatch = math.NaN()

// rankOrZero returns the rank as a number that can be compared: 0 where it is NaN.
func rankOrZero(rank float64) float64 {
	if rank != rank {
		return 0
	}
	return rank
}
