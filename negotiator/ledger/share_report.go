package ledger

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/fairshare"
)

// ShareReport is the state of all submitters.
type ShareReport struct {
	Cores      float64          `json:"cores"`      // of the pool
	FreeCores  float64          `json:"free_cores"` // cores in no claim
	HalfLife   float64          `json:"half_life_seconds"`
	Submitters []SubmitterUsage `json:"submitters"` // best priority first
}

// SubmitterUsage is the state of one submitter. Cores are those that its dominant share
// is worth.
type SubmitterUsage struct {
	Name              string   `json:"name"`
	Group             string   `json:"group,omitempty"`
	User              string   `json:"user"`
	EffectivePriority float64  `json:"effective_priority"` // smaller is better
	RealPriority      float64  `json:"real_priority"`
	Factor            float64  `json:"factor"`
	Floor             *float64 `json:"floor,omitempty"`   // cores
	Ceiling           *float64 `json:"ceiling,omitempty"` // cores
	Cores             float64  `json:"cores"`             // in use now
	CoreHours         float64  `json:"core_hours"`        // total used
	// the same of its tasks in other pools; absent where it is 0
	CoresElsewhere     float64 `json:"cores_elsewhere,omitempty"`
	CoreHoursElsewhere float64 `json:"core_hours_elsewhere,omitempty"`
	// its part of the pool by fair share, if all who use or want something wanted all
	PoolShare float64 `json:"share"`
	// cores more than it has: what is free, or due to it, within its ceiling and its
	// group's quota
	CouldGetCores float64 `json:"could_get_cores"`
	IsWaiting     bool    `json:"waits"` // it has waiting requests
}

// PoolUse is who uses the pool and who wants to, of which shares are made.
type PoolUse struct {
	Total      roost.Resources                         // of all machines
	Free       roost.Resources                         // resources in no claim
	Usage      map[fairshare.Submitter]roost.Resources // by claims and grants
	HasWaiting map[fairshare.Submitter]bool            // submitters with waiting requests
}

// Shares computes the state of everyone who has ever used the pool, or wants to. For
// a submitter without requests it assumes that there were some.
func (p *PoolUse) Shares(now time.Time, l *Ledger) ShareReport {
	all := slices.Concat(l.Accountant().Submitters(), slices.Collect(maps.Keys(p.Usage)),
		slices.Collect(maps.Keys(p.HasWaiting)))
	slices.SortFunc(all, fairshare.Submitter.Compare)
	all = slices.Compact(all)
	out := ShareReport{Cores: p.Total.CPU.Cores(), FreeCores: max(0, p.Free.CPU.Cores()),
		HalfLife: l.Accountant().HalfLife().Seconds(), Submitters: []SubmitterUsage{}}
	sum := 0.0 // Σ 1/π of those who use or want something
	for _, s := range all {
		sh := p.submitterUsage(now, l, s)
		if isActive(&sh) {
			sum += 1 / sh.EffectivePriority
		}
		out.Submitters = append(out.Submitters, sh)
	}
	for i := range out.Submitters {
		sh := &out.Submitters[i]
		with := sum
		if !isActive(sh) {
			with += 1 / sh.EffectivePriority
		}
		sh.PoolShare = 1 / sh.EffectivePriority / with
		sh.CouldGetCores = p.couldGetCores(l, sh, out)
	}
	slices.SortFunc(out.Submitters, func(a, b SubmitterUsage) int {
		return cmp.Or(cmp.Compare(a.EffectivePriority, b.EffectivePriority), strings.Compare(a.Name, b.Name))
	})
	return out
}

// isActive reports whether a submitter uses the pool or wants to.
func isActive(s *SubmitterUsage) bool { return s.Cores > 0 || s.IsWaiting }

func (p *PoolUse) submitterUsage(now time.Time, l *Ledger, who fairshare.Submitter) SubmitterUsage {
	a := l.Accountant().Account(now, who)
	sh := SubmitterUsage{
		Name: who.String(), Group: who.Group, User: who.Owner, EffectivePriority: l.Accountant().EffectivePriority(now,
			who), RealPriority: l.Accountant().RealPriority(now, who), Factor: a.Factor,
		Cores: fairshare.CoresWorth(p.Usage[who], p.Total), CoreHours: a.Used / 3600, IsWaiting: p.HasWaiting[who],
		CoresElsewhere: a.UseElsewhere, CoreHoursElsewhere: a.UsedElsewhere / 3600,
	}
	floor, ceiling := l.FloorCeiling(who)
	if floor > 0 {
		sh.Floor = &floor
	}
	if !math.IsInf(ceiling, 1) {
		sh.Ceiling = &ceiling
	}
	return sh
}

// couldGetCores returns how much more a submitter could get if it requested the maximum.
func (p *PoolUse) couldGetCores(l *Ledger, sh *SubmitterUsage, out ShareReport) float64 {
	more := max(out.FreeCores, sh.PoolShare*out.Cores-sh.Cores, 0)
	if sh.Floor != nil {
		more = max(more, *sh.Floor-sh.Cores)
	}
	if sh.Ceiling != nil {
		more = min(more, *sh.Ceiling-sh.Cores)
	}
	for name := sh.Group; name != ""; {
		g, known := l.Group(name)
		if known && g.Cores != nil && !g.AcceptSurplus && !l.SettingOn(SettingAcceptSurplusEverywhere) {
			used := 0.0
			for s, held := range p.Usage {
				if s.Group == name || strings.HasPrefix(s.Group, name+".") {
					used += fairshare.CoresWorth(held, p.Total)
				}
			}
			more = min(more, float64(*g.Cores)/1000-used)
		}
		name = (AccountingGroup{Name: name}).Parent()
	}
	return max(0, min(more, out.Cores-sh.Cores))
}
