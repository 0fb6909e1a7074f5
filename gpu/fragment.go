package gpu

import (
	"cmp"
	"slices"

	"github.com/roost-batch/roost"
)

// An idle GPU is lost to a request that cannot have it: because the cores beside it are
// taken, because too little of the card is left, or because the machine has too few such
// cards. How much is lost on the average over the requests that a pool is typically asked
// for is how fragmented a machine is (Weng et al., Beware of Fragmentation, USENIX ATC
// 2023, §4). Who places each task where this grows least keeps the most usable for those
// who come later; best fit looks at sums only, and leaves cards behind that nobody can
// use.

// What sums of fragments are counted in: whole numbers, so that they are the same in
// whatever order they are added.
const (
	SharesPerGPU = 1024 // of a card; a share of its memory is rounded down to so many parts
	MixWeight    = 1024 // about what the weights of a mix add up to
	MaxNeeds     = 64   // how many kinds of requests a mix has at most
)

// MixRequest is one kind of request in a mix, and how much of MixWeight it makes up.
type MixRequest struct {
	DeviceRequest
	Weight int
}

// RequestMix is what a pool is typically asked for. It does not change.
type RequestMix struct{ groups []deviceNeeds }

// deviceNeeds is the needs that want the same of cards.
type deviceNeeds struct {
	gpus        int
	memoryShare roost.Bytes     // of each; 0 for whole ones
	needs       []deviceSetNeed // by CPU, rising
}

type deviceSetNeed struct {
	MixRequest
	needBit uint64 // in a set of needs
}

// AllNeeds is the set of all needs of a mix; the i-th alone is 1<<i.
const AllNeeds = ^uint64(0)

// NewMix makes a mix of at most MaxNeeds needs. Those without GPUs are left out: all idle
// GPUs are lost to them, wherever they are.
func NewMix(needs []MixRequest) *RequestMix {
	m := &RequestMix{}
	for i, n := range needs {
		if n.GPUs == 0 {
			continue
		}
		at := slices.IndexFunc(m.groups, func(g deviceNeeds) bool {
			return g.gpus == n.GPUs && g.memoryShare == n.GPUMemory
		})
		if at < 0 {
			at = len(m.groups)
			m.groups = append(m.groups, deviceNeeds{gpus: n.GPUs, memoryShare: n.GPUMemory})
		}
		m.groups[at].needs = append(m.groups[at].needs, deviceSetNeed{n, 1 << i})
	}
	for _, g := range m.groups {
		slices.SortStableFunc(g.needs, func(a, b deviceSetNeed) int { return cmp.Compare(a.CPU, b.CPU) })
	}
	return m
}

// FragmentationMeter measures fragments. It keeps memory from one measurement to the
// next, and is for one goroutine.
type FragmentationMeter struct {
	deviceCount []idleDevice
	idleDevices int64
	sameBeside  bool // all cards have the same cores and memory beside them
}

// idleDevice is a card of which something is idle.
type idleDevice struct {
	freeParts int64
	free      roost.Bytes
	whole     bool
	cpuBeside
}

// cpuBeside is the processor time and the memory that a task on a card could be given.
// What is lent by others does not count: they may want it back.
type cpuBeside struct {
	cpu    [2]roost.MilliCPU // by class
	memory roost.Bytes
}

func (r *cpuBeside) fitsNeed(n *deviceSetNeed, of int) bool {
	return n.CPU/roost.MilliCPU(of) <= r.cpu[n.Class] && n.Memory/roost.Bytes(of) <= r.memory
}

// MeasureUnits measures what of a machine's idle GPUs is lost to the needs of a mix, in
// SharesPerGPU times MixWeight, and what is idle, in SharesPerGPU, once taken has been
// taken; nil for as things stand. Of the needs, only those in the set may have the
// machine at all. Devices that are not well are nobody's.
func (g *FragmentationMeter) MeasureUnits(f *FreeResources, m *RequestMix, set uint64,
	taken *Placement) (lost, idle int64) {
	g.deviceCount, g.idleDevices, g.sameBeside = g.deviceCount[:0], 0, true
	reclaimable := f.cpuUnitsLeft(taken)
	for i := range f.devices {
		d := &f.devices[i]
		if !d.Health.OK {
			continue
		}
		c := idleDevice{free: d.Free, whole: d.Tasks == 0, cpuBeside: reclaimable}
		if !f.units[d.Unit].usesCPUOfOthers() {
			g.sameBeside = false
			c.cpuBeside = f.leftOfUnit(d.Unit, taken)
		}
		if taken != nil {
			for _, s := range taken.Shares {
				if s.Device == i {
					c.free, c.whole = c.free-s.Memory, false
				}
			}
		}
		if d.Memory > 0 {
			c.freeParts = int64(float64(c.free) / float64(d.Memory) * SharesPerGPU)
		} else if c.whole {
			c.freeParts = SharesPerGPU
		}
		g.addDevice(c)
	}
	return g.unusable(m, set), g.idleDevices
}

