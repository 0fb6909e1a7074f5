package timeline

import (
	"cmp"
	"math"
	"slices"

	"github.com/roost-batch/roost"
)

// UnixSeconds is an instant, in unix seconds, or a length of time.
type UnixSeconds = int64

// Never is an instant that does not come, and the length of what does not end.
const Never UnixSeconds = math.MaxInt64

// CapacityRelease is what a machine gets back at an instant.
type CapacityRelease struct {
	At        UnixSeconds
	Resources roost.Resources
}

// Reservation is what is given away from an instant on until another.
type Reservation struct {
	From, Until UnixSeconds
	Resources   roost.Resources
}

// MachineCapacity is what is known of a machine's future.
type MachineCapacity struct {
	Free         roost.Resources   // now; below 0 where more is promised than there is
	Releases     []CapacityRelease // in order of time; those of the past count now
	Reservations []Reservation
}

// EndTime is when something ends that starts then and takes so long.
func EndTime(start, length UnixSeconds) UnixSeconds {
	if length >= Never-start {
		return Never
	}
	return start + length
}

// AddRelease notes that the machine gets something back. What never comes back need not
// be noted.
func (m *MachineCapacity) AddRelease(at UnixSeconds, r roost.Resources) {
	if at == Never {
		return
	}
	i, _ := slices.BinarySearchFunc(m.Releases, at+1, func(r CapacityRelease, t UnixSeconds) int {
		return cmp.Compare(r.At, t)
	})
	m.Releases = slices.Insert(m.Releases, i, CapacityRelease{at, r})
}

// AddStart notes that something takes its part of the machine from now on for so long.
func (m *MachineCapacity) AddStart(now, length UnixSeconds, r roost.Resources) {
	m.Free = m.Free.Sub(r)
	m.AddRelease(EndTime(now, length), r)
}

// FreeAt is what is free at an instant, not before now. It is below 0 where holds are
// larger than what there is.
func (m *MachineCapacity) FreeAt(t UnixSeconds) roost.Resources {
	free := m.Free.Add(roost.Resources{}) // memory of GPUs is not counted
	for i := range m.Releases {
		if m.Releases[i].At > t {
			break
		}
		addInPlace(&free, &m.Releases[i].Resources)
	}
	for _, h := range m.Reservations {
		if h.From <= t && t < h.Until {
			free = free.Sub(h.Resources)
		}
	}
	return free
}

// addInPlace is Resources.Add in place: what will be free is summed up again and again.
func addInPlace(sum, r *roost.Resources) {
	sum.CPU += r.CPU
	sum.Memory += r.Memory
	sum.Disk += r.Disk
	sum.GPUs += r.GPUs
}

// Fits reports whether something can have its part of the machine from an instant on, not
// before now, for so long.
func (m *MachineCapacity) Fits(start, length UnixSeconds, r roost.Resources) bool {
	return m.UnitsFrom(start, length, r, 1) > 0
}

// UnitsFrom is how many of that size fit together from an instant on for so long, and no
// more than the limit. What they want nothing of does not count, so that who wants no GPU
// may run where a hold waits for more of them than are free.
func (m *MachineCapacity) UnitsFrom(start, length UnixSeconds, r roost.Resources, limit int) int {
	n := min(limit, r.TimesIn(m.FreeAt(start)))
	end := EndTime(start, length)
	for _, h := range m.Reservations {
		if n > 0 && start < h.From && h.From < end {
			n = min(n, r.TimesIn(m.FreeAt(h.From)))
		}
	}
	return max(n, 0)
}
