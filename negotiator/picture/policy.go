package picture

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
	"github.com/roost-batch/roost/negotiator/share"
)

// Policy is what administrators have set, in the form that plans need. It is made of the ledger anew when that has changed in this respect.
type Policy struct {
	Version       uint64 // ledger.Ledger's Policy, and one
	Groups        []share.Group
	Oversubscribe bool
	Limits        []ledger.Limit
	Reservations  []match.Reservation
	Drains        []match.Drain
	Queues        map[string]ledger.Queue
	Pool          ledger.Pool
	Counts        bool // only so many tasks of some queue, or of all, run at once
	Backfill      match.Backfill
	Reclaim       roost.Reclaim

	StreamPatience time.Duration // for which a stream request may find no room
}

// patience is after how long a request that has found no room is given what falls free, where nobody knows when anything ends.
const patience = 10 * time.Minute

// conservativeDepth is for how many waiting units something is held where backfill is conservative.
const conservativeDepth = 100

// NewPolicy reads what is set now.
func NewPolicy(l *ledger.Ledger) Policy {
	p := Policy{Version: l.Policy() + 1, Oversubscribe: l.On(ledger.GroupOversubscription), Limits: l.Limits()}
	everywhere := l.On(ledger.AcceptSurplusEverywhere)
	for _, g := range l.Groups() {
		group := share.Group{Name: g.Name, Surplus: g.AcceptSurplus || everywhere}
		switch {
		case g.Cores != nil:
			group.Quota = float64(*g.Cores) / 1000
		case g.Fraction != nil:
			group.Quota, group.Dynamic = *g.Fraction, true
		}
		p.Groups = append(p.Groups, group)
	}
	for _, r := range l.Reservations() {
		if r.Deleting {
			continue
		}
		p.Reservations = append(p.Reservations, match.Reservation{
			Name: r.Name, Users: r.Users, Groups: r.Groups, Nodes: r.Nodes, Amount: vector(r.Amount), From: r.From, Until: r.Until,
		})
	}
	for _, d := range l.Drains() {
		p.Drains = append(p.Drains, match.Drain{Node: d.Node, Reason: d.Reason, From: d.From, Until: d.Until})
	}
	p.Queues, p.Pool = map[string]ledger.Queue{}, l.Pool()
	p.Counts = CountsAll(p.Pool)
	for _, q := range l.Queues() {
		p.Queues[q.Name] = q
		p.Counts = p.Counts || Counts(q)
	}
	p.Backfill.Patience, p.StreamPatience = patience, l.Duration(ledger.StreamPatience)
	switch l.Text(ledger.Backfill) {
	case "easy":
		p.Backfill.Mode = match.EASY
	case "conservative":
		p.Backfill.Mode, p.Backfill.Depth = match.Conservative, conservativeDepth
	}
	p.Reclaim, _ = roost.ParseReclaim(l.Text(ledger.Reclaim)) // the ledger takes no other words
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
