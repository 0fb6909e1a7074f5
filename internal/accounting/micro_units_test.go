package accounting

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestMicroUnitsText reads back what is written, for any amount.
func TestMicroUnitsText(t *testing.T) {
	for text, want := range map[string]MicroUnits{
		"0": 0, "1": Unit, "-12.5": -12_500_000, "0.000001": 1, "-0.000001": -1, "00.5": 500_000,
		"9223372036854.775807": math.MaxInt64,
	} {
		if got, err := ParseMicroUnits(text); got != want || err != nil {
			t.Errorf("%s: got %d, %v, want %d", text, int64(got), err, int64(want))
		}
	}
	for _, text := range []string{"", "-", ".5", "1.", "1e3", "+1", "1.0000001", "9223372036854.775808", "1,5", "NaN",
		"1 ",
		"--1", "1.-5", "0x1"} {
		if got, err := ParseMicroUnits(text); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
	for _, m := range []MicroUnits{0, 1, -1, 10, math.MaxInt64, math.MinInt64} {
		checkText(t, m)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		n := MicroUnits(r.Int64() >> r.IntN(64))
		checkText(t, n)
		checkText(t, -n)
	}
}

func checkText(t *testing.T, m MicroUnits) {
	t.Helper()
	if got, err := ParseMicroUnits(m.String()); got != m || err != nil {
		t.Errorf("%d is written %s and read as %d, %v", int64(m), m, int64(got), err)
	}
}
