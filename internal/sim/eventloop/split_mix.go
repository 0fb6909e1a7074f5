package eventloop

import (
	"math"
	"time"
)

// goldenGamma is 2^64 divided by the golden ratio, and odd.
const goldenGamma = 0x9e3779b97f4a7c15

// mixBits is the finaliser of SplitMix64 (Steele, Lea, Flood, Fast Splittable
// Pseudorandom Number Generators, OOPSLA 2014).
func mixBits(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// SplitMix draws numbers: SplitMix64. The zero value is the one of seed 0. Package
// math/rand would do, but what is pure has none that the whole program shares.
type SplitMix uint64

// NewRand returns the numbers of a seed. Those of one seed and several purposes have
// nothing to do with each other.
func NewRand(seed, purpose uint64) *SplitMix {
	r := SplitMix(mixBits(seed) ^ mixBits(purpose^goldenGamma))
	return &r
}

// Uint64 draws from all numbers alike.
func (r *SplitMix) Uint64() uint64 {
	*r += goldenGamma
	return mixBits(uint64(*r))
}

// Float draws from [0, 1).
func (r *SplitMix) Float() float64 { return float64(r.Uint64()>>11) / (1 << 53) }

// Below draws from 0 to n-1; 0 where n is less than 2.
func (r *SplitMix) Below(n int) int {
	if n < 2 {
		return 0
	}
	return int(r.Uint64() % uint64(n)) // the bias of a number below 2^32 is one in 2^32
}

// Chance is true with that probability.
func (r *SplitMix) Chance(p float64) bool { return r.Float() < p }

// Between draws from a to b, alike; a where b is no more.
func (r *SplitMix) Between(a, b time.Duration) time.Duration {
	if b <= a {
		return a
	}
	return a + time.Duration(r.Float()*float64(b-a))
}

// Exponential draws how long it takes until something happens that happens so often on
// the mean.
func (r *SplitMix) Exponential(mean time.Duration) time.Duration {
	return clampDuration(-math.Log1p(-r.Float()) * float64(mean))
}

// LogNormal draws a number of which the logarithm is normal, with that median and
// standard deviation of the logarithm: the times of real jobs are nearly so.
func (r *SplitMix) LogNormal(median time.Duration, sigma float64) time.Duration {
	normal := math.Sqrt(-2*math.Log1p(-r.Float())) * math.Cos(2*math.Pi*r.Float()) // Box and Muller
	return clampDuration(float64(median) * math.Exp(sigma*normal))
}

// clampDuration is a duration of so many nanoseconds, or the longest.
func clampDuration(ns float64) time.Duration {
	if ns > math.MaxInt64/2 {
		return math.MaxInt64 / 2
	}
	return time.Duration(ns)
}
