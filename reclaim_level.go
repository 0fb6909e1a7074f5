package roost

import (
	"fmt"
	"slices"
	"strings"
)

// ReclaimLevel is how much of what tasks asked for and do not use is lent to others (Borg
// §5.5).
type ReclaimLevel uint8

// The levels, from careful to bold.
const (
	ReclaimOff        ReclaimLevel = iota // nothing
	ReclaimBaseline                       // with a large margin, slowly
	ReclaimMedium                         // half-way between the two
	ReclaimAggressive                     // with a small margin, soon
)

var reclaimLevels = []string{ReclaimOff: "off", ReclaimBaseline: "baseline", ReclaimMedium: "medium",
	ReclaimAggressive: "aggressive"}

func (r ReclaimLevel) String() string {
	if int(r) < len(reclaimLevels) {
		return reclaimLevels[r]
	}
	return fmt.Sprintf("reclaim(%d)", uint8(r))
}

// ParseReclaimLevel reads the name of a level; none is ReclaimOff. The error is of kind
// Invalid.
func ParseReclaimLevel(s string) (ReclaimLevel, error) {
	if s == "" {
		return ReclaimOff, nil
	}
	if i := slices.Index(reclaimLevels, s); i >= 0 {
		return ReclaimLevel(i), nil
	}
	return ReclaimOff, fmt.Errorf("%q is no level of reclamation: %w: use %s", s, Invalid,
		strings.Join(reclaimLevels, ", "))
}
