package match

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/fairshare"
)

// Groups with quotas hold the bands below prod. Each cycle divides the pool among them by
// what they use and want (fairshare.DivideQuotas); then they are served whole, the one
// that has least of its quota first and those without a group last, as HTCondor does it;
// inside a group submitters take turns. What a group was given and finds no machine for
// is divided anew among the others, for a bounded number of rounds. Prod is not held:
// what it may have was looked at when it was submitted; but what it has counts for its
// group.

// maxQuotaRounds is HTCondor's GROUP_QUOTA_MAX_ALLOCATION_ROUNDS.
const maxQuotaRounds = 3

// submitterState is what a submitter has, in cores, and may have.
type submitterState struct {
	SubmitterShare
	usage float64     // as yet in this plan
	group *groupQuota // nil: there are none
}

// groupQuota is what an accounting group has, in cores, and may have.
type groupQuota struct {
	fairshare.AccountingGroup
	quota, allocated float64
	usage            float64 // by all its submitters, as yet in this plan
}

// initSubmitters notes how everybody stands.
func (p fairSharePlanner) initSubmitters() {
	if p.submitters = p.scratch.shares; p.submitters == nil {
		p.submitters = make(map[fairshare.Submitter]*submitterState, len(p.Shares))
	}
	if len(p.Groups) > 0 {
		p.groups = map[string]*groupQuota{"": {}}
		for _, g := range p.Groups {
			p.groups[g.Name] = &groupQuota{AccountingGroup: g}
			p.groupNames = append(p.groupNames, g.Name)
		}
		slices.Sort(p.groupNames)
	}
	for who, st := range p.Shares {
		p.initSubmitter(who, st)
	}
}

func (p fairSharePlanner) initSubmitter(who fairshare.Submitter, st SubmitterShare) *submitterState {
	a := p.scratch.newSubmitterState(submitterState{SubmitterShare: st,
		usage: fairshare.CoresWorth(st.Usage, p.poolTotal)})
	if p.groups != nil {
		a.group = p.groups[fairshare.NearestGroup(p.groupNames, who.Group)]
	}
	p.submitters[who] = a
	return a
}

// sumGroupUsage notes what groups hold. Submitters come in order, so that sums are the
// same in every run.
func (p fairSharePlanner) sumGroupUsage() {
	if p.groups == nil {
		return
	}
	all := make([]fairshare.Submitter, 0, len(p.submitters))
	for who := range p.submitters {
		all = append(all, who)
	}
	slices.SortFunc(all, fairshare.Submitter.Compare)
	for _, who := range all {
		a := p.submitters[who]
		a.group.usage += a.usage
	}
}

// submitterState is how a submitter stands; one that nobody spoke of has nothing.
func (p fairSharePlanner) submitterState(who fairshare.Submitter) *submitterState {
	if p.lastSubmitterState != nil && who == p.lastSubmitter {
		return p.lastSubmitterState
	}
	a := p.submitters[who]
	if a == nil {
		a = p.initSubmitter(who, SubmitterShare{})
	}
	p.lastSubmitterState, p.lastSubmitter = a, who
	return a
}

// effectivePriority is the effective priority, above 0.
func (a *submitterState) effectivePriority() float64 {
	if a.EffectivePriority > 0 {
		return a.EffectivePriority
	}
	return fairshare.LeastPriority * fairshare.DefaultFactor
}

// addUsage notes that a submitter got so many cores more.
func (a *submitterState) addUsage(cores float64) {
	a.usage += cores
	if a.group != nil {
		a.group.usage += cores
	}
}

