package gpu

import (
	"fmt"

	"github.com/roost-batch/roost"
)

// Request is what a task asks for.
type Request struct {
	roost.Resources // GPUMemory is taken of each of GPUs; 0 for whole ones
	Class           Class
	MayReclaim      bool // it bears being stopped, and may be given what others were given and leave
}

// Placement is what a request is given. It is made by Place and means something only to the Free that made it, or to one of the same units.
type Placement struct {
	Class  Class
	Disk   roost.Bytes
	Parts  []Part  // by unit
	Shares []Share // by device

	Reclaimed bool // of processor time and memory nothing is its own: it has what others leave
}

// Part is what a placement takes of one unit.
type Part struct {
	Unit   int // index
	CPU    roost.MilliCPU
	Memory roost.Bytes

	LentCPU    roost.MilliCPU // of CPU, what is not expected to be used
	LentMemory roost.Bytes    // likewise
}

// Share is what a placement takes of one device.
type Share struct {
	Device int         // index among Free.Devices
	Memory roost.Bytes // of a whole one, all
	Whole  bool
}

// Zero reports whether nothing is placed.
func (p *Placement) Zero() bool { return len(p.Parts) == 0 && len(p.Shares) == 0 && p.Disk == 0 }

// Anywhere lets Find look at all units.
const Anywhere = -1

// Place says where a request goes, and takes nothing. Without GPUs it goes to the fullest unit that has room, so that the others keep theirs
// for what is bigger; units with devices are for those who want devices, unless there are no others. With GPUs, it gets the cards that
// are closest to each other, and of equally close ones those whose memory node its cores are of, then those that break up the least of what
// others might want together; shares go to the fullest cards that have room. The error is of kind roost.Exhausted and says what is missing, and the
// most there is of it.
func (f *Free) Place(r Request) (Placement, error) {
	var p Placement
	if r.Negative() || r.GPUs == 0 && r.GPUMemory > 0 {
		return p, fmt.Errorf("%w: a request for %v", roost.Invalid, r.Resources)
	}
	if f.Find(r, Anywhere, &p) {
		return p, nil
	}
	return Placement{}, f.Why(r)
}

// Find is Place without words: it reports whether the request fits, and writes the placement over p, whose memory it uses again. With a unit
// other than Anywhere it looks only there, and at the devices that borrow from it.
func (f *Free) Find(r Request, unit int, p *Placement) bool {
	if r.Disk > f.disk {
		return false
	}
	p.Class, p.Disk, p.Parts, p.Shares = r.Class, r.Disk, p.Parts[:0], p.Shares[:0]
	if r.GPUs > 0 {
		return f.findDevices(r, unit, p)
	}
	best := -1
	for i := range f.units {
		if f.gives(i, r, unit) && f.fits(i, r) && (best < 0 || f.suits(i, best, r)) {
			best = i
		}
	}
	if best >= 0 {
		p.Parts = append(p.Parts, Part{Unit: best, CPU: r.CPU, Memory: r.Memory})
		f.settle(r, p)
	}
	return best >= 0
}

// gives reports whether processor time and memory for a request without GPUs, or for one whose GPUs borrow, come from the i-th unit.
func (f *Free) gives(i int, r Request, only int) bool {
	u := &f.units[i]
	return (only == Anywhere || only == i) && !u.borrows() && (len(u.Devices) == 0 || !f.cpuOnly) && f.open(i, r.Class)
}

// open reports whether the queue of the i-th unit lets one of that class by.
func (f *Free) open(i int, c Class) bool { return c == Stream || !f.units[i].queue.Shut() }

func (f *Free) fits(i int, r Request) bool {
	return r.CPU <= f.cpu(i, r) && r.Memory <= f.memory(i, r)
}

// suits reports whether unit i is the better place: one where nothing has to be lent, then the fuller one.
func (f *Free) suits(i, j int, r Request) bool {
	if f.reclaim && r.MayReclaim {
		own := r
		own.MayReclaim = false
		if a, b := f.fits(i, own), f.fits(j, own); a != b {
			return a
		}
	}
	return f.fuller(i, j, r)
}

// fuller reports whether less is free of unit i than of unit j; the first of equals is not.
func (f *Free) fuller(i, j int, r Request) bool {
	if a, b := f.cpu(i, r), f.cpu(j, r); a != b {
		return a < b
	}
	return f.memory(i, r) < f.memory(j, r)
}

// Take takes a placement. One that does not fit is a bug of the caller.
func (f *Free) Take(p Placement) { f.move(p, 1) }

// Give gives a placement back that was taken.
func (f *Free) Give(p Placement) { f.move(p, -1) }

func (f *Free) move(p Placement, by int) {
	n := roost.Bytes(by)
	f.roomFor(&p, by)
	f.disk -= n * p.Disk
	ok := f.disk >= 0 && f.disk <= f.size
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

// Fits reports whether a placement could be taken, whatever the queues and the health of the devices say.
func (f *Free) Fits(p Placement) bool {
	if p.Disk > f.disk {
		return false
	}
	if !p.Reclaimed && !f.owns(&p) {
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

// CanWait says in which unit's queue a batch request that cannot be placed now may wait: of those that have room in their queue, and that it
// would fit into alone were they empty, the one with the shortest predicted wait.
func (f *Free) CanWait(r Request) (unit int, ok bool) {
	best := -1
	for i := range f.units {
		q := &f.units[i].queue
		if r.Class == Batch && q.Room > 0 && f.holds(i, r) && (best < 0 || q.Wait < f.units[best].queue.Wait) {
			best = i
		}
	}
	return best, best >= 0
}

// holds reports whether a request would fit into the i-th unit, with the devices that borrow from it, if nobody else were there.
func (f *Free) holds(i int, r Request) bool {
	u := &f.units[i]
	if u.borrows() || r.CPU > u.CPU || r.Memory > u.Memory || r.Disk > f.size || r.GPUs == 0 && len(u.Devices) > 0 && f.cpuOnly {
		return false
	}
	n := 0
	for k := range f.devices {
		if d := &f.devices[k]; d.Health.OK && d.Memory >= r.GPUMemory && (d.Unit == i || len(u.Devices) == 0 && f.units[d.Unit].borrows()) {
			n++
		}
	}
	return n >= r.GPUs
}
