package match

import (
	"cmp"
	"math"
)

// Where a request stands among what waits: as many units come before one of it as fair share would give the others first. All units of higher bands
// do, and those of its own submitter that have a higher priority or are older. Of another submitter in its band, those come first that it starts at
// a lower level than the request's own submitter will stand at then (see share.Turns).
//
// It is how the order is now. What others have yet to submit, and what finds no room when its turn comes, nobody knows.

// crowd is what one submitter has waiting in a band.
type crowd struct {
	*account
	wants []*want
	units int
	cores float64
}

// countAhead says of each request how many waiting units come before it; what others have is looked at only for those that are to be explained.
func (p *plan) countAhead() {
	higher, above := 0, 0.0
	for rest := p.wants; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].with(rest[0]) {
			n++
		}
		crowds := crowdsOf(rest[:n])
		for i := range crowds {
			countOwn(crowds, i, higher, above)
		}
		for i := range crowds {
			higher += crowds[i].units
			above += crowds[i].cores
		}
		rest = rest[n:]
	}
	p.waiting = higher
}

// crowdsOf parts the requests of a band, which are in order, by submitter.
func crowdsOf(wants []*want) (all []crowd) {
	for i, w := range wants {
		if i == 0 || wants[i-1].Submitter != w.Submitter {
			all = append(all, crowd{account: w.account})
		}
		c := &all[len(all)-1]
		c.wants = append(c.wants, w)
		c.units += w.left
		c.cores += w.unit * float64(w.left)
	}
	return all
}

// countOwn counts for the requests of one submitter, with so many units, of so many cores, in higher bands.
func countOwn(crowds []crowd, mine, higher int, above float64) {
	units, cores := 0, 0.0
	for _, w := range crowds[mine].wants {
		w.ahead, w.higher, w.own, w.weightAhead = higher+units, higher, units, above+cores
		if w.Explain && w.left > 0 && w.held == "" { // what is held by a limit of its own does not wait for others
			level := (w.account.held + cores) * w.account.effective()
			for i := range crowds {
				if i != mine && crowds[i].units > 0 {
					n := crowds[i].before(level, precedes(&crowds[i], &crowds[mine]))
					w.ahead += n
					w.weightAhead += float64(n) * crowds[i].cores / float64(crowds[i].units)
				}
			}
		}
		units += w.left
		cores += w.unit * float64(w.left)
	}
}

// precedes reports whether of two submitters at one level the first has its turn first.
func precedes(a, b *crowd) bool {
	return cmp.Or(cmp.Compare(a.effective(), b.effective()), a.wants[0].Submitter.Compare(b.wants[0].Submitter)) < 0
}

// before is how many of a submitter's waiting units start at a lower level than that: a turn is of whoever stands lowest, and of equals it is the
// first's.
func (c *crowd) before(level float64, first bool) int {
	if c.cores <= 0 {
		return c.units
	}
	each := c.cores / float64(c.units)
	steps := (level/c.effective() - c.held) / each
	whole := math.Round(steps)
	if math.Abs(steps-whole) > dust {
		whole = math.Ceil(steps)
	} else if first {
		whole++
	}
	return int(min(max(whole, 0), float64(c.units)))
}
