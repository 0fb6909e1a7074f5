package idle

import (
	"slices"
	"strings"

	"github.com/roost-batch/roost"
)

// CombinedReading is the combination of all sources' readings.
type CombinedReading struct {
	Input, ConsoleInput roost.BootTime
	// why the owner needs the machine now, whatever the times of input; empty: no reason
	OwnerUseReason string
	SystemLoad
	OnBattery, Hot, ExclusiveProgram, Sleeping bool
}

// CombineReadings applies the rule of the package to the last reading of each source.
// Console reports whether the machine has a console: input devices, or a seat. The order
// of the sources only determines whose reason is given.
//
// Input that a source reported still counts when the source breaks.
func CombineReadings(readings []SourceReading, console bool) CombinedReading {
	var p CombinedReading
	seen := slices.ContainsFunc(readings, func(s SourceReading) bool {
		return s.Health == Healthy && s.Coverage == Hardware
	})
	for _, s := range readings {
		p.Input = max(p.Input, s.Input, s.ConsoleInput)
		p.ConsoleInput = max(p.ConsoleInput, s.ConsoleInput)
		if s.Health != Healthy {
			continue
		}
		if !seen {
			p.Input, p.ConsoleInput = max(p.Input, s.IndirectInput), max(p.ConsoleInput, s.IndirectInput)
		}
		if p.OwnerUseReason == "" {
			p.OwnerUseReason = s.OwnerUseReason
		}
		p.ForeignCPU = max(p.ForeignCPU, s.ForeignCPU)
		p.CPUPressure = max(p.CPUPressure, s.CPUPressure)
		p.MemoryPressure = max(p.MemoryPressure, s.MemoryPressure)
		p.MemoryAvailable = max(p.MemoryAvailable, s.MemoryAvailable)
		p.OnBattery = p.OnBattery || s.OnBattery
		p.Hot = p.Hot || s.Hot
		p.ExclusiveProgram = p.ExclusiveProgram || s.ExclusiveProgram
		p.Sleeping = p.Sleeping || s.Sleeping
	}
	if p.OwnerUseReason == "" {
		p.OwnerUseReason = unhealthyReason(readings, console)
	}
	return p
}

// unhealthyReason returns why the times of input are unreliable, or "" if they are
// reliable. Terminals do not show who uses a mouse at the console. Without a console they
// are all that a person can use.
func unhealthyReason(readings []SourceReading, console bool) string {
	var wrong []string
	for _, s := range readings {
		if s.Health == Healthy && (s.Coverage >= Console || s.Coverage == Terminal && !console) {
			return ""
		}
		if s.Health == Broken && s.Coverage > Machine {
			wrong = append(wrong, s.Name+": "+s.Text)
		}
	}
	if len(wrong) > 0 {
		return "no source of input is healthy (" + strings.Join(wrong, "; ") + ")"
	}
	if console {
		return "no source of input is healthy (nothing watches the keyboard and the mouse)"
	}
	return "no source of input is healthy (this machine has none)"
}
