package gpu

import (
	"fmt"

	"github.com/roost-batch/roost"
)

// DeviceRequest is what a task requests of a machine.
type DeviceRequest struct {
	roost.Resources // GPUMemory is taken of each of the GPUs; 0 for whole ones
	Class           AppClass
	MayReclaim      bool // the task may be stopped at any time, and may use reclaimed resources
}

// Placement is what a request gets of a machine. PlaceOrExplain makes it. It is valid
// only for the FreeResources that made it, or for one of the same units.
type Placement struct {
	Class  AppClass
	Disk   roost.Bytes
	IO     roost.IORates // of the whole machine, like Disk
	Parts  []UnitPart    // by unit
	Shares []DeviceShare // by device

	Reclaimed bool // its CPU and memory are entirely reclaimed resources
}

// UnitPart is what a placement takes of one unit.
type UnitPart struct {
	Unit   int // index of the unit
	CPU    roost.MilliCPU
	Memory roost.Bytes

	ReclaimableCPU    roost.MilliCPU // part of CPU that the task is not expected to use
	ReclaimableMemory roost.Bytes    // part of Memory that the task is not expected to use
}

// DeviceShare is what a placement takes of one device.
type DeviceShare struct {
	Device int         // index among FreeResources.Devices
	Memory roost.Bytes // of a whole device, all its memory
	Whole  bool
}

// Zero reports whether nothing is placed.
func (p *Placement) Zero() bool { return len(p.Parts) == 0 && len(p.Shares) == 0 && p.Disk == 0 }

// AnyUnit lets FindPlacement examine all units.
const AnyUnit = -1

// PlaceOrExplain chooses a placement for a request, and takes nothing. A request without
// GPUs goes to the fullest unit with room, so that others have room for larger requests;
// it gets a unit with devices only if there are no other units. A request with GPUs gets
// the cards closest to each other. Among equally close cards, those on the NUMA node of
// the cores come first, then those that break up least of what others might want
// together. Shares go to the fullest cards with room. The error is of kind
// roost.Exhausted and names what is missing, and the most there is of it.
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

// FindPlacement is PlaceOrExplain without an explanation. It reports whether the request
// fits, and overwrites p, whose memory it reuses. With a unit other than AnyUnit it
// examines only that unit, and the devices that take their CPU from it.
func (f *FreeResources) FindPlacement(r DeviceRequest, unit int, p *Placement) bool {
	if r.Disk > f.disk || !r.IO.FitsIn(f.io) {
		return false
	}
	p.Class, p.Disk, p.IO, p.Parts, p.Shares = r.Class, r.Disk, r.IO, p.Parts[:0], p.Shares[:0]
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

// usable reports whether the i-th unit may give CPU and memory to a request. The request
// has no GPUs, or GPUs without cores of their own.
func (f *FreeResources) usable(i int, r DeviceRequest, only int) bool {
	u := &f.units[i]
	return (only == AnyUnit || only == i) && !u.usesCPUOfOthers() && (len(u.Devices) == 0 || !f.cpuOnly) &&
		f.queueAdmits(i, r.Class)
}

// queueAdmits reports whether the node queue of the i-th unit admits a task of a class.
func (f *FreeResources) queueAdmits(i int, c AppClass) bool {
	return c == StreamClass || !f.units[i].queue.IsClosed()
}

func (f *FreeResources) fitsUnit(i int, r DeviceRequest) bool {
	return r.CPU <= f.availableCPU(i, r) && r.Memory <= f.availableMemory(i, r)
}

// better reports whether unit i is the better place: one without use of reclaimed
// resources, then the fuller one.
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

// isFuller reports whether less is free in unit i than in unit j.
func (f *FreeResources) isFuller(i, j int, r DeviceRequest) bool {
	if a, b := f.availableCPU(i, r), f.availableCPU(j, r); a != b {
		return a < b
	}
	return f.availableMemory(i, r) < f.availableMemory(j, r)
}

// TakePlacement allocates a placement. It panics if the placement does not fit, which is
// a bug of the caller.
func (f *FreeResources) TakePlacement(p Placement) { f.movePlacement(p, 1) }

// ReturnPlacement frees an allocated placement.
func (f *FreeResources) ReturnPlacement(p Placement) { f.movePlacement(p, -1) }

func (f *FreeResources) movePlacement(p Placement, by int) {
	n := roost.Bytes(by)
	f.moveReclaimable(&p, by)
	f.disk -= n * p.Disk
	f.io = f.io.Sub(p.IO.Times(by))
	ok := f.disk >= 0 && f.disk <= f.diskSize && f.io.FitsIn(f.ioTotal) && !f.io.IsNegative()
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

// CanTake reports whether a placement could be allocated, apart from node queues and the
// health of devices.
func (f *FreeResources) CanTake(p Placement) bool {
	if p.Disk > f.disk || !p.IO.FitsIn(f.io) {
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

// QueueableUnit returns the unit in whose node queue a batch request may wait that cannot
// be placed now. It is the one with the shortest predicted wait, among units with room in
// their queue that would hold the request if they were empty.
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

// fitsEmptyUnit reports whether a request would fit into the i-th unit if it were empty.
// The devices that take their CPU from the unit count, too.
func (f *FreeResources) fitsEmptyUnit(i int, r DeviceRequest) bool {
	u := &f.units[i]
	if u.usesCPUOfOthers() || r.CPU > u.CPU || r.Memory > u.Memory || r.Disk > f.diskSize ||
		!r.IO.FitsIn(f.ioTotal) || r.GPUs == 0 && len(u.Devices) > 0 && f.cpuOnly {
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
