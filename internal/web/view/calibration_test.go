package view

import (
	"math"
	"testing"

	"github.com/roost-batch/roost/internal/wire"
)

// TestCalibrationLine holds the quantiles of errors against lists of them.
func TestCalibrationLine(t *testing.T) {
	for name, c := range map[string]struct {
		starts   []uint64
		p50, p90 float64
	}{
		"none":             {nil, 0, 0},
		"at once":          {[]uint64{10}, .5, .9},
		"two classes":      {[]uint64{5, 0, 5}, 1, 3.6},
		"one hour":         {append(make([]uint64, 12), 4), 3072, 3891.2},
		"few that are far": {append([]uint64{90}, append(make([]uint64, 9), 10)...), .5556, 1},
	} {
		l := calibrationLineOf(&wire.StartErrors{Certainty: "rate", Starts: c.starts, Late: 1})
		if math.Abs(l.P50-c.p50) > .001 || math.Abs(l.P90-c.p90) > .001 {
			t.Errorf("%s: got %v and %v, want %v and %v", name, l.P50, l.P90, c.p50, c.p90)
		}
	}
}
