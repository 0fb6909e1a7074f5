package idle

import (
	"slices"
	"strings"
)

// Picture is what all sources see together.
type Picture struct {
	Input, ConsoleInput Instant
	Busy                string // why the machine is its owner's now, whatever the times of input say; empty: nothing of that kind
	Load
	OnBattery, Hot, Game, Sleeping bool
}

// Combine applies the rule of the package to what each source saw last. Console says whether the machine has a place to sit at: input devices, or a seat.
// The order of the sources decides nothing but whose reason is given.
//
// What a source saw is not taken back when it breaks: a person who was there was there.
func Combine(sights []Sight, console bool) Picture {
	var p Picture
	seen := slices.ContainsFunc(sights, func(s Sight) bool { return s.Health == Well && s.Reach == Hardware })
	for _, s := range sights {
		p.Input = max(p.Input, s.Input, s.ConsoleInput)
		p.ConsoleInput = max(p.ConsoleInput, s.ConsoleInput)
		if s.Health != Well {
			continue
		}
		if !seen {
			p.Input, p.ConsoleInput = max(p.Input, s.Believed), max(p.ConsoleInput, s.Believed)
		}
		if p.Busy == "" {
			p.Busy = s.Busy
		}
		p.ForeignCPU = max(p.ForeignCPU, s.ForeignCPU)
		p.CPUPressure = max(p.CPUPressure, s.CPUPressure)
		p.MemoryPressure = max(p.MemoryPressure, s.MemoryPressure)
		p.MemoryAvailable = max(p.MemoryAvailable, s.MemoryAvailable)
		p.OnBattery = p.OnBattery || s.OnBattery
		p.Hot = p.Hot || s.Hot
		p.Game = p.Game || s.Game
		p.Sleeping = p.Sleeping || s.Sleeping
	}
	if p.Busy == "" {
		p.Busy = doubt(sights, console)
	}
	return p
}

// doubt says why the times of input are not to be trusted; empty if they are. Terminals alone say nothing of who sits at the console with a mouse in
// his hand; where there is no console, they are all that a person can touch.
func doubt(sights []Sight, console bool) string {
	var wrong []string
	for _, s := range sights {
		if s.Health == Well && (s.Reach >= Console || s.Reach == Terminal && !console) {
			return ""
		}
		if s.Health == Broken && s.Reach > Machine {
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
