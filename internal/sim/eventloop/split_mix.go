package eventloop

import (
	"math"
	"time"
)

// goldenGamma is 2^64 divided by the golden ratio, made odd.
const goldenGamma = 0x9e3779b97f4a7c15

// mixBits is the finaliser of SplitMix64 (Steele, Lea, Flood, Fast Splittable
// Pseudorandom Number Generators, OOPSLA 2014).
func mixBits(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// SplitMix is the random number generator SplitMix64. The zero value has seed 0. Unlike
// package math/rand it has no state that the whole program shares, so its callers stay
// pure.
type SplitMix uint64

// NewRand returns the generator of a seed and purpose. Generators of one seed with
// different purposes are independent.
func NewRand(seed, purpose uint64) *SplitMix {
	r := SplitMix(mixBits(seed) ^ mixBits(purpose^goldenGamma))
	return &r
}

// Uint64 draws a uniform number.
func (r *SplitMix) Uint64() uint64 {
	*r += goldenGamma
	return mixBits(uint64(*r))
}

// Float draws from [0, 1), uniformly.
func (r *SplitMix) Float() float64 { return float64(r.Uint64()>>11) / (1 << 53) }

// Below draws from 0 to n-1, uniformly; it returns 0 if n is less than 2.
func (r *SplitMix) Below(n int) int {
	if n < 2 {
		return 0
	}
	return int(r.Uint64() % uint64(n)) // the bias for n below 2^32 is at most one in 2^32
}

// Chance returns true with probability p.
func (r *SplitMix) Chance(p float64) bool { return r.Float() < p }

// Between draws from a to b, uniformly; it returns a if b is not greater.
func (r *SplitMix) Between(a, b time.Duration) time.Duration {
	if b <= a {
		return a
	}
	return a + time.Duration(r.Float()*float64(b-a))
}

// Exponential draws the time until the next event of a Poisson process with that mean
// interval.
func (r *SplitMix) Exponential(mean time.Duration) time.Duration {
	return clampDuration(-math.Log1p(-r.Float()) * float64(mean))
}

// LogNormal draws from the log-normal distribution, which run times of real jobs nearly
// follow. sigma is the standard deviation of the logarithm.
func (r *SplitMix) LogNormal(median time.Duration, sigma float64) time.Duration {
	normal := math.Sqrt(-2*math.Log1p(-r.Float())) * math.Cos(2*math.Pi*r.Float()) // Box and Muller
	return clampDuration(float64(median) * math.Exp(sigma*normal))
}

// clampDuration returns a duration of ns nanoseconds, or the longest one.
func clampDuration(ns float64) time.Duration {
	if ns > math.MaxInt64/2 {
		return math.MaxInt64 / 2
	}
	return time.Duration(ns)
}
