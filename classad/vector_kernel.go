package classad

import "math"

// The loops of compiled programs. Each compares the lanes of a vector with a constant or
// with another vector, and skips words in which no lane is live. They are written without
// generics or function values, so that the compiler turns the condition into a set bit
// and not into a jump.

// wordsEqual computes x == c for integers and numbers of dictionaries.
func wordsEqual(x *laneVector, c uint64, live, out *laneMask) {
	for w := range out {
		out[w] = 0
		if live[w] == 0 {
			continue
		}
		var m uint64
		for i, a := range (*[64]uint64)(x[w<<6:]) {
			if a == c {
				m |= 1 << i
			}
		}
		out[w] = m
	}
}

// intsEqual computes x == c.
func intsEqual(x *laneVector, c int64, live, out *laneMask) { wordsEqual(x, uint64(c), live, out) }

// intsLess computes x < c.
func intsLess(x *laneVector, c int64, live, out *laneMask) {
	for w := range out {
		out[w] = 0
		if live[w] == 0 {
			continue
		}
		var m uint64
		for i, a := range (*[64]uint64)(x[w<<6:]) {
			if int64(a) < c {
				m |= 1 << i
			}
		}
		out[w] = m
	}
}

// intsLessEqual computes x <= c.
func intsLessEqual(x *laneVector, c int64, live, out *laneMask) {
	for w := range out {
		out[w] = 0
		if live[w] == 0 {
			continue
		}
		var m uint64
		for i, a := range (*[64]uint64)(x[w<<6:]) {
			if int64(a) <= c {
				m |= 1 << i
			}
		}
		out[w] = m
	}
}

// realsEqual computes x == c.
func realsEqual(x *laneVector, c float64, live, out *laneMask) {
	for w := range out {
		out[w] = 0
		if live[w] == 0 {
			continue
		}
		var m uint64
		for i, a := range (*[64]uint64)(x[w<<6:]) {
			if math.Float64frombits(a) == c {
				m |= 1 << i
			}
		}
		out[w] = m
	}
}

// realsLess computes x < c.
func realsLess(x *laneVector, c float64, live, out *laneMask) {
	for w := range out {
		out[w] = 0
		if live[w] == 0 {
			continue
		}
		var m uint64
		for i, a := range (*[64]uint64)(x[w<<6:]) {
			if math.Float64frombits(a) < c {
				m |= 1 << i
			}
		}
		out[w] = m
	}
}

// realsLessEqual computes x <= c.
func realsLessEqual(x *laneVector, c float64, live, out *laneMask) {
	for w := range out {
		out[w] = 0
		if live[w] == 0 {
			continue
		}
		var m uint64
		for i, a := range (*[64]uint64)(x[w<<6:]) {
			if math.Float64frombits(a) <= c {
				m |= 1 << i
			}
		}
		out[w] = m
	}
}

// realsGreater computes x > c.
func realsGreater(x *laneVector, c float64, live, out *laneMask) {
	for w := range out {
		out[w] = 0
		if live[w] == 0 {
			continue
		}
		var m uint64
		for i, a := range (*[64]uint64)(x[w<<6:]) {
			if math.Float64frombits(a) > c {
				m |= 1 << i
			}
		}
		out[w] = m
	}
}

// realsGreaterEqual computes x >= c.
func realsGreaterEqual(x *laneVector, c float64, live, out *laneMask) {
	for w := range out {
		out[w] = 0
		if live[w] == 0 {
			continue
		}
		var m uint64
		for i, a := range (*[64]uint64)(x[w<<6:]) {
			if math.Float64frombits(a) >= c {
				m |= 1 << i
			}
		}
		out[w] = m
	}
}

// eachWordEqual computes x == y for integers and numbers of dictionaries.
func eachWordEqual(x *laneVector, y *laneVector, live, out *laneMask) {
	for w := range out {
		out[w] = 0
		if live[w] == 0 {
			continue
		}
		var m uint64
		y := (*[64]uint64)(y[w<<6:])
		for i, a := range (*[64]uint64)(x[w<<6:]) {
			if a == y[i] {
				m |= 1 << i
			}
		}
		out[w] = m
	}
}

// eachIntLess computes x < y.
func eachIntLess(x *laneVector, y *laneVector, live, out *laneMask) {
	for w := range out {
		out[w] = 0
		if live[w] == 0 {
			continue
		}
		var m uint64
		y := (*[64]uint64)(y[w<<6:])
		for i, a := range (*[64]uint64)(x[w<<6:]) {
			if int64(a) < int64(y[i]) {
				m |= 1 << i
			}
		}
		out[w] = m
	}
}

// eachIntLessEqual computes x <= y.
func eachIntLessEqual(x *laneVector, y *laneVector, live, out *laneMask) {
	for w := range out {
		out[w] = 0
		if live[w] == 0 {
			continue
		}
		var m uint64
		y := (*[64]uint64)(y[w<<6:])
		for i, a := range (*[64]uint64)(x[w<<6:]) {
			if int64(a) <= int64(y[i]) {
				m |= 1 << i
			}
		}
		out[w] = m
	}
}

// eachRealEqual computes x == y.
func eachRealEqual(x *laneVector, y *laneVector, live, out *laneMask) {
	for w := range out {
		out[w] = 0
		if live[w] == 0 {
			continue
		}
		var m uint64
		y := (*[64]uint64)(y[w<<6:])
		for i, a := range (*[64]uint64)(x[w<<6:]) {
			if math.Float64frombits(a) == math.Float64frombits(y[i]) {
				m |= 1 << i
			}
		}
		out[w] = m
	}
}

// eachRealLess computes x < y.
func eachRealLess(x *laneVector, y *laneVector, live, out *laneMask) {
	for w := range out {
		out[w] = 0
		if live[w] == 0 {
			continue
		}
		var m uint64
		y := (*[64]uint64)(y[w<<6:])
		for i, a := range (*[64]uint64)(x[w<<6:]) {
			if math.Float64frombits(a) < math.Float64frombits(y[i]) {
				m |= 1 << i
			}
		}
		out[w] = m
	}
}

// eachRealLessEqual computes x <= y.
func eachRealLessEqual(x *laneVector, y *laneVector, live, out *laneMask) {
	for w := range out {
		out[w] = 0
		if live[w] == 0 {
			continue
		}
		var m uint64
		y := (*[64]uint64)(y[w<<6:])
		for i, a := range (*[64]uint64)(x[w<<6:]) {
			if math.Float64frombits(a) <= math.Float64frombits(y[i]) {
				m |= 1 << i
			}
		}
		out[w] = m
	}
}
