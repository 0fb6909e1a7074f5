package startd

import (
	"slices"

	"github.com/roost-batch/roost/startd/slot"
)

// boundCores are those that the claim's tasks are bound to: of the units that it has
// processor time of. Where one unit has all cores, none, unless whole cores are pinned.
func (l *machineLoop) boundCores(c *slot.Claim) []int {
	if !c.HasResources() {
		return nil
	}
	if l.host.config.Pin {
		return l.pinCores(c)
	}
	f, with := l.table.Free(), 0
	for i := range f.Len() {
		if len(f.Unit(i).Cores) > 0 {
			with++
		}
	}
	if with < 2 {
		return nil
	}
	var all []int
	for _, part := range c.Placement.Parts {
		if part.CPU > 0 || len(c.Placement.Parts) == 1 {
			all = append(all, f.Unit(part.Unit).Cores...)
		}
	}
	slices.Sort(all)
	return all
}

// pinCores finds cores for a claim of whole cores, on which no claim of its class is
// pinned. The claim has them for as long as it holds its resources. A part of a core, or
// more cores than the machine really has, is not pinned: such a task runs where there is
// time.
func (l *machineLoop) pinCores(c *slot.Claim) []int {
	if own, ok := l.pinned[c.ID]; ok {
		return own
	}
	if len(c.Placement.Parts) != 1 || c.Resources.CPU%1000 != 0 || c.Resources.CPU == 0 {
		return nil
	}
	taken := make(map[int]bool)
	for id, cores := range l.pinned {
		other, ok := l.table.Claim(id)
		if !ok || !other.HasResources() {
			delete(l.pinned, id)
			continue
		}
		for _, core := range cores {
			taken[core] = taken[core] || other.Class == c.Class
		}
	}
	var own []int
	for _, core := range l.table.Free().Unit(c.Placement.Parts[0].Unit).Cores {
		if !taken[core] && len(own) < int(c.Resources.CPU/1000) {
			own = append(own, core)
		}
	}
	if len(own) < int(c.Resources.CPU/1000) {
		own = nil
	}
	l.pinned[c.ID] = own
	return own
}
