package match

import (
	"cmp"
	"slices"
)

// A gang may want all its machines to have the same value of an attribute: a switch, a
// rack, a kind of processor (place=group of PBS). It is tried within one such group of
// machines after the other until it fits, the group with the least room that may be
// enough first, so that the others keep theirs for what is bigger. Machines without the
// attribute are a group as well, as in PBS.

// Bounds on how many groups one gang is tried in, and in how many a time is looked for.
const (
	maxPlacementSets = 8
	maxSetTimelines  = 64
)

// placementSet keeps a gang within a group of machines; nil is none.
type placementSet struct {
	setByMachine []int32 // by machine
	set          int32
}

func (f *placementSet) hasMachine(at int) bool { return f == nil || f.setByMachine[at] == f.set }

// machinesInSet are those of some machines that are inside.
func (f *placementSet) machinesInSet(machines []int) []int {
	if f == nil {
		return machines
	}
	return slices.DeleteFunc(slices.Clone(machines), func(at int) bool { return !f.hasMachine(at) })
}

// numberSets numbers the groups that the machines are in by an attribute, and says how
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

// placeInSets is placeParts, in the groups of machines that a gang may be in.
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

// restrictToSet keeps a gang within a fence. Its parts look at the machines anew.
func (p gangPlanner) restrictToSet(w *requestState, f *placementSet) {
	w.placementSet = f
	for _, c := range w.parts {
		p.releaseMemory(c.requestState)
	}
}

// setsWithRoom lists the groups in which each part of a gang may find room, the least
// room first. The parts have just been asked where there is any.
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

// placementSets are the groups in which a time is looked for at which a gang fits.
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
