package negotiator

import (
	"math"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
	"github.com/roost-batch/roost/negotiator/share"
)

// policy is what administrators have set, in the form that plans need. It is made of the ledger anew when that has changed in this respect.
type policy struct {
	version       uint64 // ledger.Ledger's Policy, and one
	groups        []share.Group
	oversubscribe bool
	limits        []ledger.Limit
	reservations  []match.Reservation
	drains        []match.Drain
	queues        map[string]ledger.Queue
	pool          ledger.Pool
	counts        bool // only so many tasks of some queue, or of all, run at once
	backfill      match.Backfill
	reclaim       roost.Reclaim

	streamPatience time.Duration // for which a stream request may find no room
}

// conservativeDepth is for how many waiting units something is held where backfill is conservative.
const conservativeDepth = 100

func newPolicy(l *ledger.Ledger) policy {
	p := policy{version: l.Policy() + 1, oversubscribe: l.On(ledger.GroupOversubscription), limits: l.Limits()}
	everywhere := l.On(ledger.AcceptSurplusEverywhere)
	for _, g := range l.Groups() {
		group := share.Group{Name: g.Name, Surplus: g.AcceptSurplus || everywhere}
		switch {
		case g.Cores != nil:
			group.Quota = float64(*g.Cores) / 1000
		case g.Fraction != nil:
			group.Quota, group.Dynamic = *g.Fraction, true
		}
		p.groups = append(p.groups, group)
	}
	for _, r := range l.Reservations() {
		p.reservations = append(p.reservations, match.Reservation{
			Name: r.Name, Users: r.Users, Groups: r.Groups, Nodes: r.Nodes, Amount: vector(r.Amount), From: r.From, Until: r.Until,
		})
	}
	for _, d := range l.Drains() {
		p.drains = append(p.drains, match.Drain{Node: d.Node, Reason: d.Reason, From: d.From, Until: d.Until})
	}
	p.queues, p.pool = map[string]ledger.Queue{}, l.Pool()
	p.counts = countedPool(p.pool)
	for _, q := range l.Queues() {
		p.queues[q.Name] = q
		p.counts = p.counts || counted(q)
	}
	p.backfill.Patience, p.streamPatience = patience, l.Duration(ledger.StreamPatience)
	switch l.Text(ledger.Backfill) {
	case "easy":
		p.backfill.Mode = match.EASY
	case "conservative":
		p.backfill.Mode, p.backfill.Depth = match.Conservative, conservativeDepth
	}
	p.reclaim, _ = roost.ParseReclaim(l.Text(ledger.Reclaim)) // the ledger takes no other words
	return p
}

// vector reads amounts of which those that are absent are nothing.
func vector(a *ledger.Amounts) (r roost.Resources) {
	if a == nil {
		return r
	}
	if a.CPUs != nil {
		r.CPU = roost.MilliCPU(*a.CPUs)
	}
	if a.Memory != nil {
		r.Memory = *a.Memory
	}
	if a.Disk != nil {
		r.Disk = *a.Disk
	}
	if a.GPUs != nil {
		r.GPUs = int(*a.GPUs)
	}
	return r
}

// rule fills in what the ledger says: the policy, and how submitters stand.
func (c *cell) rule(now time.Time, s *match.Snapshot) {
	granted := c.granted()
	c.record.look(func(l *ledger.Ledger) {
		stand := func(who share.Submitter) {
			if _, known := s.Standing[who]; known {
				return
			}
			floor, ceiling := l.FloorCeiling(who)
			if math.IsInf(ceiling, 1) {
				ceiling = 0 // which is how a plan writes that there is none
			} else {
				ceiling = max(ceiling, math.SmallestNonzeroFloat64)
			}
			s.Standing[who] = match.Standing{Effective: l.Book().Effective(now, who), Held: c.used(who).Add(granted[who]), Floor: floor, Ceiling: ceiling}
		}
		for _, r := range s.Requests {
			stand(r.Submitter)
		}
		if len(c.policy.groups) > 0 { // what their other members have counts against them
			for who := range c.charged {
				stand(who)
			}
		}
	})
	s.Groups, s.Oversubscribe = slices.Clone(c.policy.groups), c.policy.oversubscribe
	s.Reservations, s.Drains = c.policy.reservations, c.policy.drains
	s.Backfill, s.Reclaim = c.policy.backfill, c.policy.reclaim
	s.Limits = c.limits()
}
