package gpu

import (
	"fmt"

	"github.com/roost-batch/roost"
)

// ResizedPlacement returns an allocated placement with other CPU and memory, and takes
// nothing. Devices and disk stay. An error says why the placement cannot change where it
// is: one of several units has no single unit to take more from, and one in reclaimed
// resources has nothing of its own.
func ResizedPlacement(p Placement, cpu roost.MilliCPU, memory roost.Bytes) (Placement, error) {
	switch {
	case p.Reclaimed:
		return p, fmt.Errorf("%w: it uses what other tasks leave, and has nothing of its own", roost.Conflict)
	case len(p.Parts) != 1:
		return p, fmt.Errorf("%w: it has parts of %d units of the machine", roost.Conflict, len(p.Parts))
	}
	p.Parts = []UnitPart{{Unit: p.Parts[0].Unit, CPU: cpu, Memory: memory}}
	return p, nil
}

// ReplacePlacement allocates a placement in place of another one. If that does not fit,
// it changes nothing and says what is missing. The unit must be the same.
func (f *FreeResources) ReplacePlacement(old, now Placement) error {
	part := now.Parts[0]
	f.ReturnPlacement(old)
	if f.fitsInFree(&now) {
		f.TakePlacement(now)
		return nil
	}
	free := f.UnitFree(part.Unit, now.Class)
	f.TakePlacement(old)
	return fmt.Errorf("%w: it would have %v cores and %v of memory, and %v cores and %v are there for it",
		roost.Exhausted, part.CPU.Cores(), part.Memory, free.CPU.Cores(), free.Memory)
}

// Resized returns the placement with other CPU and memory. It has one unit, or none and
// no CPU and memory of its own.
func (s SavedPlacement) Resized(to roost.Resources) SavedPlacement {
	if len(s.Parts) == 1 {
		s.Parts = []SavedPart{{s.Parts[0].Unit, to.CPU, to.Memory}}
	}
	return s
}
