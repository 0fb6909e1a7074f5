package chunktracker

import "math/bits"

// randomSource is a SplitMix64 generator: the same seed makes the same plans.
type randomSource struct{ state uint64 }

// next returns 64 random bits.
func (r *randomSource) next() uint64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below returns a random number below n.
func (r *randomSource) below(n int) int {
	high, _ := bits.Mul64(r.next(), uint64(n))
	return int(high)
}
