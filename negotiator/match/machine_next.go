package match

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
)

// Simulators, and readers of a cell checkpoint, have no ads of machines to read. The
// functions below derive a machine from another.

// ReplaceClaims returns the machine with other claims and preemptors than its ad has. If
// they are unknown, unclear says why.
func (m *Machine) ReplaceClaims(claims, preemptors []MachineClaim, unclear error) *Machine {
	next := *m
	next.Claims, next.Preemptors, next.ClaimsUnknown, next.inMatcher = claims, preemptors, unclear, nil
	next.deriveFromClaims()
	return &next
}

// writeFreeAmounts writes the free resources of a machine into its ad, so that
// resourcesOf reads the same amounts.
func writeFreeAmounts(ad *classad.Ad, r roost.Resources) {
	ad.SetReal(roost.AttrCpus, r.CPU.Cores())
	ad.SetReal(roost.AttrMemory, float64(r.Memory)/float64(roost.MiB))
	ad.SetReal(roost.AttrDisk, float64(r.Disk)/float64(roost.KiB))
	ad.SetInt(roost.AttrGpus, int64(r.GPUs))
	gpu.DescribeIORates(ad, r.IO, gpu.IORatesOf(ad, roost.AttrTotalDiskIO, roost.AttrTotalNetwork), roost.AttrDiskIO,
		roost.AttrNetwork)
}

// AfterClaimsEnd returns the machine's next version after the claims with the given
// numbers have ended and others have begun. The placements of begun are of that machine:
// see [Machine.PlaceNext]. No claim waits on it then. If the placements do not fit, the
// error has the kind roost.Conflict and there is no machine.
func (m *Machine) AfterClaimsEnd(ended []uint64, begun ...MachineClaim) (*Machine, error) {
	f, err := m.successorRoom(ended)
	if err != nil {
		return nil, err
	}
	claims := make([]MachineClaim, 0, len(m.Claims)+len(begun))
	for i := range m.Claims {
		if !containsID(ended, m.Claims[i].ID) {
			claims = append(claims, m.Claims[i])
		}
	}
	for _, c := range begun {
		if !f.CanTake(c.Placement) {
			return nil, fmt.Errorf("%s: %w: claim %d finds no room", m.Name, roost.Conflict, c.ID)
		}
		f.TakePlacement(c.Placement)
		f.countBatchTasks(c.Placement, 1)
	}
	return m.nextVersion(f.FreeResources, append(claims, begun...)), nil
}

// PlaceNext returns where the machine would place a request if the claims of those
// numbers had ended. If exclusive, the request takes the whole machine. ok is false if
// there is no room.
func (m *Machine) PlaceNext(ended []uint64, r gpu.DeviceRequest, exclusive bool) (p gpu.Placement, ok bool) {
	f, err := m.successorRoom(ended)
	switch {
	case err != nil:
		return p, false
	case exclusive:
		return f.WholeMachine()
	}
	ok = f.FindPlacement(r, gpu.AnyUnit, &p)
	return p, ok
}

// Emptied returns the machine as it would be without any claim.
func (m *Machine) Emptied() *Machine {
	f, err := gpu.ReadAd(m.Ad)
	if err != nil {
		return m
	}
	run := make([]int, f.Len())
	for i := range run {
		run[i] = f.Queue(i).RunLimit
	}
	f = f.EmptyClone()
	for i, n := range run {
		f.SetQueue(i, gpu.UnitQueue{RunLimit: n})
	}
	return m.nextVersion(f, nil)
}

// successorRoom is what is free on a machine when some claims have ended and none waits.
type successorRoom struct{ *gpu.FreeResources }

func (m *Machine) successorRoom(ended []uint64) (successorRoom, error) {
	free, err := gpu.ReadAd(m.Ad)
	if err != nil {
		return successorRoom{}, fmt.Errorf("%s: %w", m.Name, err)
	}
	f := successorRoom{free}
	for i := range m.Claims {
		if c := &m.Claims[i]; containsID(ended, c.ID) {
			p := c.placement(m)
			if !free.CanReturnAll([]gpu.Placement{p}) {
				return f, fmt.Errorf("%s: %w: claim %d holds more than the machine has given away", m.Name,
					roost.Conflict, c.ID)
			}
			f.ReturnPlacement(p)
			f.countBatchTasks(p, -1)
		}
	}
	for i := range f.Len() {
		q := f.Queue(i)
		q.Length, q.FreePlaces, q.WaitSeconds = 0, 0, 0
		f.SetQueue(i, q)
	}
	return f, nil
}

// countBatchTasks adds to the number of batch tasks that run in the units of a placement.
func (f successorRoom) countBatchTasks(p gpu.Placement, by int) {
	if p.Class != gpu.BatchClass {
		return
	}
	for _, part := range p.Parts {
		q := f.Queue(part.Unit)
		q.Running = max(q.Running+by, 0)
		f.SetQueue(part.Unit, q)
	}
}

// nextVersion returns the machine with other free resources and claims.
func (m *Machine) nextVersion(f *gpu.FreeResources, claims []MachineClaim) *Machine {
	ad := m.Ad.Copy()
	writeFreeAmounts(ad, f.LeftForBatch())
	f.Describe(ad)
	return NewMachine(m.Name, m.Started, m.Sequence+1, ad).ReplaceClaims(claims, nil, nil)
}

func containsID(ids []uint64, id uint64) bool {
	for _, one := range ids {
		if one == id {
			return true
		}
	}
	return false
}
