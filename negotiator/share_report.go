package negotiator

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// poolStatus is the status of the pool, for queries.
type poolStatus struct {
	total         roost.Resources                         // of all machines
	free          roost.Resources                         // resources in no claim
	usage         map[fairshare.Submitter]roost.Resources // by claims and grants
	hasWaiting    map[fairshare.Submitter]bool            // submitters with waiting requests
	machineExists func(name string) bool                  // reports whether a machine of that name exists
}

// shareReport computes the state of everyone who has ever used the pool, or wants to. For
// a submitter without requests it assumes that there were some.
func (p *poolStatus) shareReport(now time.Time, l *ledger.Ledger) ledger.ShareReport {
	all := slices.Concat(l.Accountant().Submitters(), slices.Collect(maps.Keys(p.usage)),
		slices.Collect(maps.Keys(p.hasWaiting)))
	slices.SortFunc(all, fairshare.Submitter.Compare)
	all = slices.Compact(all)
	out := ledger.ShareReport{Cores: p.total.CPU.Cores(), FreeCores: max(0, p.free.CPU.Cores()),
		HalfLife: l.Accountant().HalfLife().Seconds(), Submitters: []ledger.SubmitterUsage{}}
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
	slices.SortFunc(out.Submitters, func(a, b ledger.SubmitterUsage) int {
		return cmp.Or(cmp.Compare(a.EffectivePriority, b.EffectivePriority), strings.Compare(a.Name, b.Name))
	})
	return out
}

// isActive reports whether a submitter uses the pool or wants to.
func isActive(s *ledger.SubmitterUsage) bool { return s.Cores > 0 || s.IsWaiting }

func (p *poolStatus) submitterUsage(now time.Time, l *ledger.Ledger, who fairshare.Submitter) ledger.SubmitterUsage {
	a := l.Accountant().Account(now, who)
	sh := ledger.SubmitterUsage{
		Name: who.String(), Group: who.Group, User: who.Owner, EffectivePriority: l.Accountant().EffectivePriority(now,
			who), RealPriority: l.Accountant().RealPriority(now, who), Factor: a.Factor,
		Cores: fairshare.CoresWorth(p.usage[who], p.total), CoreHours: a.Used / 3600, IsWaiting: p.hasWaiting[who],
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
func (p *poolStatus) couldGetCores(l *ledger.Ledger, sh *ledger.SubmitterUsage, out ledger.ShareReport) float64 {
	more := max(out.FreeCores, sh.PoolShare*out.Cores-sh.Cores, 0)
	if sh.Floor != nil {
		more = max(more, *sh.Floor-sh.Cores)
	}
	if sh.Ceiling != nil {
		more = min(more, *sh.Ceiling-sh.Cores)
	}
	for name := sh.Group; name != ""; {
		g, known := l.Group(name)
		if known && g.Cores != nil && !g.AcceptSurplus && !l.SettingOn(ledger.SettingAcceptSurplusEverywhere) {
			used := 0.0
			for s, held := range p.usage {
				if s.Group == name || strings.HasPrefix(s.Group, name+".") {
					used += fairshare.CoresWorth(held, p.total)
				}
			}
			more = min(more, float64(*g.Cores)/1000-used)
		}
		name = (ledger.AccountingGroup{Name: name}).Parent()
	}
	return max(0, min(more, out.Cores-sh.Cores))
}

// checkMachineExists refuses a command about an unknown machine.
func (p *poolStatus) checkMachineExists(l *ledger.Ledger, c *ledger.AdminCommand) error {
	for _, name := range l.Nodes(c) {
		if !p.machineExists(name) {
			return fmt.Errorf("%s: %w: no node of that name is in the pool; roost nodes lists them, and --force sets "+
				"it nevertheless", name, roost.NotFound)
		}
	}
	return nil
}
