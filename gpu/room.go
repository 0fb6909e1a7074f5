package gpu

import (
	"fmt"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// What a task asked for and does not use may be lent (Borg §5.5). A machine that does so keeps two accounts of processor time and memory:
//
//	free = total - Σ limits of the placements that are not Reclaimed    never below 0
//	room = total - Σ reservations of all placements                     below 0 when an estimate was wrong
//
// where a reservation is what a placement takes less what it lends. Work that bears being stopped (Request.MayReclaim) is placed by room, all other
// by free: so it neither relies on what is lent nor sees that anything is. A placement that found room and not free has nothing of its own; it is
// Reclaimed, and the first to go when room falls below 0. Disk and devices are not lent.

// room is what work that bears being stopped may be given of a unit.
type room struct {
	cpu    [2]roost.MilliCPU // by class
	memory roost.Bytes
}

// SetReclaim says whether the machine lends what its tasks leave. Without, room is not looked at.
func (f *Free) SetReclaim(on bool) { f.reclaim = on }

// Reclaims reports whether the machine lends what its tasks leave.
func (f *Free) Reclaims() bool { return f.reclaim }

// Room returns what the i-th unit could be lending or giving to work of that class that bears being stopped, queues aside; below 0, what must be
// got back. GPUs are the whole ones.
func (f *Free) Room(i int, c Class) roost.Resources {
	r := f.UnitFree(i, c)
	if f.reclaim {
		r.CPU, r.Memory = f.units[i].room.cpu[c], f.units[i].room.memory
	}
	return r
}

// LeftFor is Left for batch requests that bear being stopped.
func (f *Free) LeftFor(mayReclaim bool) roost.Resources {
	r := f.Left()
	if !f.reclaim || !mayReclaim {
		return r
	}
	r.CPU, r.Memory = 0, 0
	for i := range f.units {
		if u := &f.units[i]; !u.queue.Shut() {
			r.CPU += max(u.room.cpu[Batch], 0)
			r.Memory += max(u.room.memory, 0)
		}
	}
	return r
}

// Reserve says how much of a placement that is taken is reserved; the rest is lent. It is within 0 and what the placement takes, of each unit in
// proportion.
func (f *Free) Reserve(p *Placement, cpu roost.MilliCPU, memory roost.Bytes) {
	f.roomFor(p, -1)
	p.reserve(cpu, memory)
	f.roomFor(p, 1)
}

// roomFor takes what is reserved of a placement off the room, or gives it back.
func (f *Free) roomFor(p *Placement, by int) {
	for _, part := range p.Parts {
		r := &f.units[part.Unit].room
		r.cpu[p.Class] -= roost.MilliCPU(by) * (part.CPU - part.LentCPU)
		r.memory -= roost.Bytes(by) * (part.Memory - part.LentMemory)
	}
}

// reserve divides over its parts what a placement lends.
func (p *Placement) reserve(cpu roost.MilliCPU, memory roost.Bytes) {
	var all Part
	for _, part := range p.Parts {
		all.CPU, all.Memory = all.CPU+part.CPU, all.Memory+part.Memory
	}
	for i := range p.Parts {
		part := &p.Parts[i]
		part.LentCPU, part.LentMemory = portion(part.CPU, all.CPU-cpu, all.CPU), portion(part.Memory, all.Memory-memory, all.Memory)
	}
}

// portion is part·lent/all, rounded down, within 0 and part.
func portion[T roost.MilliCPU | roost.Bytes](part, lent, all T) T {
	if lent <= 0 || all <= 0 {
		return 0
	}
	if lent >= all {
		return part
	}
	return min(T(float64(part)*(float64(lent)/float64(all))), part)
}

// Reserved is what of a placement is not lent.
func (p *Placement) Reserved() (cpu roost.MilliCPU, memory roost.Bytes) {
	for _, part := range p.Parts {
		cpu, memory = cpu+part.CPU-part.LentCPU, memory+part.Memory-part.LentMemory
	}
	return cpu, memory
}

// cpu and memory are what of the i-th unit can be given to a request.
func (f *Free) cpu(i int, r Request) roost.MilliCPU {
	if f.reclaim && r.MayReclaim {
		return max(f.units[i].room.cpu[r.Class], 0)
	}
	return f.units[i].cpu[r.Class]
}

func (f *Free) memory(i int, r Request) roost.Bytes {
	if f.reclaim && r.MayReclaim {
		return max(f.units[i].room.memory, 0)
	}
	return f.units[i].memory
}

// settle says whether a placement that was found for a request has what it takes to itself.
func (f *Free) settle(r Request, p *Placement) {
	p.Reclaimed = false
	if f.reclaim && r.MayReclaim {
		p.Reclaimed = !f.owns(p)
	}
}

// owns reports whether all that a placement takes of units is free.
func (f *Free) owns(p *Placement) bool {
	for _, part := range p.Parts {
		if u := &f.units[part.Unit]; part.CPU > u.cpu[p.Class] || part.Memory > u.memory {
			return false
		}
	}
	return true
}

// Settle gives a Reclaimed placement that is taken what has fallen free, so that it has it to itself. It reports whether that was enough.
func (f *Free) Settle(p *Placement) bool {
	if !p.Reclaimed || !f.owns(p) {
		return false
	}
	f.Give(*p)
	p.Reclaimed = false
	f.Take(*p)
	return true
}

// describeRoom writes what may be lent of a unit into its ad.
func (f *Free) describeRoom(i int, a *classad.Ad) {
	if !f.reclaim {
		return
	}
	r := &f.units[i].room
	setCPU(a, roost.AttrRoomCpus, max(r.cpu[Batch], 0))
	setCPU(a, roost.AttrRoomStreamCpus, max(r.cpu[Stream], 0))
	setMiB(a, roost.AttrRoomMemory, max(r.memory, 0))
}

// describeReclaimed writes what work that bears being stopped may be given beyond what is free, for people and requirements.
func (f *Free) describeReclaimed(ad *classad.Ad) {
	if !f.reclaim {
		return
	}
	var sum Part
	for i := range f.units {
		u := &f.units[i]
		sum.CPU += max(u.room.cpu[Batch]-u.cpu[Batch], 0)
		sum.Memory += max(u.room.memory-u.memory, 0)
	}
	setCPU(ad, roost.AttrReclaimedCpus, sum.CPU)
	setMiB(ad, roost.AttrReclaimedMemory, sum.Memory)
}

// room reads what may be lent of a unit. One that says nothing of it gives what is free, and no more.
func (r *reader) room(u *unit, a *classad.Ad) error {
	u.room = room{u.cpu, u.memory}
	if _, ok := a.Lookup(roost.AttrRoomCpus); !ok {
		return nil
	}
	r.f.reclaim = true
	u.room = room{[2]roost.MilliCPU{cpu(a, roost.AttrRoomCpus), cpu(a, roost.AttrRoomStreamCpus)}, mib(a, roost.AttrRoomMemory)}
	if u.room.cpu[Batch] > u.CPU || u.room.cpu[Stream] > u.CPU || u.room.memory > u.Memory {
		return fmt.Errorf("%w: it has room for more than there is", roost.Invalid)
	}
	return nil
}

// describeLent writes into the ad of a claim what it lends, and whether it is lent all it has.
func (p *Placement) describeLent(ad *classad.Ad) {
	if p.Reclaimed {
		ad.SetBool(roost.AttrReclaimed, true)
	}
	lends := slices.ContainsFunc(p.Parts, func(part Part) bool { return part.LentCPU > 0 || part.LentMemory > 0 })
	if lends {
		cpu, memory := p.Reserved()
		setCPU(ad, roost.AttrReservedCpus, cpu)
		ad.SetInt(roost.AttrReservedMemory, int64((memory+roost.MiB-1)/roost.MiB))
	}
}

func (p *Placement) readLent(ad *classad.Ad) {
	p.Reclaimed, _ = ad.Bool(roost.AttrReclaimed)
	if _, ok := ad.Lookup(roost.AttrReservedMemory); ok {
		p.reserve(cpu(ad, roost.AttrReservedCpus), mib(ad, roost.AttrReservedMemory))
	}
}
