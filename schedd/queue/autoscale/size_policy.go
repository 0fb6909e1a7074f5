package autoscale

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
)

// The defaults and bounds of a policy of sizes.
const (
	DefaultSizeWindow = time.Hour
	DefaultSizeEvery  = 10 * time.Minute
	DefaultMargin     = 0.25
	MinSizeWindow     = time.Minute
	MaxSizeWindow     = 24 * time.Hour
	MaxMargin         = 4
)

// SizePolicy is what a job says of how large its tasks are to be. What has no maximum
// stays as its user has said.
type SizePolicy struct {
	MinCPU, MaxCPU       roost.MilliCPU
	MinMemory, MaxMemory roost.Bytes
	Window               time.Duration // use within that counts
	Every                time.Duration // between two changes
	Margin               float64       // a part of the use, that is added to it
}

// DefaultSizePolicy is the policy of a job that says no more than it has to.
func DefaultSizePolicy() SizePolicy {
	return SizePolicy{MinCPU: minCPU, MinMemory: memoryStep, Window: DefaultSizeWindow, Every: DefaultSizeEvery,
		Margin: DefaultMargin}
}

// SizesCPU reports whether the cores of tasks follow their use.
func (p *SizePolicy) SizesCPU() bool { return p.MaxCPU > 0 }

// SizesMemory reports whether the memory of tasks follows their use.
func (p *SizePolicy) SizesMemory() bool { return p.MaxMemory > 0 }

// Clamp returns the size within the bounds that is nearest to one.
func (p *SizePolicy) Clamp(s Size) Size {
	if p.SizesCPU() {
		s.CPU = min(max(s.CPU, p.MinCPU), p.MaxCPU)
	}
	if p.SizesMemory() {
		s.Memory = min(max(s.Memory, p.MinMemory), p.MaxMemory)
	}
	return s
}

// Problems lists what makes no sense in a policy.
func (p *SizePolicy) Problems() (list []Problem) {
	refuse := func(wrong bool, field, cause, cure string) {
		if wrong {
			list = append(list, Problem{Field: field, Cause: cause, Cure: cure})
		}
	}
	refuse(!p.SizesCPU() && !p.SizesMemory(), "max_cpus", "it says neither how many cores nor how much memory a task "+
		"may get", "write max_cpus = 4, max_memory = \"8GiB\" or both")
	refuse(p.SizesCPU() && p.MinCPU > p.MaxCPU, "min_cpus", fmt.Sprintf("%v is more than max_cpus, which is %v",
		p.MinCPU.Cores(), p.MaxCPU.Cores()), "make min_cpus smaller or max_cpus greater")
	refuse(p.SizesMemory() && p.MinMemory > p.MaxMemory, "min_memory", fmt.Sprintf("%v is more than max_memory, which "+
		"is %v", p.MinMemory, p.MaxMemory), "make min_memory smaller or max_memory greater")
	refuse(p.SizesCPU() && p.MinCPU <= 0, "min_cpus", "a task needs some of a core", "write min_cpus = 0.1")
	refuse(p.SizesMemory() && p.MinMemory <= 0, "min_memory", "a task needs some memory",
		"write min_memory = \"64MiB\"")
	refuse(p.Window < MinSizeWindow || p.Window > MaxSizeWindow, "window", fmt.Sprintf("%v is no window", p.Window),
		"write 1m to 24h")
	refuse(p.Every < MinEvery || p.Every > MaxSizeWindow, "every", fmt.Sprintf("%v is no interval", p.Every),
		"write 1s to 24h")
	refuse(!(p.Margin >= 0 && p.Margin <= MaxMargin), "margin", fmt.Sprintf("%g is no margin", p.Margin),
		"write 0% to 400%")
	return list
}
