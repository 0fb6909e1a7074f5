package reclaim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// Level is how much is reclaimed.
type Level uint8

// The levels, from careful to bold (Borg §5.5).
const (
	Off        Level = iota // reservations are the limits: nothing is reclaimed
	Baseline                // Borg's first parameters
	Medium                  // half-way between the two, which Borg settled on
	Aggressive              // a small margin that is soon reached
)

var levels = []string{Off: "off", Baseline: "baseline", Medium: "medium", Aggressive: "aggressive"}

func (l Level) String() string { return levels[l] }

// Parse reads the name of a level; none is Off. The error is of kind roost.Invalid.
func Parse(s string) (Level, error) {
	if s == "" {
		return Off, nil
	}
	if i := slices.Index(levels, s); i >= 0 {
		return Level(i), nil
	}
	return Off, fmt.Errorf("%q is no level of reclamation: %w: use %s", s, roost.Invalid, strings.Join(levels, ", "))
}

// Params are how reservations follow use.
type Params struct {
	Settle   time.Duration // from its start on, so long a task keeps its limit: it has not shown yet what it needs
	HalfLife time.Duration // in which the distance to the aim is halved
	Margin   float64       // on top of the use, as a part of it
	Floor    float64       // and besides, as a part of the limit: the use of a task that idles says little
}

// Settle is how long startup transients last (Borg §5.5).
const Settle = 300 * time.Second

// Params are those of a level; of Off, a margin that nothing fits below.
func (l Level) Params() Params {
	switch l {
	case Baseline:
		return Params{Settle, 20 * time.Minute, 0.50, 0.10}
	case Medium:
		return Params{Settle, 12*time.Minute + 30*time.Second, 0.30, 0.06}
	case Aggressive:
		return Params{Settle, 5 * time.Minute, 0.10, 0.02}
	}
	return Params{Settle: Settle, HalfLife: time.Minute, Floor: 1}
}
