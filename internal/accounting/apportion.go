package accounting

import (
	"math"
	"math/bits"
)

// mulDiv returns floor(a*b/c) for amounts that are not negative, without overflow. A
// result beyond an int64 is the greatest int64.
func mulDiv(a, b, c int64) int64 {
	if a <= 0 || b <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, uint64(c))
	return int64(min(q, math.MaxInt64))
}

// share returns the part of total for [begin, end) of the time [from, to), which has to
// hold it. It is a difference of rounded running sums. So the shares of
// periods that follow each other sum to total exactly, which shares rounded one by one do
// not.
func share(total int64, from, to, begin, end Millis) int64 {
	if to <= from {
		return total
	}
	whole := int64(to - from)
	return mulDiv(total, int64(end-from), whole) - mulDiv(total, int64(begin-from), whole)
}

// WaitBucket returns the class of a wait in milliseconds. Class 0 is less than 1 s, and
// class n is from 2^(n-1) s until before 2^n s.
func WaitBucket(wait int64) int {
	if wait < 0 {
		return 0
	}
	return bits.Len64(uint64(wait / 1000))
}

// SizeBucket returns the class of an amount of CPU: log2 of the cores, rounded up.
func SizeBucket(milliCPU int64) int {
	if milliCPU <= 1000 {
		return 0
	}
	return bits.Len64(uint64((milliCPU+999)/1000 - 1))
}
