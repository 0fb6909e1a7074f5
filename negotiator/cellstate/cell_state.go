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

// CellState is a cell as its leader knows it at one instant. The requests and machines
// are the leader's own and not copied, and [CellState.Snapshot] writes into the requests
// which limits apply to them.
type CellState struct {
	Now      time.Time
	Policy   *CellPolicy
	Machines []*match.Machine // by name
	// of the connected schedds, by key; needed in full only if Policy.HasRunLimits
	Requests []*PendingRequest
	ToPlace  []*PendingRequest // those of Requests that a plan must place, in the same order: see CollectWaiting
	Pending  map[string][]match.PendingGrant
	// by node: those of the ledger for existing machines, and the leader's own
	Drains []match.MachineDrain

	LastRunning   []RunningTasks           // of schedds that are away, or have not reported all yet
	KnownSchedds  func(schedd string) bool // reports whether a schedd's running tasks are known from itself
	UnknownClaims bool                     // some schedds' running tasks are not known from themselves
	LimitsUsed    map[string]int           // use by claims
	LimitsGranted map[string]int           // use by grants that are not in machine ads yet

	// what claims in prod bands hold by the machine ads, and pending grants; nil: quotas
	// bound no plan
	Prod func() map[Payer]Held

	// by how much the unfinished jobs of a submitter in batch exceed its quotas there;
	// nil: nobody's priority is lowered for that
	QuotaExcess func(*ledger.Ledger, fairshare.Submitter) float64

	UsageByClaims func(fairshare.Submitter) roost.Resources // by its claims
	UsageByGrants map[fairshare.Submitter]roost.Resources   // by pending grants
	ChargedCores  iter.Seq[fairshare.Submitter]             // submitters with usage
	Evicted       []TaskEviction                            // in the last hour, oldest first
	RecentStarts  []match.RecentStart                       // in the last minutes, oldest first
}

// TaskEviction is the eviction of a task.
type TaskEviction struct {
	At  time.Time
	Job string // "12.host"; "" if the machine ad named none
}

// Snapshot returns the snapshot for a plan.
func (p *CellState) Snapshot(l *ledger.Ledger) *match.Snapshot {
	s := &match.Snapshot{
		Now: p.Now, Machines: p.Machines, Pending: p.Pending, Shares: map[fairshare.Submitter]match.SubmitterShare{},
		Drains: p.Drains, RecentStarts: p.RecentStarts,
		Groups: slices.Clone(p.Policy.Groups), Oversubscribe: p.Policy.Oversubscribe,
		Reservations: p.Policy.Reservations,
		Backfill:     p.Policy.Backfill, Reclaim: p.Policy.Reclaim,
		Score: p.Policy.Score, MixBands: p.Policy.MixBands, FailureDomains: p.Policy.FailureDomains,
	}
	for _, a := range p.ToPlace {
		s.Requests = append(s.Requests, &a.Request)
	}
	p.fillShares(l, s)
	s.Guests = p.guestShares(s)
	excesses := p.countLimits(s)
	p.quota(l, s)
	// it may preempt those who use something without requests
	if s.Preemption = p.preemptionPolicy(l); s.Preemption.FairShare != nil {
		for who := range p.ChargedCores {
			if _, known := s.Shares[who]; !known {
				s.Shares[who] = match.SubmitterShare{EffectivePriority: l.Accountant().EffectivePriority(p.Now, who),
					Usage: p.UsageByClaims(who), OverQuota: p.quotaExcess(l, who)}
			}
		}
	}
	s.Preemption.OverSoftLimit = p.claimsOverSoftLimits(excesses)
	return s
}

// fillShares sets the shares of the submitters with requests. With group quotas it sets
// those of all others, too, because their usage counts.
func (p *CellState) fillShares(l *ledger.Ledger, s *match.Snapshot) {
	fillShare := func(who fairshare.Submitter) {
		if _, known := s.Shares[who]; known {
			return
		}
		floor, ceiling := l.FloorCeiling(who)
		if math.IsInf(ceiling, 1) {
			ceiling = 0 // a plan writes "no ceiling" as 0
		} else {
			ceiling = max(ceiling, math.SmallestNonzeroFloat64)
		}
		s.Shares[who] = match.SubmitterShare{EffectivePriority: l.Accountant().EffectivePriority(p.Now, who),
			Usage: p.UsageByClaims(who).Add(p.UsageByGrants[who]), Floor: floor, Ceiling: ceiling,
			OverQuota: p.quotaExcess(l, who)}
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

func (p *CellState) quotaExcess(l *ledger.Ledger, who fairshare.Submitter) float64 {
	if p.QuotaExcess == nil {
		return 1
	}
	return p.QuotaExcess(l, who)
}

// guestShares returns what the guests have whose share is bounded, and may have.
func (p *CellState) guestShares(s *match.Snapshot) map[string]match.GuestShare {
	if len(p.Policy.GuestGroups) == 0 {
		return nil
	}
	var total roost.Resources
	for _, m := range s.Machines {
		total = total.Add(m.Total)
	}
	all := make(map[string]match.GuestShare, len(p.Policy.GuestGroups))
	for _, g := range p.Policy.GuestGroups {
		var share match.GuestShare
		switch {
		case g.Cores != nil:
			share.Ceiling = float64(*g.Cores) / 1000
		case g.Fraction != nil:
			share.Ceiling = *g.Fraction * total.CPU.Cores()
		default:
			continue
		}
		for who := range p.ChargedCores {
			if who.Group == g.Name {
				share.Usage += fairshare.CoresWorth(p.UsageByClaims(who), total)
			}
		}
		for who, granted := range p.UsageByGrants {
			if who.Group == g.Name {
				share.Usage += fairshare.CoresWorth(granted, total)
			}
		}
		all[g.Name] = share
	}
	return all
}

// countLimits sets how much of each limit is in use. It counts claims in machine ads, and
// grants that are not there yet.
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

// preemptionPolicy returns which claims may be preempted.
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
	if mode := l.SettingText(ledger.SettingDefragment); mode != "off" {
		after := l.SettingDuration(ledger.SettingDefragmentAfter)
		s.Moves = &match.MovePolicy{OnlyAdvise: mode == "advise", MinWait: after, MinRuntime: after}
	}
	if l.SettingOn(ledger.SettingPreemptInBand) {
		s.InBand = &match.InBandPreemption{Step: int(l.SettingNumber(ledger.SettingPreemptInBandStep)),
			MinRuntime:  l.SettingDuration(ledger.SettingPreemptInBandRuntime),
			MaxAttempts: int(l.SettingNumber(ledger.SettingPreemptInBandAttempts))}
	}
	return s
}

// StopReason returns why nothing of a queue may start, whatever is free; "" if it may.
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
