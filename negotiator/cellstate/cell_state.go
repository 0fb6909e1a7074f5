package cellstate

import (
	"iter"
	"math"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
)

// CellState is a cell as its leader knows it at one instant. What it is asked for in a
// plan is not copied: the asks and machines are those of the leader, and
// [CellState.Snapshot] notes in the asks which limits they are held to.
type CellState struct {
	Now      time.Time
	Policy   *CellPolicy
	Machines []*match.Machine // by name
	// of the schedds that are here, by their keys; only needed in full where
	// Policy.HasRunLimits
	Requests []*PendingRequest
	ToPlace  []*PendingRequest // of those, what a plan is to place, in the same order: see CollectWaiting
	Pending  map[string][]match.PendingGrant
	// by node: those of the ledger of machines that are there, and what the leader keeps
	// free by itself
	Drains []match.MachineDrain

	LastRunning   []RunningTasks           // of schedds that are away, or have not told all yet
	KnownSchedds  func(schedd string) bool // what runs of it is known otherwise than from machines
	UnknownClaims bool                     // there may be claims of one of which it is not
	LimitsUsed    map[string]int           // that claims take
	LimitsGranted map[string]int           // that grants take which do not show in machines' ads yet

	// what claims in the bands that displace others hold, as machines say, and grants on
	// their way; nil: quotas bound no plan
	Prod func() map[Payer]Held

	UsageByClaims func(fairshare.Submitter) roost.Resources // by its claims
	UsageByGrants map[fairshare.Submitter]roost.Resources   // on its way
	ChargedCores  iter.Seq[fairshare.Submitter]             // who uses something
	Evicted       []TaskEviction                            // in the last hour, oldest first
	RecentStarts  []match.RecentStart                       // in the last minutes, oldest first
}

// TaskEviction is a task that had to make room.
type TaskEviction struct {
	At  time.Time
	Job string // "12.host"; "" where the machine's ad named none
}

// Snapshot is what a plan is made of.
func (p *CellState) Snapshot(l *ledger.Ledger) *match.Snapshot {
	s := &match.Snapshot{
		Now: p.Now, Machines: p.Machines, Pending: p.Pending, Shares: map[fairshare.Submitter]match.SubmitterShare{},
		Drains: p.Drains, RecentStarts: p.RecentStarts,
		Groups: slices.Clone(p.Policy.Groups), Oversubscribe: p.Policy.Oversubscribe,
		Reservations: p.Policy.Reservations,
		Backfill:     p.Policy.Backfill, Reclaim: p.Policy.Reclaim,
	}
	for _, a := range p.ToPlace {
		s.Requests = append(s.Requests, &a.Request)
	}
	p.fillShares(l, s)
	excesses := p.countLimits(s)
	p.quota(l, s)
	// it may displace those who want nothing and use something
	if s.Preemption = p.preemptionPolicy(l); s.Preemption.FairShare != nil {
		for who := range p.ChargedCores {
			if _, known := s.Shares[who]; !known {
				s.Shares[who] = match.SubmitterShare{EffectivePriority: l.Accountant().EffectivePriority(p.Now, who),
					Usage: p.UsageByClaims(who)}
			}
		}
	}
	s.Preemption.OverSoftLimit = p.claimsOverSoftLimits(excesses)
	return s
}

// fillShares says how submitters stand who ask for something, and where there are groups
// with quotas all others: what they have counts against those.
func (p *CellState) fillShares(l *ledger.Ledger, s *match.Snapshot) {
	fillShare := func(who fairshare.Submitter) {
		if _, known := s.Shares[who]; known {
			return
		}
		floor, ceiling := l.FloorCeiling(who)
		if math.IsInf(ceiling, 1) {
			ceiling = 0 // which is how a plan writes that there is none
		} else {
			ceiling = max(ceiling, math.SmallestNonzeroFloat64)
		}
		s.Shares[who] = match.SubmitterShare{EffectivePriority: l.Accountant().EffectivePriority(p.Now, who),
			Usage: p.UsageByClaims(who).Add(p.UsageByGrants[who]), Floor: floor, Ceiling: ceiling}
	}
	for _, r := range s.Requests {
		fillShare(r.Submitter)
	}
	if len(p.Policy.Groups) > 0 {
		for who := range p.ChargedCores {
			fillShare(who)
		}
	}
}

// countLimits says how much of each limit that is set is in use: by the claims that
// machines tell of, and by grants that do not show there yet.
func (p *CellState) countLimits(s *match.Snapshot) (excesses []softExcess) {
	if len(p.Policy.Limits) == 0 && !p.Policy.HasRunLimits {
		return nil
	}
	s.Limits = make(map[string]match.ConcurrencyLimit, len(p.Policy.Limits))
	for _, l := range p.Policy.Limits {
		s.Limits[l.Name] = match.ConcurrencyLimit{Total: int(l.Count),
			Used: p.LimitsUsed[l.Name] + p.LimitsGranted[l.Name]}
	}
	return p.countRunning(s.Limits)
}

// preemptionPolicy is who may be displaced.
func (p *CellState) preemptionPolicy(l *ledger.Ledger) match.PreemptionPolicy {
	s := match.PreemptionPolicy{HasBudgets: true, EvictionsByJob: make(map[string]int, len(p.Evicted)),
		PerJob: int(l.SettingNumber(ledger.SettingDisruptionsPerJob))}
	for _, e := range p.Evicted {
		s.EvictionsByJob[e.Job]++
	}
	s.MaxInCycle = max(0, int(l.SettingNumber(ledger.SettingDisruptionsPerCell))-len(p.Evicted))
	if text := l.SettingText(ledger.SettingPreemptionRequirements); text != "" && text != "false" {
		s.FairShare = &match.FairSharePreemption{Allows: l.SettingExpression(ledger.SettingPreemptionRequirements),
			MinRuntime: l.SettingDuration(ledger.SettingPreemptionMinRuntime)}
	}
	return s
}

// StopReason says why nothing of an ask may start, whatever there is; "" where it may.
func (p *CellPolicy) StopReason(queue string) string {
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
