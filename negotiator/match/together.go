package match

import (
	"cmp"
	"slices"
)

// A gang may want all its machines to have the same value of an attribute: a switch, a rack, a kind of processor (place=group of PBS). It is tried within one
// such group of machines after the other until it fits, the group with the least room that may be enough first, so that the others keep theirs for what is
// bigger. Machines without the attribute are a group as well, as in PBS.

// Bounds on how many groups one gang is tried in, and in how many a time is looked for.
const (
	maxFences   = 8
	maxForeseen = 64
)

// fence keeps a gang within a group of machines; nil is none.
type fence struct {
	groups []int32 // by machine
	group  int32
}

func (f *fence) has(at int) bool { return f == nil || f.groups[at] == f.group }

// within are those of some machines that are inside.
func (f *fence) within(machines []int) []int {
	if f == nil {
		return machines
	}
	return slices.DeleteFunc(slices.Clone(machines), func(at int) bool { return !f.has(at) })
}

// groupMachines numbers the groups that the machines are in by an attribute, and says how many there are.
func (p *plan) groupMachines(attribute string) (groups []int32, n int) {
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

// placeWithin is placeCast, in the groups of machines that a gang may be in.
func (p *plan) placeWithin(w *want) (room int) {
	if w.Class.Together == "" {
		return p.placeCast(w)
	}
	for _, f := range p.roomy(w) {
		p.enclose(w, f)
		if room = max(room, p.placeCast(w)); room >= w.Gang {
			break
		}
	}
	p.enclose(w, nil)
	return room
}

// enclose keeps a gang within a fence. Its parts look at the machines anew.
func (p *plan) enclose(w *want, f *fence) {
	w.fence = f
	for _, c := range w.cast {
		p.release(c.want)
	}
}

// roomy lists the groups in which each part of a gang may find room, the least room first. The parts have just been asked where there is any.
func (p *plan) roomy(w *want) (list []*fence) {
	groups, n := p.groupMachines(w.Class.Together)
	all, enough := make([]int, n), slices.Repeat([]bool{true}, n)
	for _, c := range w.cast {
		some := make([]int, n)
		for _, on := range c.heap.list {
			if on.version == p.versions[on.at] {
				some[groups[on.at]] += c.here(max(1, c.Class.sums.Times(p.room(c.Class, int(on.at)))))
			}
		}
		for g := range all {
			all[g], enough[g] = all[g]+some[g], enough[g] && some[g] >= c.units
		}
	}
	for g := range all {
		if enough[g] {
			list = append(list, &fence{groups, int32(g)})
		}
	}
	slices.SortStableFunc(list, func(a, b *fence) int { return cmp.Compare(all[a.group], all[b.group]) })
	return list[:min(len(list), maxFences)]
}

// fences are the groups in which a time is looked for at which a gang fits.
func (p *plan) fences(w *want) (list []*fence) {
	if w.Class.Together == "" || w.Gang < 2 {
		return []*fence{nil}
	}
	groups, n := p.groupMachines(w.Class.Together)
	for g := range min(n, maxForeseen) {
		list = append(list, &fence{groups, int32(g)})
	}
	return list
}
