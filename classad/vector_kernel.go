package classad

import "math"

// The loops of compiled programs: each compares the lanes of a vector with a constant or
// with those of another, and skips words in which no lane is live. They are written out,
// without generics or function values, so that the compiler turns the condition into a
// set bit and not into a jump.

// wordsEqual is x == c for integers and numbers of dictionaries.
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

// intsEqual is x == c.
func intsEqual(x *laneVector, c int64, live, out *laneMask) { wordsEqual(x, uint64(c), live, out) }

// intsLess is x < c.
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

// intsLessEqual is x <= c.
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

// realsEqual is x == c.
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

// realsLess is x < c.
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

// realsLessEqual is x <= c.
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

// realsGreater is x > c.
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

// realsGreaterEqual is x >= c.
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

// eachWordEqual is x == y for integers and numbers of dictionaries.
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

// eachIntLess is x < y.
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

// eachIntLessEqual is x <= y.
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

// eachRealEqual is x == y.
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

// eachRealLess is x < y.
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

// eachRealLessEqual is x <= y.
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
