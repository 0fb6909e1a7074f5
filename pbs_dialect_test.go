package roost

import (
	"errors"
	"testing"
)

func TestParseDialect(t *testing.T) {
	for text, want := range map[string]PBSDialect{"": OpenPBS, "pbs": OpenPBS, "torque": Torque} {
		if got, err := ParsePBSDialect(text); got != want || err != nil {
			t.Errorf("%q: got %q, %v, want %q", text, got, err, want)
		}
	}
	if _, err := ParsePBSDialect("Torque"); !errors.Is(err, Invalid) {
		t.Errorf("got %v", err)
	}
}