// unitsWithinShare is how many of n units of a want its submitter's ceiling and its
// group's allocation leave room for.
func (p fairSharePlanner) unitsWithinShare(w *requestState, n int) int {
	a, unit := w.submitter, w.unitWeight
	if w.Now {
		return n
	}
	if a.Ceiling > 0 {
		if n = min(n, wholeUnitsIn(a.Ceiling-a.usage, unit)); n == 0 {
			if w.Explain {
				w.waitReason, w.waitReasonKind = fmt.Sprintf("ceiling: %v uses %s of the %s cores that it may have",
					w.Submitter, coresText(a.usage), coresText(a.Ceiling)), OverLimit
			}
			return 0
		}
	}
	if a.group == nil || w.Band.IsProd() {
		return n
	}
	if n = min(n, wholeUnitsIn(a.group.allocated-a.group.usage, unit)); n == 0 && w.Explain {
		w.waitReason, w.waitReasonKind = a.group.quotaReachedText(), OverLimit
	}
	return n
}

// quotaReachedText says that a group has what it may have.
func (g *groupQuota) quotaReachedText() string {
	who := "group " + g.Name
	if g.Name == "" {
		who = "no group"
	}
	return fmt.Sprintf("quota: %s uses %s of the %s cores that it may have now", who, coresText(g.usage),
		coresText(g.allocated))
}

// coresText writes a number of cores for people.
func coresText(n float64) string {
	return strconv.FormatFloat(math.Round(n*100)/100, 'f', -1, 64)
}

// wholeUnitsIn is how many whole units fit into so many cores.
func wholeUnitsIn(room, unit float64) int {
	if unit <= 0 || room/unit >= maxUnitsPerTurn {
		return maxUnitsPerTurn
	}
	return max(0, int((room+epsilon)/unit))
}

// placeGroups is placeBand where there are groups.
func (p fairSharePlanner) placeGroups(wants []*requestState) {
	byGroup := map[*groupQuota][]*requestState{}
	for _, w := range wants { // in order, and so the submitters of each group stay together
		byGroup[w.submitter.group] = append(byGroup[w.submitter.group], w)
	}
	for range maxQuotaRounds {
		p.divideQuotas(byGroup)
		placed := len(p.placedLog)
		p.placeStreams(wants)
		for _, g := range p.sortByStarvation(byGroup) {
			p.takeTurns(byGroup[g], max(0, g.allocated-g.usage))
		}
		if len(p.placedLog) == placed {
			return
		}
	}
}

// divideQuotas gives groups what they may have: they request what they use, and what of
// their wants may still find a machine.
func (p fairSharePlanner) divideQuotas(byGroup map[*groupQuota][]*requestState) {
	request := func(g *groupQuota) float64 {
		sum := g.usage
		for _, w := range byGroup[g] {
			if !w.noFit {
				sum += float64(w.unitsLeft) * w.unitWeight
			}
		}
		return sum
	}
	groups := slices.Clone(p.Groups)
	for i := range groups {
		groups[i].Requested = request(p.groups[groups[i].Name])
	}
	for _, a := range fairshare.DivideQuotas(groups, p.poolTotal.CPU.Cores(), request(p.groups[""]), p.Oversubscribe) {
		g := p.groups[a.Name]
		g.quota, g.allocated = a.Quota, a.Allocated
	}
}

// sortByStarvation orders the groups that want something: by what part of its quota each
// uses, then those without a quota, then the root.
func (p fairSharePlanner) sortByStarvation(byGroup map[*groupQuota][]*requestState) []*groupQuota {
	all := make([]*groupQuota, 0, len(byGroup))
	for g := range byGroup {
		all = append(all, g)
	}
	used := func(g *groupQuota) float64 {
		switch {
		case g.Name == "":
			return 3.4e38
		case g.quota <= 0:
			return 3.3e38
		}
		return g.usage / g.quota
	}
	slices.SortFunc(all, func(a, b *groupQuota) int {
		return cmp.Or(cmp.Compare(used(a), used(b)), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// placeBand places what one band wants.
func (p fairSharePlanner) placeBand(wants []*requestState) {
	if p.groups == nil || wants[0].Band >= roost.ProductionBand {
		p.placeStreams(wants)
		p.takeTurns(wants, math.Inf(1))
		return
	}
	p.placeGroups(wants)
}
