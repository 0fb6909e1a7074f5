package roost

import (
	"fmt"
	"slices"
	"strings"
)

// Reclaim is how much of what tasks asked for and do not use is lent to others (Borg §5.5).
type Reclaim uint8

// The levels, from careful to bold.
const (
	ReclaimOff        Reclaim = iota // nothing
	ReclaimBaseline                  // with a large margin, slowly
	ReclaimMedium                    // half-way between the two
	ReclaimAggressive                // with a small margin, soon
)

var reclaims = []string{ReclaimOff: "off", ReclaimBaseline: "baseline", ReclaimMedium: "medium", ReclaimAggressive: "aggressive"}

func (r Reclaim) String() string {
	if int(r) < len(reclaims) {
		return reclaims[r]
	}
	return fmt.Sprintf("reclaim(%d)", uint8(r))
}

// ParseReclaim reads the name of a level; none is ReclaimOff. The error is of kind Invalid.
func ParseReclaim(s string) (Reclaim, error) {
	if s == "" {
		return ReclaimOff, nil
	}
	if i := slices.Index(reclaims, s); i >= 0 {
		return Reclaim(i), nil
	}
	return ReclaimOff, fmt.Errorf("%q is no level of reclamation: %w: use %s", s, Invalid, strings.Join(reclaims, ", "))
}
