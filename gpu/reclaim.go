package gpu

import (
	"fmt"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// Reclamation gives other tasks what a task requested and does not use (Borg §5.5). A
// machine with reclamation has two accounts of CPU and memory:
//
//	free = total - Σ limits of the placements that are not Reclaimed    never below 0
//	room = total - Σ usage estimates of all placements                  may fall below 0
//
// where a usage estimate is what a placement takes minus its reclaimable part. A request
// that may be stopped at any time (DeviceRequest.MayReclaim) is placed by room, all
// others by free: they neither depend on reclaimed resources nor see them. A placement
// that fits room but not free is Reclaimed, and the first to leave when room falls below
// 0. Disk and devices are never reclaimed.

// reclaimableResources is what requests with MayReclaim may get of a unit.
type reclaimableResources struct {
	cpu    [2]roost.MilliCPU // by class
	memory roost.Bytes
}

// SetReclaim switches reclamation on or off. When it is off, room is ignored.
func (f *FreeResources) SetReclaim(on bool) { f.reclaims = on }

// IsReclaiming reports whether reclamation is on.
func (f *FreeResources) IsReclaiming() bool { return f.reclaims }

// Reclaimable returns what the i-th unit has for requests of a class with MayReclaim,
// apart from its node queue. Below 0 it is what must be taken back. GPUs are the whole
// ones.
func (f *FreeResources) Reclaimable(i int, c AppClass) roost.Resources {
	r := f.UnitFree(i, c)
	if f.reclaims {
		r.CPU, r.Memory = f.units[i].reclaimable.cpu[c], f.units[i].reclaimable.memory
	}
	return r
}

// LeftForRequest is LeftForBatch for batch requests with the given MayReclaim.
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

// SetUsageEstimate sets the usage estimate of an allocated placement; the rest is
// reclaimable. The estimate is clamped to 0 and to what the placement takes, and is
// divided over the units in proportion.
func (f *FreeResources) SetUsageEstimate(p *Placement, cpu roost.MilliCPU, memory roost.Bytes) {
	f.moveReclaimable(p, -1)
	p.setReclaimable(cpu, memory)
	f.moveReclaimable(p, 1)
}

// moveReclaimable subtracts the usage estimate of a placement from the room, or adds it
// back.
func (f *FreeResources) moveReclaimable(p *Placement, by int) {
	for _, part := range p.Parts {
		r := &f.units[part.Unit].reclaimable
		r.cpu[p.Class] -= roost.MilliCPU(by) * (part.CPU - part.ReclaimableCPU)
		r.memory -= roost.Bytes(by) * (part.Memory - part.ReclaimableMemory)
	}
}

// setReclaimable divides the reclaimable amount of a placement over its parts.
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

// proportionalPart returns part·reclaimable/all, rounded down, between 0 and part.
func proportionalPart[T roost.MilliCPU | roost.Bytes](part, reclaimable, all T) T {
	if reclaimable <= 0 || all <= 0 {
		return 0
	}
	if reclaimable >= all {
		return part
	}
	return min(T(float64(part)*(float64(reclaimable)/float64(all))), part)
}

// UsageEstimate returns what the placement takes without its reclaimable part.
func (p *Placement) UsageEstimate() (cpu roost.MilliCPU, memory roost.Bytes) {
	for _, part := range p.Parts {
		cpu, memory = cpu+part.CPU-part.ReclaimableCPU, memory+part.Memory-part.ReclaimableMemory
	}
	return cpu, memory
}

// availableCPU returns the CPU that the i-th unit can give to a request; availableMemory
// does so for memory.
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

// markReclaimed sets Reclaimed in a placement that fits only into room.
func (f *FreeResources) markReclaimed(r DeviceRequest, p *Placement) {
	p.Reclaimed = false
	if f.reclaims && r.MayReclaim {
		p.Reclaimed = !f.fitsInFree(p)
	}
}

// fitsInFree reports whether everything that a placement takes of units is free.
func (f *FreeResources) fitsInFree(p *Placement) bool {
	for _, part := range p.Parts {
		if u := &f.units[part.Unit]; part.CPU > u.cpu[p.Class] || part.Memory > u.memory {
			return false
		}
	}
	return true
}

// BackWithFree gives free CPU and memory to an allocated placement in reclaimed
// resources. It succeeds only if all of the placement fits; then the placement is no
// longer Reclaimed.
func (f *FreeResources) BackWithFree(p *Placement) bool {
	if !p.Reclaimed || !f.fitsInFree(p) {
		return false
	}
	f.ReturnPlacement(*p)
	p.Reclaimed = false
	f.TakePlacement(*p)
	return true
}

// describeReclaimable writes the room of a unit into its ad.
func (f *FreeResources) describeReclaimable(i int, a *classad.Ad) {
	if !f.reclaims {
		return
	}
	r := &f.units[i].reclaimable
	setCPU(a, roost.AttrRoomCpus, max(r.cpu[BatchClass], 0))
	setCPU(a, roost.AttrRoomStreamCpus, max(r.cpu[StreamClass], 0))
	setMiB(a, roost.AttrRoomMemory, max(r.memory, 0))
}

// describeReclaimed writes what requests with MayReclaim may get beyond what is free, for
// users and requirements.
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

// readReclaimable reads the room of a unit. A unit without these attributes has what is
// free, and no more.
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

// describeUsageEstimate writes the usage estimate of a placement, and whether it is
// Reclaimed, into the ad of its claim.
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
