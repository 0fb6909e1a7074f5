package forecast

import (
	"cmp"
	"math"
	"slices"

	"github.com/roost-batch/roost"
)

// Seconds is an instant, in unix seconds, or a length of time.
type Seconds = int64

// Never is an instant that does not come, and the length of what does not end.
const Never Seconds = math.MaxInt64

// Release is what a machine gets back at an instant.
type Release struct {
	At        Seconds
	Resources roost.Resources
}

// Hold is what is given away from an instant on until another.
type Hold struct {
	From, Until Seconds
	Resources   roost.Resources
}

// Machine is what is known of a machine's future.
type Machine struct {
	Free     roost.Resources // now; below 0 where more is promised than there is
	Releases []Release       // in order of time; those of the past count now
	Holds    []Hold
}

// End is when something ends that starts then and takes so long.
func End(start, length Seconds) Seconds {
	if length >= Never-start {
		return Never
	}
	return start + length
}

// Release notes that the machine gets something back. What never comes back need not be noted.
func (m *Machine) Release(at Seconds, r roost.Resources) {
	if at == Never {
		return
	}
	i, _ := slices.BinarySearchFunc(m.Releases, at+1, func(r Release, t Seconds) int { return cmp.Compare(r.At, t) })
	m.Releases = slices.Insert(m.Releases, i, Release{at, r})
}

// Start notes that something takes its part of the machine from now on for so long.
func (m *Machine) Start(now, length Seconds, r roost.Resources) {
	m.Free = m.Free.Sub(r)
	m.Release(End(now, length), r)
}

// At is what is free at an instant, not before now. It is below 0 where holds are larger than what there is.
func (m *Machine) At(t Seconds) roost.Resources {
	free := m.Free.Add(roost.Resources{}) // memory of GPUs is not counted
	for i := range m.Releases {
		if m.Releases[i].At > t {
			break
		}
		add(&free, &m.Releases[i].Resources)
	}
	for _, h := range m.Holds {
		if h.From <= t && t < h.Until {
			free = free.Sub(h.Resources)
		}
	}
	return free
}

// add is Resources.Add in place: what will be free is summed up again and again.
func add(sum, r *roost.Resources) {
	sum.CPU += r.CPU
	sum.Memory += r.Memory
	sum.Disk += r.Disk
	sum.GPUs += r.GPUs
}

// Fits reports whether something can have its part of the machine from an instant on, not before now, for so long.
func (m *Machine) Fits(start, length Seconds, r roost.Resources) bool {
	return m.Units(start, length, r, 1) > 0
}

// Units is how many of that size fit together from an instant on for so long, and no more than the limit. What they want nothing of does not count,
// so that who wants no GPU may run where a hold waits for more of them than are free.
func (m *Machine) Units(start, length Seconds, r roost.Resources, limit int) int {
	n := min(limit, r.Times(m.At(start)))
	end := End(start, length)
	for _, h := range m.Holds {
		if n > 0 && start < h.From && h.From < end {
			n = min(n, r.Times(m.At(h.From)))
		}
	}
	return max(n, 0)
}
