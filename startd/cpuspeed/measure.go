// Package cpuspeed measures how fast one CPU of a machine is, for the attributes KFlops
// and Mips that HTCondor's machines have, too. The figures compare machines with each
// other: a job may rank by them. They are no figures of HTCondor's own programs.
package cpuspeed

import (
	"math"
	"time"
)

// Speed is how fast one CPU is.
type Speed struct {
	KFlops int64 // thousand floating-point operations per second
	Mips   int64 // million integer operations per second
}

// Each figure is the best of some runs, each of at least minTime. Others that use the
// machine can only make a run slower.
const (
	runs    = 5
	minTime = 20 * time.Millisecond
)

// Measure measures for a fifth of a second of CPU time.
func Measure() Speed {
	return Speed{KFlops: best(newSystem().solve) / 1000, Mips: best(mix) / 1_000_000}
}

// best returns the highest rate of some work, in operations per second. The work returns
// how many it did.
func best(work func() int64) (rate int64) {
	for range runs {
		began, done := time.Now(), int64(0)
		for time.Since(began) < minTime {
			done += work()
		}
		if seconds := time.Since(began).Seconds(); seconds > 0 {
			rate = max(rate, int64(float64(done)/seconds))
		}
	}
	return rate
}

// order is the order of the system of linear equations, as in LINPACK's first benchmark.
const order = 100

// system is a system of linear equations.
type system struct {
	matrix   [order][order]float64
	right    [order]float64
	solution [order]float64
}

func newSystem() *system { return &system{} }

// fill makes the system anew. Its solution is 1 everywhere.
func (s *system) fill() {
	state := uint32(1325)
	for i := range s.matrix {
		sum := 0.0
		for j := range s.matrix[i] {
			state = state*1664525 + 1013904223
			s.matrix[i][j] = float64(int32(state)) / math.MaxInt32
			if i == j {
				s.matrix[i][j] += order // so that no row has to be exchanged
			}
			sum += s.matrix[i][j]
		}
		s.right[i] = sum
	}
}

// solve solves the system by Gaussian elimination, and returns how many operations that
// are. They are two thirds of the third power of its order and twice the second.
func (s *system) solve() int64 {
	s.fill()
	for k := range order {
		for i := k + 1; i < order; i++ {
			factor := s.matrix[i][k] / s.matrix[k][k]
			above, row := s.matrix[k][k:], s.matrix[i][k:]
			for j := range row {
				row[j] -= factor * above[j]
			}
			s.right[i] -= factor * s.right[k]
		}
	}
	for i := order - 1; i >= 0; i-- {
		sum := s.right[i]
		for j := i + 1; j < order; j++ {
			sum -= s.matrix[i][j] * s.solution[j]
		}
		s.solution[i] = sum / s.matrix[i][i]
	}
	return 2*order*order*order/3 + 2*order*order
}

// mixRounds and mixOperations are how often the mix is repeated, and how many operations
// one round is: six of arithmetic, a comparison, a load and a store.
const (
	mixRounds     = 10_000
	mixOperations = 9
)

// mixResult has the result used, so that the work is done.
var mixResult uint64

// mix does integer operations as programs do: arithmetic that depends on what was before,
// a table, and a branch. It returns how many.
func mix() int64 {
	var table [256]uint64
	x, sum := uint64(88172645463325252), uint64(0)
	for range mixRounds {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		slot := &table[x&255]
		if *slot > sum {
			sum = *slot
		}
		*slot = sum + x
	}
	mixResult = sum
	return mixRounds * mixOperations
}
