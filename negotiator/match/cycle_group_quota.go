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

// Groups with quotas limit the bands below prod. Each cycle divides the pool among the
// groups by what they use and want (fairshare.DivideQuotas). Then each group is served as
// a whole: first the one that uses the smallest part of its quota, last the submitters
// without a group, as in HTCondor. Inside a group submitters take turns. What a group
// cannot use is divided again among the others, for a bounded number of rounds. Prod is
// not limited here, because its quota is checked at submission, but its use counts for
// its group.

// maxQuotaRounds is HTCondor's GROUP_QUOTA_MAX_ALLOCATION_ROUNDS.
const maxQuotaRounds = 3

// submitterState is what a submitter uses and may use, in cores.
type submitterState struct {
	SubmitterShare
	usage float64     // cores, at this point of the cycle
	group *groupQuota // nil: there are no groups, or it is a guest
	guest *guestQuota // nil: it is no guest, or its pool has no bound
}

// guestQuota is what all users of a guest pool use and may use, in cores.
type guestQuota struct {
	name string
	GuestShare
}

// groupQuota is what an accounting group uses and may use, in cores.
type groupQuota struct {
	fairshare.AccountingGroup
	quota, allocated float64
	usage            float64 // cores of all its submitters, at this point of the cycle
}

// initSubmitters creates the state of all submitters.
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
	if len(p.Guests) > 0 {
		p.guests = make(map[string]*guestQuota, len(p.Guests))
		for name, g := range p.Guests {
			p.guests[name] = &guestQuota{name, g}
		}
	}
	for who, st := range p.Shares {
		p.initSubmitter(who, st)
	}
}

func (p fairSharePlanner) initSubmitter(who fairshare.Submitter, st SubmitterShare) *submitterState {
	a := p.scratch.newSubmitterState(submitterState{SubmitterShare: st,
		usage: fairshare.CoresWorth(st.Usage, p.poolTotal)})
	if a.guest = p.guests[who.Group]; p.groups != nil && !who.IsGuest() {
		a.group = p.groups[fairshare.NearestGroup(p.groupNames, who.Group)]
	}
	p.submitters[who] = a
	return a
}

// sumGroupUsage adds up what groups use. Submitters are added in order, so that the sums
// are the same in every run.
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
		if a := p.submitters[who]; a.group != nil {
			a.group.usage += a.usage
		}
	}
}

// submitterState returns the state of a submitter. A submitter that the snapshot does not
// have uses nothing.
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

// effectivePriority returns the effective priority, which is above 0.
func (a *submitterState) effectivePriority() float64 {
	if a.EffectivePriority > 0 {
		return a.EffectivePriority
	}
	return fairshare.LeastPriority * fairshare.DefaultFactor
}

// priorityIn returns the effective priority in a band, which is above 0. In batch, that
// of a submitter beyond its quota is worse by as much, so that the product of share and
// demand is what it would be within the quota.
func (a *submitterState) priorityIn(band roost.PriorityBand) float64 {
	if band == roost.BatchBand && a.OverQuota > 1 {
		return a.effectivePriority() * a.OverQuota
	}
	return a.effectivePriority()
}

// addUsage adds cores to what a submitter and its group use.
func (a *submitterState) addUsage(cores float64) {
	a.usage += cores
	if a.group != nil {
		a.group.usage += cores
	}
	if a.guest != nil {
		a.guest.Usage += cores
	}
}

// unitsWithinShare returns how many of n units fit under the submitter's ceiling and the
// group's allocation.
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
	if g := a.guest; g != nil {
		if n = min(n, wholeUnitsIn(g.Ceiling-g.Usage, unit)); n == 0 && w.Explain {
			w.waitReason, w.waitReasonKind = fmt.Sprintf("share: the guests of %s use %s of the %s cores that "+
				"they may "+
				"have", g.name, coresText(g.Usage), coresText(g.Ceiling)), OverLimit
		}
		return n
	}
	if a.group == nil || w.Band.IsProd() {
		return n
	}
	if n = min(n, wholeUnitsIn(a.group.allocated-a.group.usage, unit)); n == 0 && w.Explain {
		w.waitReason, w.waitReasonKind = a.group.quotaReachedText(), OverLimit
	}
	return n
}

// quotaReachedText says that a group uses all that it may.
func (g *groupQuota) quotaReachedText() string {
	who := "group " + g.Name
	if g.Name == "" {
		who = "no group"
	}
	return fmt.Sprintf("quota: %s uses %s of the %s cores that it may have now", who, coresText(g.usage),
		coresText(g.allocated))
}

// coresText formats a number of cores for messages.
func coresText(n float64) string {
	return strconv.FormatFloat(math.Round(n*100)/100, 'f', -1, 64)
}

// wholeUnitsIn returns how many units of a weight fit into a number of cores.
func wholeUnitsIn(room, unit float64) int {
	if unit <= 0 || room/unit >= maxUnitsPerTurn {
		return maxUnitsPerTurn
	}
	return max(0, int((room+epsilon)/unit))
}

// placeGroups does the work of placeBand where there are groups.
func (p fairSharePlanner) placeGroups(wants []*requestState) {
	byGroup := map[*groupQuota][]*requestState{}
	for _, w := range wants { // in order, so the submitters of each group stay together
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

// divideQuotas allocates cores to groups. A group requests what it uses, and what its
// requests that may still find a machine want.
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

// sortByStarvation orders the groups that want something. It sorts by the part of its
// quota that each uses, then puts those without a quota, then the root.
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

// placeBand places the requests of one band.
func (p fairSharePlanner) placeBand(wants []*requestState) {
	if p.groups == nil || wants[0].Band >= roost.ProductionBand || wants[0].Submitter.IsGuest() {
		p.placeStreams(wants)
		p.takeTurns(wants, math.Inf(1))
		return
	}
	p.placeGroups(wants)
}
