package gpu

import (
	"fmt"

	"github.com/roost-batch/roost"
)

// DeviceRequest is what a task asks for.
type DeviceRequest struct {
	roost.Resources // GPUMemory is taken of each of GPUs; 0 for whole ones
	Class           AppClass
	MayReclaim      bool // it bears being stopped, and may be given what others were given and leave
}

// Placement is what a request is given. It is made by PlaceOrExplain and means something
// only to the Free that made it, or to one of the same units.
type Placement struct {
	Class  AppClass
	Disk   roost.Bytes
	Parts  []UnitPart    // by unit
	Shares []DeviceShare // by device

	Reclaimed bool // of processor time and memory nothing is its own: it has what others leave
}

// UnitPart is what a placement takes of one unit.
type UnitPart struct {
	Unit   int // index
	CPU    roost.MilliCPU
	Memory roost.Bytes

	ReclaimableCPU    roost.MilliCPU // of CPU, what is not expected to be used
	ReclaimableMemory roost.Bytes    // likewise
}

// DeviceShare is what a placement takes of one device.
type DeviceShare struct {
	Device int         // index among Free.Devices
	Memory roost.Bytes // of a whole one, all
	Whole  bool
}

// Zero reports whether nothing is placed.
func (p *Placement) Zero() bool { return len(p.Parts) == 0 && len(p.Shares) == 0 && p.Disk == 0 }

// AnyUnit lets FindPlacement look at all units.
const AnyUnit = -1

// PlaceOrExplain says where a request goes, and takes nothing. Without GPUs it goes to
// the fullest unit that has room, so that the others keep theirs for what is bigger;
// units with devices are for those who want devices, unless there are no others. With
// GPUs, it gets the cards that are closest to each other, and of equally close ones those
// whose memory node its cores are of, then those that break up the least of what others
// might want together; shares go to the fullest cards that have room. The error is of
// kind roost.Exhausted and says what is missing, and the most there is of it.
func (f *FreeResources) PlaceOrExplain(r DeviceRequest) (Placement, error) {
	var p Placement
	if r.IsNegative() || r.GPUs == 0 && r.GPUMemory > 0 {
		return p, fmt.Errorf("%w: a request for %v", roost.Invalid, r.Resources)
	}
	if f.FindPlacement(r, AnyUnit, &p) {
		return p, nil
	}
	return Placement{}, f.WhyNotNow(r)
}

// FindPlacement is PlaceOrExplain without words: it reports whether the request fits, and
// writes the placement over p, whose memory it uses again. With a unit other than AnyUnit
// it looks only there, and at the devices that borrow from it.
func (f *FreeResources) FindPlacement(r DeviceRequest, unit int, p *Placement) bool {
	if r.Disk > f.disk {
		return false
	}
	p.Class, p.Disk, p.Parts, p.Shares = r.Class, r.Disk, p.Parts[:0], p.Shares[:0]
	if r.GPUs > 0 {
		return f.findDevices(r, unit, p)
	}
	best := -1
	for i := range f.units {
		if f.usable(i, r, unit) && f.fitsUnit(i, r) && (best < 0 || f.better(i, best, r)) {
			best = i
		}
	}
	if best >= 0 {
		p.Parts = append(p.Parts, UnitPart{Unit: best, CPU: r.CPU, Memory: r.Memory})
		f.markReclaimed(r, p)
	}
	return best >= 0
}

// usable reports whether processor time and memory for a request without GPUs, or for one
// whose GPUs borrow, come from the i-th unit.
func (f *FreeResources) usable(i int, r DeviceRequest, only int) bool {
	u := &f.units[i]
	return (only == AnyUnit || only == i) && !u.usesCPUOfOthers() && (len(u.Devices) == 0 || !f.cpuOnly) &&
		f.queueAdmits(i, r.Class)
}

// queueAdmits reports whether the queue of the i-th unit lets one of that class by.
func (f *FreeResources) queueAdmits(i int, c AppClass) bool {
	return c == StreamClass || !f.units[i].queue.IsClosed()
}

func (f *FreeResources) fitsUnit(i int, r DeviceRequest) bool {
	return r.CPU <= f.availableCPU(i, r) && r.Memory <= f.availableMemory(i, r)
}

