package gpu

import (
	"cmp"
	"slices"

	"github.com/roost-batch/roost"
)

// An idle GPU is unusable for a request if the cores beside it are allocated, if too
// little of the card is free, or if the machine has too few such cards. The fragmentation
// of a machine is the mean unusable amount over the typical requests of a pool (Weng et
// al., Beware of Fragmentation, USENIX ATC 2023, §4). Placing each task where
// fragmentation grows least leaves the most usable GPUs for later requests; best fit
// looks only at sums, and leaves cards that no request can use.

// The units of sums of fragments. They are integers, so that sums do not depend on the
// order of addition.
const (
	SharesPerGPU = 1024 // of a card; a share of its memory is rounded down to such parts
	MixWeight    = 1024 // approximate sum of the weights of a mix
	MaxNeeds     = 64   // the most kinds of requests in a mix
)

// MixRequest is one kind of request in a mix, with its weight out of MixWeight.
type MixRequest struct {
	DeviceRequest
	Weight int
}

// RequestMix is the mix of typical requests of a pool. It is immutable.
type RequestMix struct{ groups []deviceNeeds }

// deviceNeeds groups the requests that need the same of each device.
type deviceNeeds struct {
	gpus        int
	memoryShare roost.Bytes     // of each device; 0 for whole ones
	needs       []deviceSetNeed // by CPU, rising
}

type deviceSetNeed struct {
	MixRequest
	needBit uint64 // bit of the request in a set
}

// AllNeeds is the set of all requests of a mix; the i-th alone is 1<<i.
const AllNeeds = ^uint64(0)

// NewMix makes a mix of at most MaxNeeds requests. Requests without GPUs are left out: no
// idle GPU is usable for them anywhere.
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

// FragmentationMeter measures fragmentation. It reuses its memory, and must be used by
// one goroutine.
type FragmentationMeter struct {
	deviceCount []idleDevice
	idleDevices int64
	sameBeside  bool // all cards have the same cores and memory beside them
}

// idleDevice is a card that is at least partly idle.
type idleDevice struct {
	freeParts int64
	free      roost.Bytes
	whole     bool
	cpuBeside
}

// cpuBeside is the CPU and memory available to a task on a card. Reclaimed resources do
// not count, because they may be taken back.
type cpuBeside struct {
	cpu    [2]roost.MilliCPU // by class
	memory roost.Bytes
}

func (r *cpuBeside) fitsNeed(n *deviceSetNeed, of int) bool {
	return n.CPU/roost.MilliCPU(of) <= r.cpu[n.Class] && n.Memory/roost.Bytes(of) <= r.memory
}

// MeasureUnits measures how much of a machine's idle GPUs is unusable for the requests of
// a mix. lost is in SharesPerGPU times MixWeight, idle in SharesPerGPU. taken is a
// placement that is assumed to be made; nil for the present state. set has the requests
// that may use the machine at all. Unhealthy devices count for none.
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

// MeasureSums is MeasureUnits for a machine whose ad has only sums.
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

// cpuUnitsLeft returns what the CPU units can give to cards without cores of their own.
// Of several units it is the one with the most free CPU.
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

// leftOfUnit returns the free CPU and memory of the i-th unit.
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

// unusable returns the sum over the requests of all idle GPUs minus what each request can
// use of them.
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

// usableWithSharedCPU returns what the requests of a group can use of cards that share
// their cores. All cards are usable, or none.
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

// usableWithOwnCPU is usableWithSharedCPU for cards with cores of their own. A request
// for several cards takes an even part from the cores of each.
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

// fitsDevice reports whether a card has what each request of a group needs of it.
func (of *deviceNeeds) fitsDevice(c *idleDevice) bool {
	if of.memoryShare == 0 {
		return c.whole
	}
	return c.free >= of.memoryShare
}
