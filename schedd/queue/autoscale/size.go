package autoscale

import (
	"fmt"
	"math"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/mutant"
)

// Size is how much of a machine a task asks for.
type Size struct {
	CPU    roost.MilliCPU
	Memory roost.Bytes
}

// UseHistory is what the tasks of a service have used within a window. All tasks of a
// service ask for the same, so that nobody needs to know which of them used what. The
// window moves on in slots, and a use of cores is counted by its magnitude: what it takes
// is bounded.
type UseHistory struct {
	from  int64 // since when it was measured, unix nanoseconds
	slots []useSlot
}

// useSlot is a part of the window.
type useSlot struct {
	at      int64 // when it begins, unix nanoseconds
	samples int
	cpu     [cpuBins]uint32 // samples of so many cores
	maxCPU  roost.MilliCPU
	memory  roost.Bytes // the most
}

const (
	windowSlots = 12
	cpuBins     = 128
	cpuBinRatio = 1.08 // of a bin to the next smaller one
	smallestBin = 10   // thousandths of a core
	// cpuPercent is how much of the time a task is to have the cores that it would use
	cpuPercent = 95
	// minSamples is how often use was measured before a size is changed for it
	minSamples = 10
	// sizeTolerance is the part by which a size may differ from what is wanted
	sizeTolerance = 0.1
	minCPU        = 100 // thousandths of a core
	memoryStep    = 64 * roost.MiB
	// mostUse is more than any machine has. A machine may report any number, and with a
	// margin that could be more than an integer holds.
	mostUse = 1 << 60
)

// Add notes what a task uses.
func (h *UseHistory) Add(p *SizePolicy, now int64, cpu roost.MilliCPU, memory roost.Bytes) {
	h.expire(p, now)
	n := len(h.slots)
	if n == 0 || now-h.slots[n-1].at >= int64(p.Window)/windowSlots {
		if n == 0 {
			h.from = now
		}
		h.slots, n = append(h.slots, useSlot{at: now}), n+1
	}
	s := &h.slots[n-1]
	s.samples++
	s.cpu[cpuBin(cpu)]++
	s.maxCPU, s.memory = max(s.maxCPU, cpu), max(s.memory, memory)
}

// expire forgets what was before the window. A clock that was set back begins it anew.
func (h *UseHistory) expire(p *SizePolicy, now int64) {
	if n := len(h.slots); n > 0 && h.slots[n-1].at > now {
		h.slots = nil
	}
	for len(h.slots) > 0 && now-h.slots[0].at > int64(p.Window)+int64(p.Window)/windowSlots {
		h.slots = h.slots[1:]
	}
}

// cpuBin is where a use of cores is counted.
func cpuBin(cpu roost.MilliCPU) int {
	if cpu <= smallestBin {
		return 0
	}
	return min(int(math.Ceil(math.Log(float64(cpu)/smallestBin)/math.Log(cpuBinRatio)-1e-9)), cpuBins-1)
}

// use returns the cores that are enough for most of the time, and the most memory.
func (h *UseHistory) use() (cpu roost.MilliCPU, memory roost.Bytes, samples int) {
	var counts [cpuBins]int
	highest := roost.MilliCPU(0)
	for i := range h.slots {
		s := &h.slots[i]
		samples, highest, memory = samples+s.samples, max(highest, s.maxCPU), max(memory, s.memory)
		for k, n := range s.cpu {
			counts[k] += int(n)
		}
	}
	below := 0
	for k, n := range counts[:cpuBins-1] {
		if below += n; below*100 >= samples*cpuPercent {
			edge := roost.MilliCPU(math.Ceil(smallestBin * math.Pow(cpuBinRatio, float64(k))))
			return min(edge, highest), memory, samples
		}
	}
	return highest, memory, samples
}

// SizeDecision is how large the tasks of a service are to be, and why.
type SizeDecision struct {
	Size    Size // they are to have now
	Wanted  Size // by what was measured, within the bounds
	CPU     roost.MilliCPU
	Memory  roost.Bytes // the most that a task used
	Samples int
	Reason  string
}

