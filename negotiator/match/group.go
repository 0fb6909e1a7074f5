package match

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/share"
)

// Groups with quotas hold the bands below prod. Each cycle divides the pool among them by what they use and want (share.Divide); then they are
// served whole, the one that has least of its quota first and those without a group last, as HTCondor does it; inside a group submitters take
// turns. What a group was given and finds no machine for is divided anew among the others, for a bounded number of rounds. Prod is not held:
// what it may have was looked at when it was submitted; but what it has counts for its group.

// maxRounds is HTCondor's GROUP_QUOTA_MAX_ALLOCATION_ROUNDS.
const maxRounds = 3

// account is what a submitter has, in cores, and may have.
type account struct {
	Standing
	held  float64 // as yet in this plan
	group *group  // nil: there are none
}

// group is what an accounting group has, in cores, and may have.
type group struct {
	share.Group
	quota, allocated float64
	held             float64 // by all its submitters, as yet in this plan
}

// openAccounts notes how everybody stands.
func (p *plan) openAccounts() {
	if p.accounts = p.scratch.standing; p.accounts == nil {
		p.accounts = make(map[share.Submitter]*account, len(p.Standing))
	}
	if len(p.Groups) > 0 {
		p.groups = map[string]*group{"": {}}
		for _, g := range p.Groups {
			p.groups[g.Name] = &group{Group: g}
			p.groupNames = append(p.groupNames, g.Name)
		}
		slices.Sort(p.groupNames)
	}
	for who, st := range p.Standing {
		p.openAccount(who, st)
	}
}

func (p *plan) openAccount(who share.Submitter, st Standing) *account {
	a := p.scratch.account(account{Standing: st, held: share.Weight(st.Held, p.total)})
	if p.groups != nil {
		a.group = p.groups[share.Known(p.groupNames, who.Group)]
	}
	p.accounts[who] = a
	return a
}

// sumGroups notes what groups hold. Submitters come in order, so that sums are the same in every run.
func (p *plan) sumGroups() {
	if p.groups == nil {
		return
	}
	all := make([]share.Submitter, 0, len(p.accounts))
	for who := range p.accounts {
		all = append(all, who)
	}
	slices.SortFunc(all, share.Submitter.Compare)
	for _, who := range all {
		a := p.accounts[who]
		a.group.held += a.held
	}
}

// account is how a submitter stands; one that nobody spoke of has nothing.
func (p *plan) account(who share.Submitter) *account {
	if p.last != nil && who == p.lastWho {
		return p.last
	}
	a := p.accounts[who]
	if a == nil {
		a = p.openAccount(who, Standing{})
	}
	p.last, p.lastWho = a, who
	return a
}

// effective is the effective priority, above 0.
func (a *account) effective() float64 {
	if a.Effective > 0 {
		return a.Effective
	}
	return share.LeastPriority * share.DefaultFactor
}

// charge notes that a submitter got so many cores more.
func (a *account) charge(cores float64) {
	a.held += cores
	if a.group != nil {
		a.group.held += cores
	}
}

// mayTake is how many of n units of a want its submitter's ceiling and its group's allocation leave room for.
func (p *plan) mayTake(w *want, n int) int {
	a, unit := w.account, w.unit
	if w.Now {
		return n
	}
	if a.Ceiling > 0 {
		if n = min(n, unitsBelow(a.Ceiling-a.held, unit)); n == 0 {
			if w.Explain {
				w.held, w.heldBy = fmt.Sprintf("ceiling: %v uses %s of the %s cores that it may have", w.Submitter, cores(a.held), cores(a.Ceiling)), Rationed
			}
			return 0
		}
	}
	if a.group == nil || w.Band.Prod() {
		return n
	}
	if n = min(n, unitsBelow(a.group.allocated-a.group.held, unit)); n == 0 && w.Explain {
		w.held, w.heldBy = a.group.reached(), Rationed
	}
	return n
}

// reached says that a group has what it may have.
func (g *group) reached() string {
	who := "group " + g.Name
	if g.Name == "" {
		who = "no group"
	}
	return fmt.Sprintf("quota: %s uses %s of the %s cores that it may have now", who, cores(g.held), cores(g.allocated))
}

// cores writes a number of cores for people.
func cores(n float64) string {
	return strconv.FormatFloat(math.Round(n*100)/100, 'f', -1, 64)
}

// unitsBelow is how many whole units fit into so many cores.
func unitsBelow(room, unit float64) int {
	if unit <= 0 || room/unit >= maxUnits {
		return maxUnits
	}
	return max(0, int((room+dust)/unit))
}

// placeGroups is placeBand where there are groups.
func (p *plan) placeGroups(wants []*want) {
	byGroup := map[*group][]*want{}
	for _, w := range wants { // in order, and so the submitters of each group stay together
		byGroup[w.account.group] = append(byGroup[w.account.group], w)
	}
	for range maxRounds {
		p.divide(byGroup)
		placed := len(p.log)
		p.placeStreams(wants)
		for _, g := range p.byStarvation(byGroup) {
			p.takeTurns(byGroup[g], max(0, g.allocated-g.held))
		}
		if len(p.log) == placed {
			return
		}
	}
}

// divide gives groups what they may have: they request what they use, and what of their wants may still find a machine.
func (p *plan) divide(byGroup map[*group][]*want) {
	request := func(g *group) float64 {
		sum := g.held
		for _, w := range byGroup[g] {
			if !w.barren {
				sum += float64(w.left) * w.unit
			}
		}
		return sum
	}
	groups := slices.Clone(p.Groups)
	for i := range groups {
		groups[i].Requested = request(p.groups[groups[i].Name])
	}
	for _, a := range share.Divide(groups, p.total.CPU.Cores(), request(p.groups[""]), p.Oversubscribe) {
		g := p.groups[a.Name]
		g.quota, g.allocated = a.Quota, a.Allocated
	}
}

// byStarvation orders the groups that want something: by what part of its quota each uses, then those without a quota, then the root.
func (p *plan) byStarvation(byGroup map[*group][]*want) []*group {
	all := make([]*group, 0, len(byGroup))
	for g := range byGroup {
		all = append(all, g)
	}
	used := func(g *group) float64 {
		switch {
		case g.Name == "":
			return 3.4e38
		case g.quota <= 0:
			return 3.3e38
		}
		return g.held / g.quota
	}
	slices.SortFunc(all, func(a, b *group) int { return cmp.Or(cmp.Compare(used(a), used(b)), cmp.Compare(a.Name, b.Name)) })
	return all
}

// placeBand places what one band wants.
func (p *plan) placeBand(wants []*want) {
	if p.groups == nil || wants[0].Band >= roost.Production {
		p.placeStreams(wants)
		p.takeTurns(wants, math.Inf(1))
		return
	}
	p.placeGroups(wants)
}
