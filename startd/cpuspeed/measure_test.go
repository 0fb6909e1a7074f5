package cpuspeed

import (
	"math"
	"testing"
)

// TestSolve holds that the work that is timed is the solution of the system.
func TestSolve(t *testing.T) {
	s := newSystem()
	if n := s.solve(); n != 686666 {
		t.Errorf("%d operations", n)
	}
	for i, x := range s.solution {
		if math.Abs(x-1) > 1e-9 {
			t.Fatalf("x[%d] = %v", i, x)
		}
	}
}

// TestMeasure holds that both figures are of a computer.
func TestMeasure(t *testing.T) {
	speed := Measure()
	if speed.KFlops < 1000 || speed.Mips < 10 || speed.KFlops > 1e9 || speed.Mips > 1e6 {
		t.Errorf("%+v", speed)
	}
	if mixResult == 0 {
		t.Error("the mix did nothing")
	}
}
