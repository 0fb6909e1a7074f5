package negotiator

import (
	"time"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/share"
)

// holdsEvery is how long a change of what a submitter uses may wait for grants to be committed with it.
const holdsEvery = time.Second

// draft is what the cell has decided and nobody may act on before it is committed: the grants of a cycle, and what submitters use from now on.
// Sent before that, a grant could be one that the next leader knows nothing of.
type draft struct {
	grants []*pending
	holds  map[share.Submitter]float64 // in cores
}

// take returns what is to be committed now, and false if nothing is or it can wait for company.
func (c *cell) take(now time.Time) (draft, bool) {
	d := c.draft
	if len(d.grants) == 0 && (c.holdsBy.IsZero() || now.Before(c.holdsBy)) {
		return draft{}, false
	}
	c.draft, c.holdsBy = draft{holds: map[share.Submitter]float64{}}, time.Time{}
	return d, true
}

// committed sends the grants of a draft that is in the log now. A schedd that has gone in the meantime knows nothing of what it asked for: what
// it was to get is free again.
func (c *cell) committed(now time.Time, d draft) {
	for who, cores := range d.holds {
		c.book.Hold(now, who, cores)
	}
	for _, p := range d.grants {
		s := c.schedds[p.request.Schedd]
		if s == nil || s.mail != p.mail {
			c.forget(p)
			c.changed = true
			continue
		}
		p.stage, p.deadline = granted, now.Add(grantLife)
		c.sweepBy(p.deadline)
		s.mail.put(&wire.ToSchedd{Of: &wire.ToSchedd_Grant{Grant: p.message}})
		p.message = nil
	}
}

// hold notes that a submitter uses so many cores from now on.
func (c *cell) hold(now time.Time, who share.Submitter, cores float64) {
	if c.charged[who] == cores {
		return
	}
	c.charged[who], c.draft.holds[who] = cores, cores
	if c.holdsBy.IsZero() {
		c.holdsBy = now.Add(holdsEvery)
	}
}
