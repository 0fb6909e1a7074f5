package faults

import (
	"math/bits"
	"time"

	"github.com/roost-batch/roost/internal/sim/eventloop"
)

// SeededRand draws the contents of a fault schedule. A seed gives the same numbers on
// every machine and with every version of Go.
type SeededRand struct{ numbers eventloop.SplitMix }

// NewRand returns the generator of a seed.
func NewRand(seed uint64) *SeededRand { return &SeededRand{eventloop.SplitMix(seed)} }

// Uint64 returns the next number.
func (r *SeededRand) Uint64() uint64 { return r.numbers.Uint64() }

// Split returns a separate generator. What is drawn from it does not change what r draws
// later.
func (r *SeededRand) Split() *SeededRand { return NewRand(r.Uint64()) }

// splitAside returns a separate generator without drawing from r. It serves draws that
// must not change the other draws of a seed.
func (r *SeededRand) splitAside(what uint64) *SeededRand { return NewRand(uint64(r.numbers) ^ what) }

// Intn draws from [0, n), uniformly; it returns 0 if n is not positive.
func (r *SeededRand) Intn(n int) int {
	if n <= 0 {
		return 0
	}
	high, _ := bits.Mul64(r.Uint64(), uint64(n))
	return int(high)
}

// Between draws from [low, high], uniformly.
func (r *SeededRand) Between(low, high int) int { return low + r.Intn(high-low+1) }

// Skewed draws from [low, high] with a bias to small numbers. Each power of two is
// equally likely.
func (r *SeededRand) Skewed(low, high int) int {
	span := uint(bits.Len(uint(max(high-low, 0))))
	return min(low+int(r.Uint64()>>1&(1<<uint(r.Intn(int(span)+1))-1)), high)
}

// OneIn returns true once in n calls on average.
func (r *SeededRand) OneIn(n int) bool { return r.Intn(n) == 0 }

// Duration draws from [0, most) in whole milliseconds.
func (r *SeededRand) Duration(most time.Duration) time.Duration {
	return time.Duration(r.Intn(int(most/time.Millisecond))) * time.Millisecond
}

// SkewedDuration draws from [low, high] with a bias to short durations. Each power of two
// is equally likely. The result is in whole milliseconds.
func (r *SeededRand) SkewedDuration(low, high time.Duration) time.Duration {
	steps := bits.Len64(uint64(max(high/max(low, time.Millisecond), 1)))
	d := low << uint(r.Intn(steps))
	d += time.Duration(r.Intn(int(d/time.Millisecond)+1)) * time.Millisecond
	return min(d, high).Truncate(time.Millisecond)
}

// PickOne draws an element of a list, which must not be empty.
func PickOne[T any](r *SeededRand, list []T) T { return list[r.Intn(len(list))] }
