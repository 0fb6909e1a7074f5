package gpu

import "github.com/roost-batch/roost"

// UnitBound is the most that may be allocated of a unit.
type UnitBound struct {
	CPU    roost.MilliCPU
	Memory roost.Bytes
}

// UnitBounds divides the owner limits of a machine over its units; 0 of a resource stands
// for all of it. The sum of the bounds is at most the limit, and each is at most what its
// unit has.
//
// Each unit gets its share in whole cores, and the cores left over go to the first units
// with room. So a machine with a limit of one core has one unit that can give it, and not
// four with a quarter. Memory is divided like the cores.
func UnitBounds(units []ResourceUnit, cpu roost.MilliCPU, memory roost.Bytes) []UnitBound {
	var all UnitBound
	for i := range units {
		all.CPU, all.Memory = all.CPU+units[i].CPU, all.Memory+units[i].Memory
	}
	cpu, memory = smallerBound(cpu, all.CPU), smallerBound(memory, all.Memory)
	bounds, weights := make([]UnitBound, len(units)), make([]float64, len(units))
	left := cpu
	for i := range units {
		bounds[i].CPU = proportionalPart(units[i].CPU, cpu, all.CPU) / 1000 * 1000
		left -= bounds[i].CPU
	}
	sum := 0.0
	for i := range units {
		more := min(left, units[i].CPU-bounds[i].CPU)
		bounds[i].CPU, left = bounds[i].CPU+more, left-more
		weights[i] = float64(units[i].Memory)
		if units[i].CPU > 0 {
			weights[i] *= float64(bounds[i].CPU) / float64(units[i].CPU)
		}
		sum += weights[i]
	}
	rest := memory
	for i := range units {
		if sum > 0 {
			bounds[i].Memory = min(roost.Bytes(float64(memory)*(weights[i]/sum)), units[i].Memory, rest)
		}
		rest -= bounds[i].Memory
	}
	for i := range units {
		more := min(rest, units[i].Memory-bounds[i].Memory)
		bounds[i].Memory, rest = bounds[i].Memory+more, rest-more
	}
	return bounds
}

func smallerBound[T roost.MilliCPU | roost.Bytes](given, all T) T {
	if given <= 0 || given > all {
		return all
	}
	return given
}

// ResizeUnit resizes the i-th unit to a bound. It grows at once, and shrinks only by what
// is free: what is allocated stays. The result reports whether it changed.
func (f *FreeResources) ResizeUnit(i int, to UnitBound) bool {
	u := &f.units[i]
	before := UnitBound{u.CPU, u.Memory}
	cpu := min(u.CPU-to.CPU, u.cpu[BatchClass], u.cpu[StreamClass])
	memory := min(u.Memory-to.Memory, u.memory)
	u.CPU, u.Memory, u.memory, u.reclaimable.memory = u.CPU-cpu, u.Memory-memory, u.memory-memory,
		u.reclaimable.memory-memory
	for class := range u.cpu {
		u.cpu[class] -= cpu
		u.reclaimable.cpu[class] -= cpu
	}
	return before != UnitBound{u.CPU, u.Memory}
}

// ExcessOver returns how far CPU of a class, and memory, in the i-th unit exceed a bound.
// It is 0 where they do not.
func (f *FreeResources) ExcessOver(i int, c AppClass, to UnitBound) UnitBound {
	u := &f.units[i]
	return UnitBound{max(u.CPU-u.cpu[c]-to.CPU, 0), max(u.Memory-u.memory-to.Memory, 0)}
}