// DecideSize returns how large tasks of some size are to be, which was last changed at a
// time. The naive way gives each task what it uses now. Then a spike makes it larger, the
// quiet minute after it makes it smaller, and the next spike ends it for its memory. Here
// a size grows as soon as the window says so. It shrinks only when the use of a whole
// window is known, and never below the most memory in it.
func DecideSize(p *SizePolicy, has Size, h *UseHistory, changed, now int64) (d SizeDecision) {
	h.expire(p, now)
	d.CPU, d.Memory, d.Samples = h.use()
	d.Size, d.Wanted = has, p.Clamp(has)
	switch within := d.Wanted == has; {
	case d.Samples >= minSamples:
		d.Wanted = p.wanted(has, d.CPU, d.Memory)
	case within:
		d.Reason = fmt.Sprintf("its use was measured %d times, and %d are needed", d.Samples, minSamples)
		return d
	}
	d.Reason = p.describe(&d)
	smaller := d.Wanted.CPU < has.CPU && has.CPU <= max(p.MaxCPU, d.Wanted.CPU) ||
		d.Wanted.Memory < has.Memory && has.Memory <= max(p.MaxMemory, d.Wanted.Memory)
	switch known := time.Duration(now - h.from); {
	case d.Wanted == has:
	case changed != 0 && now-changed < int64(p.Every) && now >= changed:
		d.Reason += fmt.Sprintf("; its size has changed within the last %v", p.Every)
	case smaller && len(h.slots) > 0 && known < p.Window:
		d.Size = Size{max(has.CPU, d.Wanted.CPU), max(has.Memory, d.Wanted.Memory)}
		d.Reason += fmt.Sprintf("; it shrinks when its use of the last %v is known", p.Window)
	default:
		d.Size = d.Wanted
	}
	return d
}

// wanted is the size for a use. One that differs little from what is wanted, and is not
// less than the use, stays as it is.
func (p *SizePolicy) wanted(has Size, usedCPU roost.MilliCPU, usedMemory roost.Bytes) Size {
	cpu, memory := min(float64(usedCPU)*(1+p.Margin), mostUse), min(float64(usedMemory)*(1+p.Margin), mostUse)
	to := Size{roundCPU(cpu), RoundMemory(roost.Bytes(memory))}
	if !mutant.Active(mutant.SizedPastMax) {
		to = p.Clamp(to)
	}
	within := p.Clamp(has)
	if !p.SizesCPU() || within.CPU == has.CPU && has.CPU >= usedCPU && isNear(float64(has.CPU), cpu) {
		to.CPU = has.CPU
	}
	if !p.SizesMemory() || within.Memory == has.Memory && has.Memory >= usedMemory &&
		isNear(float64(has.Memory), memory) {
		to.Memory = has.Memory
	}
	return to
}

func isNear(has, wanted float64) bool { return math.Abs(has-wanted) <= sizeTolerance*has }

// describe says by what numbers a size is wanted.
func (p *SizePolicy) describe(d *SizeDecision) (text string) {
	if p.SizesCPU() {
		text = fmt.Sprintf("%s cores are enough for %d%% of the time, and %s are wanted", Number(d.CPU.Cores()),
			cpuPercent, Number(d.Wanted.CPU.Cores()))
	}
	if p.SizesCPU() && p.SizesMemory() {
		text += "; "
	}
	if p.SizesMemory() {
		text += fmt.Sprintf("at most %v of memory were used, and %v are wanted", roundDisplay(d.Memory),
			d.Wanted.Memory)
	}
	return text
}

// roundCPU makes a number of cores one that people would write.
func roundCPU(cpu float64) roost.MilliCPU {
	step := 100.0
	if cpu > 4000 {
		step = 500
	}
	return roost.MilliCPU(math.Ceil(cpu/step-1e-9) * step)
}

// RoundMemory makes an amount of memory one that people would write. It is not less.
func RoundMemory(b roost.Bytes) roost.Bytes {
	step := memoryStep
	switch {
	case b > 64*roost.GiB:
		step = 4 * roost.GiB
	case b > 8*roost.GiB:
		step = roost.GiB
	case b > 2*roost.GiB:
		step = 256 * roost.MiB
	}
	return (b + step - 1) / step * step
}

// roundDisplay leaves out what is too fine to matter.
func roundDisplay(b roost.Bytes) roost.Bytes {
	if b >= 10*roost.MiB {
		return (b + roost.MiB/2) / roost.MiB * roost.MiB
	}
	return b
}
