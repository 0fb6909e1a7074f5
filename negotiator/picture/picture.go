package picture

import (
	"iter"
	"math"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
	"github.com/roost-batch/roost/negotiator/share"
)

// Picture is a cell as its leader knows it at one instant. What it is asked for in a plan is not copied: the asks and machines are those of the leader, and
// [Picture.Snapshot] notes in the asks which limits they are held to.
type Picture struct {
	Now      time.Time
	Policy   *Policy
	Machines []*match.Machine // by name
	Asks     []*Ask           // of the schedds that are here, by their keys; only needed in full where Policy.Counts
	Asking   []*Ask           // of those, what a plan is to place, in the same order: see Gather
	Pending  map[string][]match.Promise
	Drains   []match.Drain // by node: those of the ledger of machines that are there, and what the leader keeps free by itself

	Ran       []Running                // of schedds that are away, or have not told all yet
	Known     func(schedd string) bool // what runs of it is known otherwise than from machines
	Strangers bool                     // there may be claims of one of which it is not
	Licences  map[string]int           // that claims take
	Promised  map[string]int           // that grants take which do not show in machines' ads yet

	Prod func() map[Payer]Held // what claims in the bands that displace others hold, as machines say, and grants on their way; nil: quotas bound no plan

	Used    func(share.Submitter) roost.Resources // by its claims
	Granted map[share.Submitter]roost.Resources   // on its way
	Charged iter.Seq[share.Submitter]             // who uses something
	Evicted []Eviction                            // in the last hour, oldest first
	Starts  []match.Start                         // in the last minutes, oldest first
}

// Eviction is a task that had to make room.
type Eviction struct {
	At  time.Time
	Job string // "12.host"; "" where the machine's ad named none
}

// Snapshot is what a plan is made of.
func (p *Picture) Snapshot(l *ledger.Ledger) *match.Snapshot {
	s := &match.Snapshot{
		Now: p.Now, Machines: p.Machines, Pending: p.Pending, Standing: map[share.Submitter]match.Standing{}, Drains: p.Drains, Starts: p.Starts,
		Groups: slices.Clone(p.Policy.Groups), Oversubscribe: p.Policy.Oversubscribe, Reservations: p.Policy.Reservations,
		Backfill: p.Policy.Backfill, Reclaim: p.Policy.Reclaim,
	}
	for _, a := range p.Asking {
		s.Requests = append(s.Requests, &a.Request)
	}
	p.stand(l, s)
	excesses := p.limit(s)
	p.quota(l, s)
	if s.Preemption = p.preemption(l); s.Preemption.Fair != nil { // it may displace those who want nothing and use something
		for who := range p.Charged {
			if _, known := s.Standing[who]; !known {
				s.Standing[who] = match.Standing{Effective: l.Book().Effective(p.Now, who), Held: p.Used(who)}
			}
		}
	}
	s.Preemption.Beyond = p.beyond(excesses)
	return s
}

// stand says how submitters stand who ask for something, and where there are groups with quotas all others: what they have counts against those.
func (p *Picture) stand(l *ledger.Ledger, s *match.Snapshot) {
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
		s.Standing[who] = match.Standing{Effective: l.Book().Effective(p.Now, who), Held: p.Used(who).Add(p.Granted[who]), Floor: floor, Ceiling: ceiling}
	}
	for _, r := range s.Requests {
		stand(r.Submitter)
	}
	if len(p.Policy.Groups) > 0 {
		for who := range p.Charged {
			stand(who)
		}
	}
}

// limit says how much of each limit that is set is in use: by the claims that machines tell of, and by grants that do not show there yet.
func (p *Picture) limit(s *match.Snapshot) (excesses []excess) {
	if len(p.Policy.Limits) == 0 && !p.Policy.Counts {
		return nil
	}
	s.Limits = make(map[string]match.Limit, len(p.Policy.Limits))
	for _, l := range p.Policy.Limits {
		s.Limits[l.Name] = match.Limit{Total: int(l.Count), Used: p.Licences[l.Name] + p.Promised[l.Name]}
	}
	return p.countRunning(s.Limits)
}

// preemption is who may be displaced.
func (p *Picture) preemption(l *ledger.Ledger) match.Preemption {
	s := match.Preemption{Bounded: true, Evicted: make(map[string]int, len(p.Evicted)), PerJob: int(l.Number(ledger.DisruptionsPerJob))}
	for _, e := range p.Evicted {
		s.Evicted[e.Job]++
	}
	s.Cell = max(0, int(l.Number(ledger.DisruptionsPerCell))-len(p.Evicted))
	if text := l.Text(ledger.PreemptionRequirements); text != "" && text != "false" {
		s.Fair = &match.FairShare{Allows: l.Expression(ledger.PreemptionRequirements), MinRuntime: l.Duration(ledger.PreemptionMinRuntime)}
	}
	return s
}

// Stopped says why nothing of an ask may start, whatever there is; "" where it may.
func (p *Policy) Stopped(queue string) string {
	switch q, ok := p.Queues[queue]; {
	case p.Pool.Stopped:
		return "scheduling is False: nothing starts in the pool until an administrator has set it True (qmgr)"
	case ok && q.Routing:
		return "it waits in routing queue " + q.Name + " until one of its destinations takes it"
	case ok && !q.Started:
		return "queue " + q.Name + " is stopped: its jobs start when an administrator starts it"
	}
	return ""
}
