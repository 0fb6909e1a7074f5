package cellstate

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
)

// CellPolicy is what administrators have set, in the form that plans need. It is made
// again when the ledger has changed in this respect.
type CellPolicy struct {
	Version       uint64 // ledger.Ledger's policy version plus one
	Groups        []fairshare.AccountingGroup
	GuestGroups   []ledger.AccountingGroup
	Oversubscribe bool
	Limits        []ledger.ConcurrencyLimit
	Reservations  []match.AdvanceReservation
	Drains        []match.MachineDrain
	Queues        map[string]ledger.QueuePolicy
	Pool          ledger.PoolLimits
	HasRunLimits  bool // some queue, or all together, has a limit on running tasks
	Backfill      match.BackfillSettings
	Reclaim       roost.ReclaimLevel

	Score    match.ScorePolicy
	MixBands bool
	// batch jobs beyond a quota are taken, with a lower priority
	LowersOverQuota bool
	FailureDomains  []string

	StreamMaxWait time.Duration // how long a stream request may wait without room
}

// backfillMaxWait is after how long a request without room gets what becomes free. It
// applies if no task has a known end.
const backfillMaxWait = 10 * time.Minute

// conservativeDepth is how many waiting tasks get a reservation with conservative
// backfill.
const conservativeDepth = 100

// NewPolicy reads the present settings.
func NewPolicy(l *ledger.Ledger) CellPolicy {
	p := CellPolicy{Version: l.PolicyVersion() + 1, Oversubscribe: l.SettingOn(ledger.SettingGroupOversubscription),
		Limits: l.Limits()}
	p.GuestGroups = l.GuestGroups()
	everywhere := l.SettingOn(ledger.SettingAcceptSurplusEverywhere)
	for _, g := range l.Groups() {
		group := fairshare.AccountingGroup{Name: g.Name, AcceptsSurplus: g.AcceptSurplus || everywhere}
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
		p.Reservations = append(p.Reservations, match.AdvanceReservation{
			Name: r.Name, Users: r.Users, Groups: r.Groups, Nodes: r.Nodes, Amount: resourcesOf(r.Amount), From: r.From,
			Until: r.Until,
		})
	}
	for _, d := range l.Drains() {
		p.Drains = append(p.Drains, match.MachineDrain{Node: d.Node, Reason: d.Reason, From: d.From, Until: d.Until})
	}
	p.Queues, p.Pool = map[string]ledger.QueuePolicy{}, l.Pool()
	p.HasRunLimits = CountsEverything(p.Pool)
	for _, q := range l.Queues() {
		p.Queues[q.Name] = q
		p.HasRunLimits = p.HasRunLimits || CountsRunning(q)
	}
	p.Backfill.MaxWait, p.StreamMaxWait = backfillMaxWait, l.SettingDuration(ledger.SettingStreamPatience)
	switch l.SettingText(ledger.SettingBackfill) {
	case "easy":
		p.Backfill.Mode = match.EASYBackfill
	case "conservative":
		p.Backfill.Mode, p.Backfill.Depth = match.ConservativeBackfill, conservativeDepth
	}
	p.Reclaim, _ = roost.ParseReclaimLevel(l.SettingText(ledger.SettingReclaim)) // the ledger accepts no other words
	p.Score, _ = match.ParseScore(l.SettingText(ledger.SettingScore))
	p.MixBands = l.SettingOn(ledger.SettingMixBands)
	p.FailureDomains = l.SettingAttributes(ledger.SettingFailureDomains)
	p.LowersOverQuota = l.SettingText(ledger.SettingOverQuota) == ledger.OverQuotaLowers
	return p
}

// resourcesOf reads amounts; absent ones are 0.
func resourcesOf(a *ledger.ResourceBounds) (r roost.Resources) {
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
