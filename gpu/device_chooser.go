package gpu

import "github.com/roost-batch/roost"

// maxDeviceSets bounds the number of sets of devices examined for one request: all
// choices of 8 from 16. Beyond it a set is grown greedily from each device, which may
// miss the best set.
const maxDeviceSets = 13000

// deviceSetCost is the cost of a set of devices for a request. Costs are compared like
// tuples: the first number that differs decides.
type deviceSetCost [4]int

func (a deviceSetCost) less(b deviceSetCost) bool {
	for i := range a {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

// deviceChooser searches the best set of devices for a request.
type deviceChooser struct {
	free       *FreeResources
	request    DeviceRequest
	onlyUnit   int
	candidates []int // devices that fit the request on their own
	set        []int
	best       []int
	bestCost   deviceSetCost // cost of best
	found      bool
}

// findDevices places a request for GPUs.
func (f *FreeResources) findDevices(r DeviceRequest, only int, p *Placement) bool {
	n := 0
	for i := range f.devices {
		if f.deviceFits(i, r, only) {
			n++
		}
	}
	if n < r.GPUs {
		return false
	}
	list := make([]int, 0, n+2*r.GPUs) // memory for all three lists
	c := deviceChooser{free: f, request: r, onlyUnit: only, candidates: list[:0:n], set: list[n : n : n+r.GPUs],
		best: list[n+r.GPUs : n+r.GPUs]}
	for i := range f.devices {
		if f.deviceFits(i, r, only) {
			c.candidates = append(c.candidates, i)
		}
	}
	if fewCombinations(n, r.GPUs, maxDeviceSets) {
		c.tryAllSets(0)
	} else {
		c.growGreedy()
	}
	if !c.found {
		return false
	}
	for _, d := range c.best {
		s := DeviceShare{Device: d, Memory: r.GPUMemory}
		if r.GPUMemory == 0 {
			s = DeviceShare{d, f.devices[d].Memory, true}
		}
		p.Shares = append(p.Shares, s)
	}
	c.divideOverUnits(p)
	f.markReclaimed(r, p)
	return true
}

// deviceFits reports whether a device alone fits the request.
func (f *FreeResources) deviceFits(i int, r DeviceRequest, only int) bool {
	d := &f.devices[i]
	switch {
	case !d.Health.OK || r.GPUMemory == 0 && d.Tasks > 0 || r.GPUMemory > d.Free:
		return false
	case f.units[d.Unit].usesCPUOfOthers():
		return true // CPU comes from a unit that is chosen together with the set
	default:
		return (only == AnyUnit || only == d.Unit) && f.queueAdmits(d.Unit, r.Class)
	}
}

// fewCombinations reports whether there are at most bound ways to choose k of n.
func fewCombinations(n, k, bound int) bool {
	ways := 1
	for i := 1; i <= min(k, n-k); i++ {
		if ways = ways * (n - i + 1) / i; ways > bound {
			return false
		}
	}
	return true
}

// tryAllSets examines all extensions of the present set with devices of from[at:].
func (c *deviceChooser) tryAllSets(at int) {
	if len(c.set) == c.request.GPUs {
		c.evaluateSet()
		return
	}
	for i := at; i <= len(c.candidates)-(c.request.GPUs-len(c.set)); i++ {
		c.set = append(c.set, c.candidates[i])
		c.tryAllSets(i + 1)
		c.set = c.set[:len(c.set)-1]
	}
}

// evaluateSet stores the present set if it is available and the best so far.
func (c *deviceChooser) evaluateSet() {
	cpuUnit, ok := c.findCPUUnit(c.set)
	if !ok {
		return
	}
	if price := c.costOfSet(c.set, cpuUnit); !c.found || price.less(c.bestCost) {
		c.best, c.bestCost, c.found = append(c.best[:0], c.set...), price, true
	}
}

// growGreedy grows a set from each device.
func (c *deviceChooser) growGreedy() {
	for _, seed := range c.candidates {
		c.set = append(c.set[:0], seed)
		for len(c.set) < c.request.GPUs {
			next, least := -1, deviceSetCost{}
			for _, d := range c.candidates {
				if containsDevice(c.set, d) {
					continue
				}
				if price := c.costOfSet(append(c.set, d), -1); next < 0 || price.less(least) {
					next, least = d, price
				}
			}
			c.set = append(c.set, next)
		}
		c.evaluateSet()
	}
}

func containsDevice(set []int, d int) bool {
	for _, e := range set {
		if e == d {
			return true
		}
	}
	return false
}

// findCPUUnit reports whether CPU and memory for a set are available. If the devices have
// none of their own, unit is the unit that provides both: one of the NUMA node of most of
// the devices, then the fullest. Otherwise unit is -1.
func (c *deviceChooser) findCPUUnit(set []int) (unit int, ok bool) {
	f := c.free
	if !f.units[f.devices[set[0]].Unit].usesCPUOfOthers() {
		var cpu roost.MilliCPU
		var memory roost.Bytes
		for i, d := range set {
			if u := f.devices[d].Unit; !c.hasDeviceOfUnit(set[:i], u) {
				cpu += f.availableCPU(u, c.request)
				memory += f.availableMemory(u, c.request)
			}
		}
		return -1, c.request.CPU <= cpu && c.request.Memory <= memory
	}
	best, far := -1, 0
	for i := range f.units {
		if !f.usable(i, c.request, c.onlyUnit) || !f.fitsUnit(i, c.request) {
			continue
		}
		if n := c.devicesOnOtherNodes(set, i); best < 0 || n < far || n == far && f.isFuller(i, best, c.request) {
			best, far = i, n
		}
	}
	return best, best >= 0
}

// hasDeviceOfUnit reports whether a device of the set belongs to unit u.
func (c *deviceChooser) hasDeviceOfUnit(set []int, u int) bool {
	for _, d := range set {
		if c.free.devices[d].Unit == u {
			return true
		}
	}
	return false
}

// devicesOnOtherNodes counts the devices on another NUMA node than unit u.
func (c *deviceChooser) devicesOnOtherNodes(set []int, u int) int {
	n := 0
	for _, d := range set {
		if a, b := c.free.devices[d].NUMANode, c.free.units[u].NUMA; a >= 0 && b >= 0 && a != b {
			n++
		}
	}
	return n
}

// costOfSet computes the cost of a set. For whole cards the numbers are: closeness of the
// cards (negated), cards and cores on other NUMA nodes, closeness to the other
// candidates, which others might want together, and free CPU around the cards. For shares
// the free memory of the cards comes first.
func (c *deviceChooser) costOfSet(set []int, cpuUnit int) deviceSetCost {
	f, n := c.free, len(c.free.devices)
	close, far, behind, room, free := 0, 0, 0, 0, 0
	for i, d := range set {
		if f.linkRows != nil {
			for _, e := range set[:i] {
				close += f.linkRows[d*n+e]
			}
			for _, e := range c.candidates {
				if !containsDevice(set, e) {
					behind += f.linkRows[d*n+e]
				}
			}
		}
		if !f.sameNode(set[:i], d) {
			far++
		}
		free += int(f.devices[d].Free / roost.MiB)
		if u := f.devices[d].Unit; cpuUnit < 0 && !c.hasDeviceOfUnit(set[:i], u) {
			room += int(f.availableCPU(u, c.request))
		}
	}
	if cpuUnit >= 0 {
		far += c.devicesOnOtherNodes(set, cpuUnit)
	}
	if c.request.GPUMemory > 0 {
		return deviceSetCost{free, -close, far, room}
	}
	return deviceSetCost{-close, far, behind, room}
}

// sameNode reports whether a device of the set is on the NUMA node of d.
func (f *FreeResources) sameNode(set []int, d int) bool {
	for _, e := range set {
		if f.devices[e].NUMANode == f.devices[d].NUMANode {
			return true
		}
	}
	return false
}

// divideOverUnits takes CPU and memory for the best set from the CPU unit or from the
// devices' own units. Each unit gives in proportion to its devices, as far as it can; the
// first units with more give the rest.
func (c *deviceChooser) divideOverUnits(p *Placement) {
	cpuUnit, _ := c.findCPUUnit(c.best)
	if cpuUnit >= 0 {
		p.Parts = append(p.Parts, UnitPart{Unit: cpuUnit, CPU: c.request.CPU, Memory: c.request.Memory})
		return
	}
	f, cpu, memory := c.free, c.request.CPU, c.request.Memory
	for i, d := range c.best {
		u := f.devices[d].Unit
		if c.hasDeviceOfUnit(c.best[:i], u) {
			continue
		}
		n := 0
		for _, e := range c.best[i:] {
			if f.devices[e].Unit == u {
				n++
			}
		}
		all := len(c.best)
		part := UnitPart{Unit: u, CPU: c.request.CPU * roost.MilliCPU(n) / roost.MilliCPU(all),
			Memory: c.request.Memory / roost.Bytes(all) * roost.Bytes(n)}
		part.CPU, part.Memory = min(part.CPU, f.availableCPU(u, c.request)),
			min(part.Memory, f.availableMemory(u, c.request))
		p.Parts = append(p.Parts, part)
		cpu, memory = cpu-part.CPU, memory-part.Memory
	}
	for i := range p.Parts {
		part := &p.Parts[i]
		more := min(cpu, f.availableCPU(part.Unit, c.request)-part.CPU)
		most := min(memory, f.availableMemory(part.Unit, c.request)-part.Memory)
		part.CPU, part.Memory = part.CPU+more, part.Memory+most
		cpu, memory = cpu-more, memory-most
	}
}
