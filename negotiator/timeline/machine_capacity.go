package timeline

import (
	"cmp"
	"math"
	"slices"

	"github.com/roost-batch/roost"
)

// UnixSeconds is an instant in unix seconds, or a duration in seconds.
type UnixSeconds = int64

// Never is an instant that never comes, and the length of what does not end.
const Never UnixSeconds = math.MaxInt64

// CapacityRelease is what a machine gets back at an instant.
type CapacityRelease struct {
	At        UnixSeconds
	Resources roost.Resources
}

// Reservation is a reservation of resources from an instant until another.
type Reservation struct {
	From, Until UnixSeconds
	Resources   roost.Resources
}

// MachineCapacity is the known future of a machine's resources.
type MachineCapacity struct {
	Free         roost.Resources   // free now; negative if more is granted than there is
	Releases     []CapacityRelease // in order of time; past ones count now
	Reservations []Reservation
}

// EndTime returns when something of that length ends that starts then.
func EndTime(start, length UnixSeconds) UnixSeconds {
	if length >= Never-start {
		return Never
	}
	return start + length
}

// AddRelease adds a release. A release at Never is ignored.
func (m *MachineCapacity) AddRelease(at UnixSeconds, r roost.Resources) {
	if at == Never {
		return
	}
	i, _ := slices.BinarySearchFunc(m.Releases, at+1, func(r CapacityRelease, t UnixSeconds) int {
		return cmp.Compare(r.At, t)
	})
	m.Releases = slices.Insert(m.Releases, i, CapacityRelease{at, r})
}

// AddStart takes resources from now on for the given length.
func (m *MachineCapacity) AddStart(now, length UnixSeconds, r roost.Resources) {
	m.Free = m.Free.Sub(r)
	m.AddRelease(EndTime(now, length), r)
}

// FreeAt returns what is free at an instant, which must not be before now. It is negative
// where reservations exceed what there is.
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

// addInPlace is Resources.Add in place, because the sums are computed very often.
func addInPlace(sum, r *roost.Resources) {
	sum.CPU += r.CPU
	sum.Memory += r.Memory
	sum.Disk += r.Disk
	sum.GPUs += r.GPUs
	sum.IO.Disk += r.IO.Disk
	sum.IO.Network += r.IO.Network
}

// Fits reports whether a task fits on the machine from an instant on for the given
// length. The instant must not be before now.
func (m *MachineCapacity) Fits(start, length UnixSeconds, r roost.Resources) bool {
	return m.UnitsFrom(start, length, r, 1) > 0
}

// UnitsFrom returns how many tasks of that size fit together from an instant on, up to
// limit. They must fit for the given length. Resources that they do not need do not
// count, so a task without GPUs may run while a reservation waits for more GPUs than are
// free.
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