// better reports whether unit i is the better place: one where nothing has to be lent,
// then the fuller one.
func (f *FreeResources) better(i, j int, r DeviceRequest) bool {
	if f.reclaims && r.MayReclaim {
		own := r
		own.MayReclaim = false
		if a, b := f.fitsUnit(i, own), f.fitsUnit(j, own); a != b {
			return a
		}
	}
	return f.isFuller(i, j, r)
}

// isFuller reports whether less is free of unit i than of unit j; the first of equals is
// not.
func (f *FreeResources) isFuller(i, j int, r DeviceRequest) bool {
	if a, b := f.availableCPU(i, r), f.availableCPU(j, r); a != b {
		return a < b
	}
	return f.availableMemory(i, r) < f.availableMemory(j, r)
}

// TakePlacement takes a placement. One that does not fit is a bug of the caller.
func (f *FreeResources) TakePlacement(p Placement) { f.movePlacement(p, 1) }

// ReturnPlacement gives a placement back that was taken.
func (f *FreeResources) ReturnPlacement(p Placement) { f.movePlacement(p, -1) }

func (f *FreeResources) movePlacement(p Placement, by int) {
	n := roost.Bytes(by)
	f.moveReclaimable(&p, by)
	f.disk -= n * p.Disk
	ok := f.disk >= 0 && f.disk <= f.diskSize
	for _, part := range p.Parts {
		u := &f.units[part.Unit]
		if p.Reclaimed {
			continue
		}
		u.cpu[p.Class] -= roost.MilliCPU(by) * part.CPU
		u.memory -= n * part.Memory
		ok = ok && u.cpu[p.Class] >= 0 && u.cpu[p.Class] <= u.CPU && u.memory >= 0 && u.memory <= u.Memory
	}
	for _, s := range p.Shares {
		d := &f.devices[s.Device]
		ok = ok && (by < 0 || !s.Whole || d.Tasks == 0)
		d.Free -= n * s.Memory
		d.Tasks += by
		ok = ok && d.Free >= 0 && d.Free <= d.Memory && d.Tasks >= 0
	}
	if !ok {
		panic(fmt.Sprintf("%+v, taken %d times, is more than there is", p, by))
	}
}

// CanTake reports whether a placement could be taken, whatever the queues and the health
// of the devices say.
func (f *FreeResources) CanTake(p Placement) bool {
	if p.Disk > f.disk {
		return false
	}
	if !p.Reclaimed && !f.fitsInFree(&p) {
		return false
	}
	for _, s := range p.Shares {
		d := &f.devices[s.Device]
		if s.Whole && d.Tasks > 0 || s.Memory > d.Free || !s.Whole && d.Tasks > 0 && d.Free == 0 {
			return false
		}
	}
	return true
}

// QueueableUnit says in which unit's queue a batch request that cannot be placed now may
// wait: of those that have room in their queue, and that it would fit into alone were
// they empty, the one with the shortest predicted wait.
func (f *FreeResources) QueueableUnit(r DeviceRequest) (unit int, ok bool) {
	best := -1
	for i := range f.units {
		q := &f.units[i].queue
		if r.Class == BatchClass && q.FreePlaces > 0 && f.fitsEmptyUnit(i, r) &&
			(best < 0 || q.WaitSeconds < f.units[best].queue.WaitSeconds) {
			best = i
		}
	}
	return best, best >= 0
}

// fitsEmptyUnit reports whether a request would fit into the i-th unit, with the devices
// that borrow from it, if nobody else were there.
func (f *FreeResources) fitsEmptyUnit(i int, r DeviceRequest) bool {
	u := &f.units[i]
	if u.usesCPUOfOthers() || r.CPU > u.CPU || r.Memory > u.Memory || r.Disk > f.diskSize ||
		r.GPUs == 0 && len(u.Devices) > 0 && f.cpuOnly {
		return false
	}
	n := 0
	for k := range f.devices {
		if d := &f.devices[k]; d.Health.OK && d.Memory >= r.GPUMemory &&
			(d.Unit == i || len(u.Devices) == 0 && f.units[d.Unit].usesCPUOfOthers()) {
			n++
		}
	}
	return n >= r.GPUs
}