// MeasureSums is Units for a machine that tells only sums, of what is free.
func (g *FragmentationMeter) MeasureSums(free roost.Resources, m *RequestMix, set uint64) (lost, idle int64) {
	g.deviceCount, g.idleDevices, g.sameBeside = g.deviceCount[:0], 0, true
	for range free.GPUs {
		g.addDevice(idleDevice{freeParts: SharesPerGPU, whole: true,
			cpuBeside: cpuBeside{[2]roost.MilliCPU{free.CPU, free.CPU}, free.Memory}})
	}
	return g.unusable(m, set), g.idleDevices
}

func (g *FragmentationMeter) addDevice(c idleDevice) {
	if c.freeParts > 0 {
		g.deviceCount, g.idleDevices = append(g.deviceCount, c), g.idleDevices+c.freeParts
	}
}

// cpuUnitsLeft is what cards without cores of their own can have: of the unit that lends,
// of several the one with the most processor time.
func (f *FreeResources) cpuUnitsLeft(taken *Placement) (most cpuBeside) {
	for i := range f.units {
		if u := &f.units[i]; u.usesCPUOfOthers() || f.cpuOnly && len(u.Devices) > 0 {
			continue
		}
		if r := f.leftOfUnit(i, taken); r.cpu[BatchClass] >= most.cpu[BatchClass] {
			most = r
		}
	}
	return most
}

// leftOfUnit is what is free of the i-th unit.
func (f *FreeResources) leftOfUnit(i int, taken *Placement) cpuBeside {
	r := cpuBeside{f.units[i].cpu, f.units[i].memory}
	if taken != nil && !taken.Reclaimed {
		for _, p := range taken.Parts {
			if p.Unit == i {
				r.cpu[taken.Class] -= p.CPU
				r.memory -= p.Memory
			}
		}
	}
	return r
}

// unusable is all that is idle, as often as there are needs, less what each can have of
// it.
func (g *FragmentationMeter) unusable(m *RequestMix, set uint64) int64 {
	if len(g.deviceCount) == 0 {
		return 0
	}
	lost := g.idleDevices * MixWeight
	for i := range m.groups {
		if g.sameBeside {
			lost -= g.usableWithSharedCPU(&m.groups[i], set)
		} else {
			lost -= g.usableWithOwnCPU(&m.groups[i], set)
		}
	}
	return lost
}

// usableWithSharedCPU is what the needs of a group can have of cards whose cores are the
// same: all the same, if it is anything.
func (g *FragmentationMeter) usableWithSharedCPU(of *deviceNeeds, set uint64) int64 {
	weight := 0
	for j := range of.needs {
		n := &of.needs[j]
		if n.CPU > g.deviceCount[0].cpu[BatchClass] && n.CPU > g.deviceCount[0].cpu[StreamClass] {
			break
		}
		if n.needBit&set != 0 && g.deviceCount[0].fitsNeed(n, 1) {
			weight += n.Weight
		}
	}
	if weight == 0 {
		return 0
	}
	usable, count := int64(0), 0
	for k := range g.deviceCount {
		if c := &g.deviceCount[k]; of.fitsDevice(c) {
			usable, count = usable+c.freeParts, count+1
		}
	}
	if count < of.gpus {
		return 0
	}
	return usable * int64(weight)
}

// usableWithOwnCPU is had for cards that have cores of their own: a need that wants
// several takes an even part of each's.
func (g *FragmentationMeter) usableWithOwnCPU(of *deviceNeeds, set uint64) (sum int64) {
	for j := range of.needs {
		n := &of.needs[j]
		if n.needBit&set == 0 {
			continue
		}
		usable, count := int64(0), 0
		for k := range g.deviceCount {
			if c := &g.deviceCount[k]; of.fitsDevice(c) && c.fitsNeed(n, of.gpus) {
				usable, count = usable+c.freeParts, count+1
			}
		}
		if count >= of.gpus {
			sum += usable * int64(n.Weight)
		}
	}
	return sum
}

// fitsDevice reports whether a card has what a group wants of it.
func (of *deviceNeeds) fitsDevice(c *idleDevice) bool {
	if of.memoryShare == 0 {
		return c.whole
	}
	return c.free >= of.memoryShare
}
