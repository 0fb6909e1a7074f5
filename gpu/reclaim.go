package gpu

import (
	"fmt"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// What a task asked for and does not use may be lent (Borg §5.5). A machine that does so
// keeps two accounts of processor time and memory:
//
//	free = total - Σ limits of the placements that are not Reclaimed    never below 0
//	room = total - Σ reservations of all placements                     below 0 when an estimate was wrong
//
// where a reservation is what a placement takes less what it lends. Work that bears being
// stopped (DeviceRequest.MayReclaim) is placed by room, all other by free: so it neither
// relies on what is lent nor sees that anything is. A placement that found room and not
// free has nothing of its own; it is Reclaimed, and the first to go when room falls below
// 0. Disk and devices are not lent.

// reclaimableResources is what work that bears being stopped may be given of a unit.
type reclaimableResources struct {
	cpu    [2]roost.MilliCPU // by class
	memory roost.Bytes
}

// SetReclaim says whether the machine lends what its tasks leave. Without, room is not
// looked at.
func (f *FreeResources) SetReclaim(on bool) { f.reclaims = on }

// IsReclaiming reports whether the machine lends what its tasks leave.
func (f *FreeResources) IsReclaiming() bool { return f.reclaims }

// Reclaimable returns what the i-th unit could be lending or giving to work of that class
// that bears being stopped, queues aside; below 0, what must be got back. GPUs are the
// whole ones.
func (f *FreeResources) Reclaimable(i int, c AppClass) roost.Resources {
	r := f.UnitFree(i, c)
	if f.reclaims {
		r.CPU, r.Memory = f.units[i].reclaimable.cpu[c], f.units[i].reclaimable.memory
	}
	return r
}

// LeftForRequest is LeftForBatch for batch requests that bear being stopped.
func (f *FreeResources) LeftForRequest(mayReclaim bool) roost.Resources {
	r := f.LeftForBatch()
	if !f.reclaims || !mayReclaim {
		return r
	}
	r.CPU, r.Memory = 0, 0
	for i := range f.units {
		if u := &f.units[i]; !u.queue.IsClosed() {
			r.CPU += max(u.reclaimable.cpu[BatchClass], 0)
			r.Memory += max(u.reclaimable.memory, 0)
		}
	}
	return r
}

// SetUsageEstimate says how much of a placement that is taken is reserved; the rest is
// lent. It is within 0 and what the placement takes, of each unit in proportion.
func (f *FreeResources) SetUsageEstimate(p *Placement, cpu roost.MilliCPU, memory roost.Bytes) {
	f.moveReclaimable(p, -1)
	p.setReclaimable(cpu, memory)
	f.moveReclaimable(p, 1)
}

// moveReclaimable takes what is reserved of a placement off the room, or gives it back.
func (f *FreeResources) moveReclaimable(p *Placement, by int) {
	for _, part := range p.Parts {
		r := &f.units[part.Unit].reclaimable
		r.cpu[p.Class] -= roost.MilliCPU(by) * (part.CPU - part.ReclaimableCPU)
		r.memory -= roost.Bytes(by) * (part.Memory - part.ReclaimableMemory)
	}
}

// setReclaimable divides over its parts what a placement lends.
func (p *Placement) setReclaimable(cpu roost.MilliCPU, memory roost.Bytes) {
	var all UnitPart
	for _, part := range p.Parts {
		all.CPU, all.Memory = all.CPU+part.CPU, all.Memory+part.Memory
	}
	for i := range p.Parts {
		part := &p.Parts[i]
		part.ReclaimableCPU, part.ReclaimableMemory = proportionalPart(part.CPU, all.CPU-cpu, all.CPU),
			proportionalPart(part.Memory, all.Memory-memory, all.Memory)
	}
}

// proportionalPart is part·lent/all, rounded down, within 0 and part.
func proportionalPart[T roost.MilliCPU | roost.Bytes](part, reclaimable, all T) T {
	if reclaimable <= 0 || all <= 0 {
		return 0
	}
	if reclaimable >= all {
		return part
	}
	return min(T(float64(part)*(float64(reclaimable)/float64(all))), part)
}

// UsageEstimate is what of a placement is not lent.
func (p *Placement) UsageEstimate() (cpu roost.MilliCPU, memory roost.Bytes) {
	for _, part := range p.Parts {
		cpu, memory = cpu+part.CPU-part.ReclaimableCPU, memory+part.Memory-part.ReclaimableMemory
	}
	return cpu, memory
}

// availableCPU and memory are what of the i-th unit can be given to a request.
func (f *FreeResources) availableCPU(i int, r DeviceRequest) roost.MilliCPU {
	if f.reclaims && r.MayReclaim {
		return max(f.units[i].reclaimable.cpu[r.Class], 0)
	}
	return f.units[i].cpu[r.Class]
}

func (f *FreeResources) availableMemory(i int, r DeviceRequest) roost.Bytes {
	if f.reclaims && r.MayReclaim {
		return max(f.units[i].reclaimable.memory, 0)
	}
	return f.units[i].memory
}

// markReclaimed says whether a placement that was found for a request has what it takes
// to itself.
func (f *FreeResources) markReclaimed(r DeviceRequest, p *Placement) {
	p.Reclaimed = false
	if f.reclaims && r.MayReclaim {
		p.Reclaimed = !f.fitsInFree(p)
	}
}

// fitsInFree reports whether all that a placement takes of units is free.
func (f *FreeResources) fitsInFree(p *Placement) bool {
	for _, part := range p.Parts {
		if u := &f.units[part.Unit]; part.CPU > u.cpu[p.Class] || part.Memory > u.memory {
			return false
		}
	}
	return true
}

// BackWithFree gives a Reclaimed placement that is taken what has fallen free, so that it
// has it to itself. It reports whether that was enough.
func (f *FreeResources) BackWithFree(p *Placement) bool {
	if !p.Reclaimed || !f.fitsInFree(p) {
		return false
	}
	f.ReturnPlacement(*p)
	p.Reclaimed = false
	f.TakePlacement(*p)
	return true
}

// describeReclaimable writes what may be lent of a unit into its ad.
func (f *FreeResources) describeReclaimable(i int, a *classad.Ad) {
	if !f.reclaims {
		return
	}
	r := &f.units[i].reclaimable
	setCPU(a, roost.AttrRoomCpus, max(r.cpu[BatchClass], 0))
	setCPU(a, roost.AttrRoomStreamCpus, max(r.cpu[StreamClass], 0))
	setMiB(a, roost.AttrRoomMemory, max(r.memory, 0))
}

// describeReclaimed writes what work that bears being stopped may be given beyond what is
// free, for people and requirements.
func (f *FreeResources) describeReclaimed(ad *classad.Ad) {
	if !f.reclaims {
		return
	}
	var sum UnitPart
	for i := range f.units {
		u := &f.units[i]
		sum.CPU += max(u.reclaimable.cpu[BatchClass]-u.cpu[BatchClass], 0)
		sum.Memory += max(u.reclaimable.memory-u.memory, 0)
	}
	setCPU(ad, roost.AttrReclaimedCpus, sum.CPU)
	setMiB(ad, roost.AttrReclaimedMemory, sum.Memory)
}

// readReclaimable reads what may be lent of a unit. One that says nothing of it gives
// what is free, and no more.
func (r *adReader) readReclaimable(u *unitState, a *classad.Ad) error {
	u.reclaimable = reclaimableResources{u.cpu, u.memory}
	if _, ok := a.Lookup(roost.AttrRoomCpus); !ok {
		return nil
	}
	r.free.reclaims = true
	u.reclaimable = reclaimableResources{[2]roost.MilliCPU{cpuAttr(a, roost.AttrRoomCpus),
		cpuAttr(a, roost.AttrRoomStreamCpus)}, mibAttr(a, roost.AttrRoomMemory)}
	if u.reclaimable.cpu[BatchClass] > u.CPU || u.reclaimable.cpu[StreamClass] > u.CPU ||
		u.reclaimable.memory > u.Memory {
		return fmt.Errorf("%w: it has room for more than there is", roost.Invalid)
	}
	return nil
}

// describeUsageEstimate writes into the ad of a claim what it lends, and whether it is
// lent all it has.
func (p *Placement) describeUsageEstimate(ad *classad.Ad) {
	if p.Reclaimed {
		ad.SetBool(roost.AttrReclaimed, true)
	}
	hasReclaimable := slices.ContainsFunc(p.Parts, func(part UnitPart) bool {
		return part.ReclaimableCPU > 0 || part.ReclaimableMemory > 0
	})
	if hasReclaimable {
		cpu, memory := p.UsageEstimate()
		setCPU(ad, roost.AttrReservedCpus, cpu)
		ad.SetInt(roost.AttrReservedMemory, int64((memory+roost.MiB-1)/roost.MiB))
	}
}

func (p *Placement) readUsageEstimate(ad *classad.Ad) {
	p.Reclaimed, _ = ad.Bool(roost.AttrReclaimed)
	if _, ok := ad.Lookup(roost.AttrReservedMemory); ok {
		p.setReclaimable(cpuAttr(ad, roost.AttrReservedCpus), mibAttr(ad, roost.AttrReservedMemory))
	}
}
