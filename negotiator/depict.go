package negotiator

import (
	"maps"
	"time"

	"github.com/roost-batch/roost/negotiator/match"
	"github.com/roost-batch/roost/negotiator/picture"
)

// asks are requests as a plan sees them.
func asks(all []*request) []*picture.Ask {
	list := make([]*picture.Ask, len(all))
	for i, r := range all {
		list[i] = &r.Ask
	}
	return list
}

// picture is the cell as it is now, but for what it asks for.
func (c *cell) picture(now time.Time) *picture.Picture {
	c.evicted.lapse(now)
	c.starts.prune(now)
	p := &picture.Picture{
		Now: now, Policy: &c.policy, Machines: c.sorted, Pending: c.promises(), Drains: c.drains, Known: func(name string) bool { return c.schedds[name].known() },
		Licences: c.licences, Promised: c.promisedLicences(), Prod: c.prodHeld, Used: c.used, Granted: c.granted(), Charged: maps.Keys(c.charged), Evicted: c.evicted, Starts: c.starts.list,
	}
	if c.policy.Counts {
		c.count(p)
	}
	return p
}

// promises are what was promised of machines and does not show in their ads yet.
func (c *cell) promises() map[string][]match.Promise {
	all := make(map[string][]match.Promise, len(c.promised))
	for name, list := range c.promised {
		promises := make([]match.Promise, 0, len(list))
		for _, p := range list {
			if !p.overdue {
				promises = append(promises, p.promise)
			}
		}
		if len(promises) > 0 {
			all[name] = promises
		}
	}
	return all
}

// count adds to a picture what runs.
func (c *cell) count(p *picture.Picture) {
	for _, s := range c.schedds {
		for _, r := range s.requests {
			r.Counts = s.counts(r)
			p.Asks = append(p.Asks, &r.Ask)
		}
		p.Ran = append(p.Ran, s.ran...)
	}
	for name := range c.claims {
		p.Strangers = p.Strangers || !c.schedds[name].known()
	}
}

// remember notes what runs of a schedd whose conversation ends. One that never came to tell all has nothing but new grants to add to what is known of it.
func (s *schedd) remember() {
	if s.mail == nil || !s.told && s.ran == nil {
		return
	}
	if s.told {
		s.ran = []picture.Running{}
	}
	for _, r := range s.requests {
		s.ran = append(s.ran, r.Running(s.counts(r)))
	}
	s.ran = picture.Merge(s.ran)
}

// counts is how many claims of a request count as running, beside what its schedd ran before: as long as that has not told of all, only those that it was
// granted since.
func (s *schedd) counts(r *request) int {
	if !s.told {
		return len(r.unseen)
	}
	return r.Claims + len(r.unseen)
}

// known reports whether what runs of a schedd is known otherwise than from machines.
func (s *schedd) known() bool { return s != nil && (s.told || s.ran != nil) }
