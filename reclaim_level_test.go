package roost

import (
	"errors"
	"strings"
	"testing"
)

func TestParseReclaim(t *testing.T) {
	for r := ReclaimOff; r <= ReclaimAggressive; r++ {
		if got, err := ParseReclaimLevel(r.String()); err != nil || got != r {
			t.Fatalf("%v is read as %v (%v)", r, got, err)
		}
	}
	if r, err := ParseReclaimLevel(""); err != nil || r != ReclaimOff {
		t.Fatalf("nothing is %v (%v), want off", r, err)
	}
	if _, err := ParseReclaimLevel("bold"); !errors.Is(err, Invalid) ||
		!strings.Contains(err.Error(), "off, baseline, medium, aggressive") {
		t.Fatalf("an unknown level: %v", err)
	}
}
