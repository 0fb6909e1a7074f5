package plan

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/provision/provider"
	"github.com/roost-batch/roost/negotiator/match"
)

// trialPlacement places demand on nodes that are there or could be, with the matcher of
// the pool. It counts what is left.
type trialPlacement struct {
	now    time.Time
	demand []Demand
	left   []int // by demand: units without a place
	serial int   // of the nodes' names
}

func newTrial(now time.Time, demand []Demand) *trialPlacement {
	t := &trialPlacement{now: now, demand: demand, left: make([]int, len(demand))}
	for i := range demand {
		t.left[i] = demand[i].Units
	}
	return t
}

// placedUnits is the result of one trial.
type placedUnits struct {
	units map[int]int     // by number of the demand
	used  map[string]bool // names of the machines that got some
}

// place tries to place units on machines. Wanted returns how many units of a demand take
// part; nothing is counted as placed yet.
func (t *trialPlacement) place(machines []*match.Machine, wanted func(i int) int) placedUnits {
	p := placedUnits{map[int]int{}, map[string]bool{}}
	s := &match.Snapshot{Now: t.now, Machines: machines, Preemption: match.PreemptionPolicy{HasBudgets: true}}
	for i := range t.demand {
		units := wanted(i)
		if units -= units % t.demand[i].step(); units > 0 {
			s.Requests = append(s.Requests, t.demand[i].request(i, units))
		}
	}
	if len(s.Requests) == 0 || len(machines) == 0 {
		return p
	}
	for _, g := range match.NewMatcher().Plan(s).Grants {
		if !g.Waiting && len(g.Victims) == 0 {
			p.units[int(g.Request.Key.ID-1)] += g.Units
			p.used[g.Machine.Name] = true
		}
	}
	return p
}

// take counts units as placed.
func (t *trialPlacement) take(p placedUnits) {
	for i, n := range p.units {
		t.left[i] -= n
	}
}

// isDone reports whether all demand has a place.
func (t *trialPlacement) isDone() bool {
	return !slices.ContainsFunc(t.left, func(n int) bool { return n > 0 })
}

// takePilots places demand on pilots that are there.
func (t *trialPlacement) takePilots(pilots []Pilot, settings func(key string) *provider.Settings) {
	byLeft := map[time.Duration][]*match.Machine{}
	owner := map[time.Duration]*provider.Settings{}
	for _, p := range pilots {
		s := settings(p.Key)
		if s == nil || !p.Until.After(t.now) {
			continue
		}
		left := p.Until.Sub(t.now).Truncate(time.Minute)
		byLeft[left] = append(byLeft[left], match.NewMachine(p.Name, 1, 1, p.Ad.Copy()))
		owner[left] = s
	}
	for _, left := range slices.Sorted(maps.Keys(byLeft)) { // long tasks need those that end last
		machines := byLeft[left]
		slices.SortFunc(machines, func(a, b *match.Machine) int { return compareNames(a.Name, b.Name) })
		t.take(t.place(machines, func(i int) int {
			if !owner[left].FitsTime(t.demand[i].Walltime, left+owner[left].Margin) { // Until is before the margin
				return 0
			}
			return t.left[i]
		}))
	}
}

