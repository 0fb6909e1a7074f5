package match

import (
	"cmp"
	"math"
)

// The position of a request is how many units fair share would give to others before its
// next unit. These are all units of higher bands, and those of its own submitter with a
// higher priority or an earlier submission. Of another submitter in its band, those units
// come first that start at a lower level than the request's own submitter will have then
// (see fairshare.TurnQueue).
//
// It is the order now. Future submissions, and units that find no room at their turn, are
// unknown.

// submitterBacklog is what one submitter has waiting in a band.
type submitterBacklog struct {
	*submitterState
	requests []*requestState
	units    int
	cores    float64
}

// countUnitsAhead counts for each request the waiting units before it. Units of other
// submitters are counted only for requests that are to be explained.
func (p startExplainer) countUnitsAhead() {
	higher, above := 0, 0.0
	for rest := p.requests; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].with(rest[0]) {
			n++
		}
		crowds := backlogsOf(rest[:n])
		for i := range crowds {
			countOwnAhead(crowds, i, higher, above)
		}
		for i := range crowds {
			higher += crowds[i].units
			above += crowds[i].cores
		}
		rest = rest[n:]
	}
	p.waitingUnits = higher
}

// backlogsOf divides the sorted requests of a band by submitter.
func backlogsOf(wants []*requestState) (all []submitterBacklog) {
	for i, w := range wants {
		if i == 0 || wants[i-1].Submitter != w.Submitter {
			all = append(all, submitterBacklog{submitterState: w.submitter})
		}
		c := &all[len(all)-1]
		c.requests = append(c.requests, w)
		c.units += w.unitsLeft
		c.cores += w.unitWeight * float64(w.unitsLeft)
	}
	return all
}

// countOwnAhead counts for the requests of one submitter. higher and above are the units,
// and their cores, in higher bands.
func countOwnAhead(crowds []submitterBacklog, mine, higher int, above float64) {
	units, cores := 0, 0.0
	for _, w := range crowds[mine].requests {
		w.unitsAhead, w.higherAhead, w.ownAhead, w.weightAhead = higher+units, higher, units, above+cores
		// a request that its own limit excludes does not wait for others
		if w.Explain && w.unitsLeft > 0 && w.waitReason == "" {
			level := (w.submitter.usage + cores) * w.submitter.priorityIn(w.Band)
			for i := range crowds {
				if i != mine && crowds[i].units > 0 {
					n := crowds[i].unitsBefore(level, hasEarlierTurn(&crowds[i], &crowds[mine]))
					w.unitsAhead += n
					w.weightAhead += float64(n) * crowds[i].cores / float64(crowds[i].units)
				}
			}
		}
		units += w.unitsLeft
		cores += w.unitWeight * float64(w.unitsLeft)
	}
}

// priority returns the submitter's effective priority in the band of the backlog.
func (c *submitterBacklog) priority() float64 { return c.priorityIn(c.requests[0].Band) }

// hasEarlierTurn reports whether a has its turn before b if both are at the same level.
func hasEarlierTurn(a, b *submitterBacklog) bool {
	return cmp.Or(cmp.Compare(a.priority(), b.priority()),
		a.requests[0].Submitter.Compare(b.requests[0].Submitter)) < 0
}

// unitsBefore returns how many of a submitter's waiting units start at a lower level than
// the given one. The turn is of the submitter at the lowest level; first says who wins a
// tie.
func (c *submitterBacklog) unitsBefore(level float64, first bool) int {
	if c.cores <= 0 {
		return c.units
	}
	each := c.cores / float64(c.units)
	steps := (level/c.priority() - c.usage) / each
	whole := math.Round(steps)
	if math.Abs(steps-whole) > epsilon {
		whole = math.Ceil(steps)
	} else if first {
		whole++
	}
	return int(min(max(whole, 0), float64(c.units)))
}
