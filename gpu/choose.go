package gpu

import "github.com/roost-batch/roost"

// maxSets bounds how many sets of devices are looked at for one request: all choices of 8 from 16. Beyond it the set is grown from each device
// in turn by the one that suits it best, which may miss the best set.
const maxSets = 13000

// cost says how bad a set of devices is for a request; the first number that differs decides.
type cost [4]int

func (a cost) less(b cost) bool {
	for i := range a {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

// chooser looks for the best set of devices.
type chooser struct {
	f     *Free
	r     Request
	only  int
	from  []int // devices that would do, each for itself
	set   []int
	best  []int
	price cost // of best
	found bool
}

// findDevices places a request for GPUs.
func (f *Free) findDevices(r Request, only int, p *Placement) bool {
	n := 0
	for i := range f.devices {
		if f.does(i, r, only) {
			n++
		}
	}
	if n < r.GPUs {
		return false
	}
	list := make([]int, 0, n+2*r.GPUs) // all three in one
	c := chooser{f: f, r: r, only: only, from: list[:0:n], set: list[n : n : n+r.GPUs], best: list[n+r.GPUs : n+r.GPUs]}
	for i := range f.devices {
		if f.does(i, r, only) {
			c.from = append(c.from, i)
		}
	}
	if atMost(n, r.GPUs, maxSets) {
		c.all(0)
	} else {
		c.grow()
	}
	if !c.found {
		return false
	}
	for _, d := range c.best {
		s := Share{Device: d, Memory: r.GPUMemory}
		if r.GPUMemory == 0 {
			s = Share{d, f.devices[d].Memory, true}
		}
		p.Shares = append(p.Shares, s)
	}
	c.divide(p)
	f.settle(r, p)
	return true
}

// does reports whether a device would do by itself.
func (f *Free) does(i int, r Request, only int) bool {
	d := &f.devices[i]
	switch {
	case !d.Health.OK || r.GPUMemory == 0 && d.Tasks > 0 || r.GPUMemory > d.Free:
		return false
	case f.units[d.Unit].borrows():
		return true // from a unit that is chosen with the set
	default:
		return (only == Anywhere || only == d.Unit) && f.open(d.Unit, r.Class)
	}
}

// atMost reports whether there are at most bound ways to choose k of n.
func atMost(n, k, bound int) bool {
	ways := 1
	for i := 1; i <= min(k, n-k); i++ {
		if ways = ways * (n - i + 1) / i; ways > bound {
			return false
		}
	}
	return true
}

// all looks at all sets that go on from the one begun with the devices of from[at:].
func (c *chooser) all(at int) {
	if len(c.set) == c.r.GPUs {
		c.weigh()
		return
	}
	for i := at; i <= len(c.from)-(c.r.GPUs-len(c.set)); i++ {
		c.set = append(c.set, c.from[i])
		c.all(i + 1)
		c.set = c.set[:len(c.set)-1]
	}
}

// weigh remembers the set if it can be had and is the best so far.
func (c *chooser) weigh() {
	lender, ok := c.lender(c.set)
	if !ok {
		return
	}
	if price := c.weight(c.set, lender); !c.found || price.less(c.price) {
		c.best, c.price, c.found = append(c.best[:0], c.set...), price, true
	}
}

// grow makes a set of each device.
func (c *chooser) grow() {
	for _, seed := range c.from {
		c.set = append(c.set[:0], seed)
		for len(c.set) < c.r.GPUs {
			next, least := -1, cost{}
			for _, d := range c.from {
				if has(c.set, d) {
					continue
				}
				if price := c.weight(append(c.set, d), -1); next < 0 || price.less(least) {
					next, least = d, price
				}
			}
			c.set = append(c.set, next)
		}
		c.weigh()
	}
}

func has(set []int, d int) bool {
	for _, e := range set {
		if e == d {
			return true
		}
	}
	return false
}

// lender says whether processor time and memory for a set can be had. If the devices have none of their own, it is the unit that gives it:
// one of the memory node of most of the devices, then the fullest; otherwise -1.
func (c *chooser) lender(set []int) (unit int, ok bool) {
	f := c.f
	if !f.units[f.devices[set[0]].Unit].borrows() {
		var cpu roost.MilliCPU
		var memory roost.Bytes
		for i, d := range set {
			if u := f.devices[d].Unit; !c.seen(set[:i], u) {
				cpu += f.cpu(u, c.r)
				memory += f.memory(u, c.r)
			}
		}
		return -1, c.r.CPU <= cpu && c.r.Memory <= memory
	}
	best, far := -1, 0
	for i := range f.units {
		if !f.gives(i, c.r, c.only) || !f.fits(i, c.r) {
			continue
		}
		if n := c.strangers(set, i); best < 0 || n < far || n == far && f.fuller(i, best, c.r) {
			best, far = i, n
		}
	}
	return best, best >= 0
}

// seen reports whether a device of the set is of unit u.
func (c *chooser) seen(set []int, u int) bool {
	for _, d := range set {
		if c.f.devices[d].Unit == u {
			return true
		}
	}
	return false
}

// strangers counts the devices of another memory node than unit u.
func (c *chooser) strangers(set []int, u int) int {
	n := 0
	for _, d := range set {
		if a, b := c.f.devices[d].NUMA, c.f.units[u].NUMA; a >= 0 && b >= 0 && a != b {
			n++
		}
	}
	return n
}

// weight weighs a set. Whole cards: how close they are, how far from the cores, how much they leave behind that others might want together, how
// much is free around them. Shares: how much is free of the cards, then the same.
func (c *chooser) weight(set []int, lender int) cost {
	f, n := c.f, len(c.f.devices)
	close, far, behind, room, free := 0, 0, 0, 0, 0
	for i, d := range set {
		if f.near != nil {
			for _, e := range set[:i] {
				close += f.near[d*n+e]
			}
			for _, e := range c.from {
				if !has(set, e) {
					behind += f.near[d*n+e]
				}
			}
		}
		if !f.sameNode(set[:i], d) {
			far++
		}
		free += int(f.devices[d].Free / roost.MiB)
		if u := f.devices[d].Unit; lender < 0 && !c.seen(set[:i], u) {
			room += int(f.cpu(u, c.r))
		}
	}
	if lender >= 0 {
		far += c.strangers(set, lender)
	}
	if c.r.GPUMemory > 0 {
		return cost{free, -close, far, room}
	}
	return cost{-close, far, behind, room}
}

// sameNode reports whether a device of the set is of the same memory node as d.
func (f *Free) sameNode(set []int, d int) bool {
	for _, e := range set {
		if f.devices[e].NUMA == f.devices[d].NUMA {
			return true
		}
	}
	return false
}

// divide takes processor time and memory for the best set: from the lender, or from the devices' own units, of each as much as its part of the
// devices as far as it has it, and what is left then of the first that have more.
func (c *chooser) divide(p *Placement) {
	lender, _ := c.lender(c.best)
	if lender >= 0 {
		p.Parts = append(p.Parts, Part{Unit: lender, CPU: c.r.CPU, Memory: c.r.Memory})
		return
	}
	f, cpu, memory := c.f, c.r.CPU, c.r.Memory
	for i, d := range c.best {
		u := f.devices[d].Unit
		if c.seen(c.best[:i], u) {
			continue
		}
		n := 0
		for _, e := range c.best[i:] {
			if f.devices[e].Unit == u {
				n++
			}
		}
		all := len(c.best)
		part := Part{Unit: u, CPU: c.r.CPU * roost.MilliCPU(n) / roost.MilliCPU(all), Memory: c.r.Memory / roost.Bytes(all) * roost.Bytes(n)}
		part.CPU, part.Memory = min(part.CPU, f.cpu(u, c.r)), min(part.Memory, f.memory(u, c.r))
		p.Parts = append(p.Parts, part)
		cpu, memory = cpu-part.CPU, memory-part.Memory
	}
	for i := range p.Parts {
		part := &p.Parts[i]
		more := min(cpu, f.cpu(part.Unit, c.r)-part.CPU)
		most := min(memory, f.memory(part.Unit, c.r)-part.Memory)
		part.CPU, part.Memory = part.CPU+more, part.Memory+most
		cpu, memory = cpu-more, memory-most
	}
}
