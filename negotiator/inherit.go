package negotiator

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
	"github.com/roost-batch/roost/negotiator/suspect"
)

// inheritFor is for how long a new leader keeps what its predecessor granted last: a claim that a schedd made of it stands in the machine's ad by
// then, and one that it makes later the machine judges by itself.
const inheritFor = 250 * time.Millisecond

// inherit takes over what the log says of the time before: what submitters use, and the grants that their machines' ads may not show yet.
func (c *cell) inherit(now time.Time) {
	c.record.look(func(l *ledger.Ledger) {
		c.lastID = l.LastGrant()
		for _, a := range l.Book().Accounts() {
			if a.Use > 0 {
				c.charged[a.Submitter] = a.Use
			}
		}
		c.evicted.inherit(now, l.Evictions())
		self := map[string]bool{}
		for _, o := range l.Objects(ledger.KindDrain) {
			self[o.Name] = o.By == ""
		}
		for _, d := range l.Drains() {
			if self[d.Node] && now.Before(d.Until) {
				c.own[d.Node] = time.Time{}
				c.suspects.Known(suspect.Drain{Machine: d.Node, Until: d.Until, Reason: d.Reason})
			}
		}
		for f := range l.Flights() {
			for i := range f.Grant.Units {
				c.adopt(now, f, f.Grant.ID+uint64(i))
			}
		}
	})
}

// adopt counts a grant of an earlier leader as pending. What became of it the machine's next ad shows. One with licences its schedd tells of when it
// comes (tellsOf), and until then it is kept for as long as it may be acted upon.
func (c *cell) adopt(now time.Time, f ledger.Flight, id uint64) {
	g := f.Grant
	p := &pending{
		id: id, epoch: f.Epoch, request: match.Key{Schedd: g.Schedd, ID: g.Request}, submitter: g.Submitter, machine: g.Machine, stage: claimed,
		promise: match.Promise{
			Request: match.Key{Schedd: g.Schedd, ID: g.Request}, Resources: g.Resources, NonProd: !g.Band.Prod(), Waiting: g.Waiting, Unit: g.Unit, Victims: g.Victims,
		},
		deadline: now.Add(inheritFor), started: g.Started, claimBy: time.Duration(g.ClaimBy),
	}
	if g.Stream {
		p.promise.Class = gpu.Stream
	}
	for _, l := range g.Limits {
		p.licences = append(p.licences, roost.Licences{Name: l.Limit, Count: int(l.Count)})
		p.deadline = now.Add(ledger.FlightLife) // since when is told by another's clock
	}
	if m := c.machines[g.Machine]; m != nil {
		if m.Started > g.Started {
			c.landed(now, p)
			return // it was granted to a life of the machine that is over
		}
		if over(m, p) {
			c.landed(now, p)
			return
		}
		p.sequence = m.Sequence + 1
	}
	if len(p.licences) > 0 {
		p.sequence = unknown
	}
	c.pending[id] = p
	c.promised[p.machine] = append(c.promised[p.machine], p)
	c.sweepBy(p.deadline)
}
