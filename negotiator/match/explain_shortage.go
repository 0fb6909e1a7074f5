package match

import (
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// resourceShortage is what a machine lacks for a request.
type resourceShortage struct {
	short      [dimensions]bool
	dimensions int               // number of dimensions in short
	first      resourceDimension // the first dimension in short; dimensions if none
	have       [dimensions]int64
	total      [dimensions]int64 // what the machine has when it is empty
	reason     string            // what is short although no sum is: units are too small, or have a queue
}

// isShort reports whether the request does not fit.
func (s *resourceShortage) isShort() bool { return s.dimensions > 0 || s.reason != "" }

// shortageOf returns what a machine lacks for a class, at this point of the cycle or, if
// empty, without claims.
func (p startExplainer) shortageOf(c *RequestClass, at int, empty bool) resourceShortage {
	m, s := p.Machines[at], resourceShortage{first: dimensions}
	if c.Exclusive && !empty && !p.isEmpty(at) {
		s.reason = "it needs the machine exclusively, and other tasks are there"
		return s
	}
	f := p.unitsFreeAt(at)
	have, of := m.Total, m.Total
	if !empty {
		have = p.roomBySums(c, at)
	}
	if f == nil && c.Resources.GPUMemory == 0 && c.Resources.FitsIn(have) {
		return s // most machines of most pools: no text is needed
	}
	if f != nil && empty {
		f = f.EmptyClone()
	}
	s.have, s.total = resourceAmounts(have), resourceAmounts(of)
	s.have[gpuMemory], s.total[gpuMemory] = 0, 0
	switch {
	case f != nil:
		s.countDevices(c, f)
	case of.GPUs < c.Resources.GPUs:
		s.have[gpuMemory] = int64(c.Resources.GPUMemory) // too few GPUs are counted already
	}
	for d, want := range resourceAmounts(c.Resources) {
		if d := resourceDimension(d); want > s.have[d] {
			s.short[d] = true
			s.dimensions++
			s.first = min(s.first, d)
		}
	}
	if r := c.deviceRequest(); f != nil && (s.dimensions == 0 || isQueuedFor(f, c.AppClass)) &&
		!f.FindPlacement(r, gpu.AnyUnit, &p.lastPlacement) {
		s = resourceShortage{first: dimensions, reason: placementErrorText(f.WhyNotNow(r))}
	}
	return s
}

// isQueuedFor reports whether tasks wait for a unit, so that its sums mean nothing.
func isQueuedFor(f *gpu.FreeResources, app gpu.AppClass) bool {
	if app == gpu.StreamClass {
		return false
	}
	for i := range f.Len() {
		if f.Queue(i).IsClosed() {
			return true
		}
	}
	return false
}

// countDevices replaces the sums by what the machine has for such a request. Without GPUs
// these are the units without devices, if there are any. For gpus it counts the GPUs that
// are large enough; for gpuMemory it takes the largest amount that as many GPUs as wanted
// have.
func (s *resourceShortage) countDevices(c *RequestClass, f *gpu.FreeResources) {
	var free, total roost.Resources
	for i := range f.Len() {
		if u := f.Unit(i); len(u.Devices) == 0 {
			free = free.Add(maxUnitResources(f, i, c.AppClass, c.mayReclaim))
			total = total.Add(roost.Resources{CPU: u.CPU, Memory: u.Memory})
		}
	}
	if c.Resources.GPUs == 0 && total.CPU > 0 {
		s.have[cpus], s.total[cpus] = int64(free.CPU), int64(total.CPU)
		s.have[memory], s.total[memory] = int64(free.Memory), int64(total.Memory)
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
	s.total[gpus], s.have[gpus] = int64(len(sizes)), int64(whole)
	if want.GPUMemory == 0 {
		return
	}
	s.have[gpus] = int64(len(sizes))
	s.total[gpuMemory], s.have[gpuMemory] = nthLargest(sizes, want.GPUs), nthLargest(shares, want.GPUs)
	if len(sizes) < want.GPUs {
		s.have[gpuMemory] = int64(want.GPUMemory) // too few GPUs are counted already
	}
}

// nthLargest returns the n-th largest size, 0 if there are fewer.
func nthLargest(sizes []roost.Bytes, n int) int64 {
	slices.Sort(sizes)
	if n < 1 || len(sizes) < n {
		return 0
	}
	return int64(sizes[len(sizes)-n])
}

// placementErrorText returns the text of an error of package gpu without its kind.
func placementErrorText(err error) string {
	text := err.Error()
	if kind := roost.Exhausted.Error() + ": "; len(text) > len(kind) && text[:len(kind)] == kind {
		return text[len(kind):]
	}
	return text
}

// fitsWithLess reports whether a request that asks only for have of one dimension would
// fit on a machine.
func (p startExplainer) fitsWithLess(c *RequestClass, at int, d resourceDimension, have int64, empty bool) bool {
	f := p.unitsFreeAt(at)
	if f == nil {
		return true // it lacks nothing else
	}
	if empty {
		f = f.EmptyClone()
	}
	r := c.deviceRequest()
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
	case diskIO:
		r.IO.Disk = roost.ByteRate(have)
	case network:
		r.IO.Network = roost.ByteRate(have)
	}
	return have > 0 && f.FindPlacement(r, gpu.AnyUnit, &p.lastPlacement)
}
