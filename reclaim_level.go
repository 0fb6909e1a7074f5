package roost

import (
	"fmt"
	"slices"
	"strings"
)

// ReclaimLevel is how much of what tasks requested and do not use goes to non-prod tasks
// (Borg §5.5).
type ReclaimLevel uint8

// The levels, from the most careful one.
const (
	ReclaimOff        ReclaimLevel = iota // no reclamation
	ReclaimBaseline                       // a large margin, and slow decay of the usage estimate
	ReclaimMedium                         // between the two
	ReclaimAggressive                     // a small margin, and fast decay of the usage estimate
)

var reclaimLevels = []string{ReclaimOff: "off", ReclaimBaseline: "baseline", ReclaimMedium: "medium",
	ReclaimAggressive: "aggressive"}

func (r ReclaimLevel) String() string {
	if int(r) < len(reclaimLevels) {
		return reclaimLevels[r]
	}
	return fmt.Sprintf("reclaim(%d)", uint8(r))
}

// ParseReclaimLevel reads the name of a level; empty is ReclaimOff. The error is of kind
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
