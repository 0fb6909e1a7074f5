package match

import (
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// shortage is what a machine lacks for a request.
type shortage struct {
	short [dimensions]bool
	n     int       // how many of them
	first dimension // dimensions if none
	have  [dimensions]int64
	of    [dimensions]int64 // of that, when the machine is empty
	why   string            // what is short though no sum is: the units are too small, or others wait for them
}

// any reports whether the request does not fit.
func (s *shortage) any() bool { return s.n > 0 || s.why != "" }

// shortageOf says what a machine lacks for a class: even when it is empty, or as things stand.
func (p *plan) shortageOf(c *Class, at int, empty bool) shortage {
	m, s := p.Machines[at], shortage{first: dimensions}
	if c.Alone && !empty && !p.vacant(at) {
		s.why = "it is to have the machine alone, and others are there"
		return s
	}
	f := p.splitAt(at)
	have, of := m.Total, m.Total
	if !empty {
		have = p.room(c, at)
	}
	if f == nil && c.Resources.GPUMemory == 0 && c.Resources.Fits(have) {
		return s // most machines of most pools: no words need to be found
	}
	if f != nil && empty {
		f = f.Empty()
	}
	s.have, s.of = amountsOf(have), amountsOf(of)
	s.have[gpuMemory], s.of[gpuMemory] = 0, 0
	switch {
	case f != nil:
		s.count(c, f)
	case of.GPUs < c.Resources.GPUs:
		s.have[gpuMemory] = int64(c.Resources.GPUMemory) // that it has too few is said already
	}
	for d, want := range amountsOf(c.Resources) {
		if d := dimension(d); want > s.have[d] {
			s.short[d] = true
			s.n++
			s.first = min(s.first, d)
		}
	}
	if r := c.request(); f != nil && (s.n == 0 || waited(f, c.App)) && !f.Find(r, gpu.Anywhere, &p.spot) {
		s = shortage{first: dimensions, why: reason(f.Why(r))}
	}
	return s
}

// waited reports whether others wait for a unit, so that its sums tell of nothing.
func waited(f *gpu.Free, app gpu.Class) bool {
	if app == gpu.Stream {
		return false
	}
	for i := range f.Len() {
		if f.Queue(i).Shut() {
			return true
		}
	}
	return false
}

// count puts what the machine has for such a request in place of the sums: without GPUs, what the units without devices have, if there are any; of
// gpus those that would do, of gpuMemory what as many as are wanted have.
func (s *shortage) count(c *Class, f *gpu.Free) {
	var free, total roost.Resources
	for i := range f.Len() {
		if u := f.Unit(i); len(u.Devices) == 0 {
			free = free.Add(unitRoom(f, i, c.App, c.mayReclaim))
			total = total.Add(roost.Resources{CPU: u.CPU, Memory: u.Memory})
		}
	}
	if c.Resources.GPUs == 0 && total.CPU > 0 {
		s.have[cpus], s.of[cpus] = int64(free.CPU), int64(total.CPU)
		s.have[memory], s.of[memory] = int64(free.Memory), int64(total.Memory)
	}
	want := c.Resources
	var sizes, shares []roost.Bytes
	whole := 0
	for _, d := range f.Devices() {
		if !d.Health.OK {
			continue
		}
		sizes, shares = append(sizes, d.Memory), append(shares, d.Free)
		if d.Tasks == 0 {
			whole++
		}
	}
	s.of[gpus], s.have[gpus] = int64(len(sizes)), int64(whole)
	if want.GPUMemory == 0 {
		return
	}
	s.have[gpus] = int64(len(sizes))
	s.of[gpuMemory], s.have[gpuMemory] = nth(sizes, want.GPUs), nth(shares, want.GPUs)
	if len(sizes) < want.GPUs {
		s.have[gpuMemory] = int64(want.GPUMemory) // that it has too few is said already
	}
}

// nth is the n-th largest size, 0 where there are fewer.
func nth(sizes []roost.Bytes, n int) int64 {
	slices.Sort(sizes)
	if n < 1 || len(sizes) < n {
		return 0
	}
	return int64(sizes[len(sizes)-n])
}

// reason is the text of an error of package gpu, without its kind.
func reason(err error) string {
	text := err.Error()
	if kind := roost.Exhausted.Error() + ": "; len(text) > len(kind) && text[:len(kind)] == kind {
		return text[len(kind):]
	}
	return text
}

// helps reports whether a request with so much less of one dimension would fit on a machine as it stands.
func (p *plan) helps(c *Class, at int, d dimension, have int64, empty bool) bool {
	f := p.splitAt(at)
	if f == nil {
		return true // it lacks nothing else
	}
	if empty {
		f = f.Empty()
	}
	r := c.request()
	switch d {
	case cpus:
		r.CPU = roost.MilliCPU(have)
	case memory:
		r.Memory = roost.Bytes(have)
	case gpus:
		r.GPUs = int(have)
	case gpuMemory:
		r.GPUMemory = roost.Bytes(have)
	case disk:
		r.Disk = roost.Bytes(have)
	}
	return have > 0 && f.Find(r, gpu.Anywhere, &p.spot)
}