func compareNames(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// takeAllocation places demand on the nodes of an allocation that are yet to join. It
// reports whether anything needs them.
func (t *trialPlacement) takeAllocation(p *Provider, a *Allocation, nodes int) bool {
	fits := func(i int) int {
		if !p.FitsTime(t.demand[i].Walltime, a.Walltime) {
			return 0
		}
		return t.left[i]
	}
	got := t.place(t.nodes(p, nodes), fits)
	if len(got.units) == 0 && !p.hasLearnt() { // a probe: it is for one task that may run there
		got = t.probe(p, fits)
	}
	t.take(got)
	return len(got.units) > 0
}

// nodes returns machines of a provider that nothing uses.
func (t *trialPlacement) nodes(p *Provider, n int) []*match.Machine {
	t.serial++
	return trialNodes(fmt.Sprintf("trial%04d", t.serial), p.nodeAd(), n)
}

// probe finds the first task, or gang, that might run on a node that nobody has seen.
func (t *trialPlacement) probe(p *Provider, wanted func(i int) int) placedUnits {
	node := p.nodeAd()
	for i := range t.demand {
		d := &t.demand[i]
		if d.Gang > 1 && p.Kind.IsSingleNode() && t.misfit(i, node, 1) != "" {
			continue
		}
		if wanted(i) >= d.step() && mayMatch(d.Class, node, t.now) {
			return placedUnits{units: map[int]int{i: d.step()}}
		}
	}
	return placedUnits{}
}

// neededAllocation is an allocation that demand needs.
type neededAllocation struct {
	nodes   int
	isProbe bool
	placed  placedUnits
	single  bool // it is for tasks that are no gangs
}

// needed returns the allocations that would give demand a place at a provider. They have
// at most as many nodes as there is room for; those of gangs come first. Nothing is
// counted as placed yet.
func (t *trialPlacement) needed(p *Provider, room int, wanted func(i int) int) (list []neededAllocation) {
	rest := map[int]int{}
	for i := range t.demand {
		rest[i] = wanted(i)
	}
	subtract := func(got placedUnits) {
		for i, n := range got.units {
			rest[i] -= n
		}
	}
	for i := range t.demand {
		d := &t.demand[i]
		for d.Gang > 1 && rest[i] >= d.Gang && room > 0 {
			alone := t.place(t.nodes(p, min(d.Gang, room)), func(j int) int {
				if i != j {
					return 0
				}
				return d.Gang
			})
			if len(alone.units) == 0 {
				break
			}
			n := len(alone.used)
			if n > 1 && p.Kind.IsSingleNode() {
				break
			}
			got := t.place(t.nodes(p, n), func(j int) int {
				switch {
				case i == j:
					return d.Gang
				case t.demand[j].Gang > 1:
					return 0
				}
				return rest[j]
			})
			subtract(got)
			room -= n
			list = append(list, neededAllocation{nodes: n, placed: got})
		}
	}
	return append(list, t.neededBySingles(p, room, rest)...)
}

// neededBySingles returns the allocations for tasks that are no gangs.
func (t *trialPlacement) neededBySingles(p *Provider, room int, rest map[int]int) (list []neededAllocation) {
	machines := t.nodes(p, room)
	got := t.place(machines, func(i int) int {
		if t.demand[i].Gang > 1 {
			return 0
		}
		return rest[i]
	})
	for n := len(got.used); n > 0; n -= p.NodesEach {
		list = append(list, neededAllocation{nodes: min(n, p.NodesEach), single: true})
	}
	return list
}

// takeFirst counts as placed what the first n needed allocations take.
func (t *trialPlacement) takeFirst(p *Provider, list []neededAllocation, n int, wanted func(i int) int) {
	nodes := 0
	for _, need := range list[:n] {
		switch {
		case need.single:
			nodes += need.nodes
		default:
			t.take(need.placed)
		}
	}
	if nodes > 0 {
		t.take(t.place(t.nodes(p, nodes), func(i int) int {
			if t.demand[i].Gang > 1 {
				return 0
			}
			return min(wanted(i), t.left[i])
		}))
	}
}

// misfit returns why a demand finds no place on an empty node of a provider.
func (t *trialPlacement) misfit(i int, ad *classad.Ad, nodes int) string {
	d := &t.demand[i]
	t.serial++
	r := d.request(i, d.step())
	r.Explain = true
	plan := match.NewMatcher().Plan(&match.Snapshot{Now: t.now, Requests: []*match.Request{r},
		Machines:   trialNodes(fmt.Sprintf("trial%04d", t.serial), ad, max(nodes, 1)),
		Preemption: match.PreemptionPolicy{HasBudgets: true}})
	for _, u := range plan.Unplaced {
		if u.Explanation != nil && len(u.Explanation.Reasons) > 0 {
			return u.Explanation.Reasons[0].Text
		}
	}
	return ""
}
