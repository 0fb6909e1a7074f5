package match

import (
	"cmp"
	"slices"
)

// The machines of a gang may need the same value of an attribute: a switch, a rack, a
// type of processor (place=group of PBS). The gang is tried in one placement set after
// the other until it fits. The set with the least room that may be enough comes first, so
// that the others keep theirs for larger gangs. Machines without the attribute are one
// set as well, as in PBS.

// Bounds on the sets in which one gang is tried, and in which its start time is searched.
const (
	maxPlacementSets = 8
	maxSetTimelines  = 64
)

// placementSet restricts a gang to a set of machines; nil is no restriction.
type placementSet struct {
	setByMachine []int32 // by machine: number of its set
	set          int32
}

func (f *placementSet) hasMachine(at int) bool { return f == nil || f.setByMachine[at] == f.set }

// machinesInSet returns those of some machines that are in the set.
func (f *placementSet) machinesInSet(machines []int) []int {
	if f == nil {
		return machines
	}
	return slices.DeleteFunc(slices.Clone(machines), func(at int) bool { return !f.hasMachine(at) })
}

// numberSets numbers the sets of machines by the value of an attribute, and returns how
// many there are.
func (p gangPlanner) numberSets(attribute string) (groups []int32, n int) {
	number := map[string]int32{}
	groups = make([]int32, len(p.Machines))
	for at, m := range p.Machines {
		name := m.Ad.Eval(attribute, &p.env).String()
		k, known := number[name]
		if !known {
			k = int32(len(number))
			number[name] = k
		}
		groups[at] = k
	}
	return groups, len(number)
}

// placeInSets does the work of placeParts within the placement sets of a gang.
func (p gangPlanner) placeInSets(w *requestState) (room int) {
	if w.Class.PlacementSetAttr == "" {
		return p.placeParts(w)
	}
	for _, f := range p.setsWithRoom(w) {
		p.restrictToSet(w, f)
		if room = max(room, p.placeParts(w)); room >= w.Gang {
			break
		}
	}
	p.restrictToSet(w, nil)
	return room
}

// restrictToSet restricts a gang to a placement set. Its parts look at the machines
// again.
func (p gangPlanner) restrictToSet(w *requestState, f *placementSet) {
	w.placementSet = f
	for _, c := range w.parts {
		p.releaseMemory(c.requestState)
	}
}

// setsWithRoom lists the sets in which each part of a gang may find room, the least room
// first. The heaps of the parts must be current.
func (p gangPlanner) setsWithRoom(w *requestState) (list []*placementSet) {
	groups, n := p.numberSets(w.Class.PlacementSetAttr)
	all, enough := make([]int, n), slices.Repeat([]bool{true}, n)
	for _, c := range w.parts {
		some := make([]int, n)
		for _, on := range c.heap.list {
			if on.version == p.versions[on.machine] {
				some[groups[on.machine]] += c.unitsPerMachine(max(1,
					c.Class.minimumSums.TimesIn(p.roomBySums(c.Class, int(on.machine)))))
			}
		}
		for g := range all {
			all[g], enough[g] = all[g]+some[g], enough[g] && some[g] >= c.units
		}
	}
	for g := range all {
		if enough[g] {
			list = append(list, &placementSet{groups, int32(g)})
		}
	}
	slices.SortStableFunc(list, func(a, b *placementSet) int { return cmp.Compare(all[a.set], all[b.set]) })
	return list[:min(len(list), maxPlacementSets)]
}

// placementSets returns the sets in which a start time of a gang is searched.
func (p gangPlanner) placementSets(w *requestState) (list []*placementSet) {
	if w.Class.PlacementSetAttr == "" || w.Gang < 2 {
		return []*placementSet{nil}
	}
	groups, n := p.numberSets(w.Class.PlacementSetAttr)
	for g := range min(n, maxSetTimelines) {
		list = append(list, &placementSet{groups, int32(g)})
	}
	return list
}
