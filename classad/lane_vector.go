package classad

import mathbits "math/bits"

// lanes is the number of rows that a program processes at once.
const lanes = 256

// laneVector has one value for each lane: an integer, the bits of a real, or a number of
// a dictionary.
type laneVector [lanes]uint64

// laneMask has one bit for each lane.
type laneMask [lanes / 64]uint64

func (m *laneMask) isEmpty() bool { return m[0]|m[1]|m[2]|m[3] == 0 }

func (m *laneMask) count() int {
	n := 0
	for _, w := range m {
		n += onesCount(w)
	}
	return n
}

// each calls f for every lane that is set.
func (m *laneMask) each(f func(lane int)) {
	for i, w := range m {
		for ; w != 0; w &= w - 1 {
			f(i<<6 + trailingZeros(w))
		}
	}
}

func (m *laneMask) remove(other *laneMask) {
	for w := range m {
		m[w] &^= other[w]
	}
}

func (m *laneMask) invert() {
	for w := range m {
		m[w] = ^m[w]
	}
}

func (m *laneMask) set(lane int) { m[lane>>6] |= 1 << (lane & 63) }

// firstLanes returns the mask of the first n lanes.
func firstLanes(n int) (m laneMask) {
	for i := range m {
		switch k := n - i<<6; {
		case k >= 64:
			m[i] = ^uint64(0)
		case k > 0:
			m[i] = 1<<k - 1
		}
	}
	return m
}

func onesCount(w uint64) int { return mathbits.OnesCount64(w) }

func trailingZeros(w uint64) int { return mathbits.TrailingZeros64(w) }
