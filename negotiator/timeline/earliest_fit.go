package timeline

import (
	"cmp"
	"slices"

	"github.com/roost-batch/roost"
)

// capacityChange is an instant from which on a machine has room for more tasks than
// before, or for fewer.
type capacityChange struct {
	at    UnixSeconds
	units int // difference; negative: fewer
}

// EarliestFit returns the first instant at which n tasks fit on the machines together for
// the given length. It also returns how many fit on which; ok is false if no such instant
// is known. Machines with lower indexes are used first.
func EarliestFit(machines []*MachineCapacity, now, length UnixSeconds, r roost.Resources,
	n int) (start UnixSeconds, on []int, ok bool) {
	return EarliestSpreadFit(machines, now, length, r, n, n)
}

// EarliestUnit is EarliestFit for one task on one machine.
func (m *MachineCapacity) EarliestUnit(now, length UnixSeconds, r roost.Resources) (start UnixSeconds, ok bool) {
	if len(m.Reservations) > 0 {
		start, _, ok = EarliestFit([]*MachineCapacity{m}, now, length, r, 1)
		return start, ok
	}
	free, at := m.Free, now // free resources only rise
	for i := range m.Releases {
		one := &m.Releases[i]
		if one.At > at {
			if HasRoom(&r, &free) {
				return at, true
			}
			at = one.At
		}
		addInPlace(&free, &one.Resources)
	}
	return at, HasRoom(&r, &free)
}

// HasRoom reports whether r.Times(free) > 0, without a division. Resources of which r has
// none do not count.
func HasRoom(r, free *roost.Resources) bool {
	return (r.CPU <= 0 || r.CPU <= free.CPU) && (r.Memory <= 0 || r.Memory <= free.Memory) &&
		(r.Disk <= 0 || r.Disk <= free.Disk) &&
		(r.GPUs <= 0 || r.GPUs <= free.GPUs) && r.IO.FitsIn(free.IO) &&
		(r.CPU > 0 || r.Memory > 0 || r.Disk > 0 || r.GPUs > 0)
}

// EarliestSpreadFit is EarliestFit with at most each tasks on a machine.
func EarliestSpreadFit(machines []*MachineCapacity, now, length UnixSeconds, r roost.Resources,
	n, each int) (start UnixSeconds, on []int, ok bool) {
	var all []capacityChange
	for _, m := range machines {
		all = m.appendChanges(all, now, length, r, min(n, each))
	}
	slices.SortFunc(all, func(a, b capacityChange) int { return cmp.Compare(a.at, b.at) })
	room := 0
	for i, s := range all {
		room += s.units
		if room < n || i+1 < len(all) && all[i+1].at == s.at {
			continue
		}
		on = make([]int, len(machines))
		left := n
		for k, m := range machines {
			on[k] = m.UnitsFrom(s.at, length, r, min(left, each))
			left -= on[k]
		}
		return s.at, on, true
	}
	return 0, nil, false
}

// appendChanges appends the changes of the number of tasks that fit on the machine, up to
// a limit.
func (m *MachineCapacity) appendChanges(list []capacityChange, now, length UnixSeconds, r roost.Resources,
	limit int) []capacityChange {
	if len(m.Reservations) == 0 {
		return m.appendReleases(list, now, r, limit)
	}
	times := append(make([]UnixSeconds, 0, 1+len(m.Releases)+2*len(m.Reservations)), now)
	for _, r := range m.Releases {
		times = append(times, r.At)
	}
	for _, h := range m.Reservations {
		times = append(times, h.Until)
		if length <= h.From-now {
			times = append(times, h.From-length+1) // a task that starts then overlaps the reservation
		}
	}
	slices.Sort(times)
	had := 0
	for _, t := range slices.Compact(times) {
		if t < now || t == Never {
			continue
		}
		if units := m.UnitsFrom(t, length, r, limit); units != had {
			list = append(list, capacityChange{t, units - had})
			had = units
		}
	}
	return list
}

// appendReleases is appendChanges without reservations, when free resources only rise.
func (m *MachineCapacity) appendReleases(list []capacityChange, now UnixSeconds, r roost.Resources,
	limit int) []capacityChange {
	free, had := m.Free, 0
	note := func(at UnixSeconds) {
		if units := max(min(limit, r.TimesIn(free)), 0); units != had {
			list = append(list, capacityChange{at, units - had})
			had = units
		}
	}
	i := 0
	for ; i < len(m.Releases) && m.Releases[i].At <= now; i++ {
		free = free.Add(m.Releases[i].Resources)
	}
	note(now)
	for i < len(m.Releases) && had < limit {
		at := m.Releases[i].At
		for ; i < len(m.Releases) && m.Releases[i].At == at; i++ {
			free = free.Add(m.Releases[i].Resources)
		}
		note(at)
	}
	return list
}
