package faults

import (
	"math/bits"
	"time"

	"github.com/roost-batch/roost/internal/sim/eventloop"
)

// SeededRand draws what is in a schedule of faults. It is the same for the same seed on
// every machine and with every version of Go.
type SeededRand struct{ numbers eventloop.SplitMix }

// NewRand returns the source of a seed.
func NewRand(seed uint64) *SeededRand { return &SeededRand{eventloop.SplitMix(seed)} }

// Uint64 is the next number.
func (r *SeededRand) Uint64() uint64 { return r.numbers.Uint64() }

// Split returns a source of its own, so that what is drawn from it does not move what is
// drawn here later.
func (r *SeededRand) Split() *SeededRand { return NewRand(r.Uint64()) }

// splitAside is a source of its own that moves nothing that is drawn here, not even once:
// for what is drawn besides.
func (r *SeededRand) splitAside(what uint64) *SeededRand { return NewRand(uint64(r.numbers) ^ what) }

// Intn is a number of [0, n), each as likely as the others; 0 where n is not positive.
func (r *SeededRand) Intn(n int) int {
	if n <= 0 {
		return 0
	}
	high, _ := bits.Mul64(r.Uint64(), uint64(n))
	return int(high)
}

// Between is a number of [low, high].
func (r *SeededRand) Between(low, high int) int { return low + r.Intn(high-low+1) }

// Skewed is a number of [low, high] of which the small are likelier: each power of two is
// as likely as the next.
func (r *SeededRand) Skewed(low, high int) int {
	span := uint(bits.Len(uint(max(high-low, 0))))
	return min(low+int(r.Uint64()>>1&(1<<uint(r.Intn(int(span)+1))-1)), high)
}

// OneIn reports true once in n.
func (r *SeededRand) OneIn(n int) bool { return r.Intn(n) == 0 }

// Duration is a time of [0, most), to the millisecond.
func (r *SeededRand) Duration(most time.Duration) time.Duration {
	return time.Duration(r.Intn(int(most/time.Millisecond))) * time.Millisecond
}

// SkewedDuration is a time of [low, high] of which the short are likelier: of each factor
// of two as many. It is a whole number of milliseconds.
func (r *SeededRand) SkewedDuration(low, high time.Duration) time.Duration {
	steps := bits.Len64(uint64(max(high/max(low, time.Millisecond), 1)))
	d := low << uint(r.Intn(steps))
	d += time.Duration(r.Intn(int(d/time.Millisecond)+1)) * time.Millisecond
	return min(d, high).Truncate(time.Millisecond)
}

// PickOne is one of a list, which is not empty.
func PickOne[T any](r *SeededRand, list []T) T { return list[r.Intn(len(list))] }
