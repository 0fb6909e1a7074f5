package queue

import "math/bits"

// bitmap is a set of task indexes. Finding the lowest costs nothing while they are taken in order: low says where to begin.
type bitmap struct {
	words []uint64
	low   int // no bit is set in a word before this one
	count int
}

func newBitmap(n int) bitmap { return bitmap{words: make([]uint64, (n+63)/64)} }

func (b *bitmap) has(i int) bool { return b.words[i/64]>>(i%64)&1 != 0 }

func (b *bitmap) set(i int) {
	if !b.has(i) {
		b.words[i/64] |= 1 << (i % 64)
		b.count++
		b.low = min(b.low, i/64)
	}
}

func (b *bitmap) clear(i int) {
	if b.has(i) {
		b.words[i/64] &^= 1 << (i % 64)
		b.count--
	}
}

// first returns the lowest index in the set, which must not be empty.
func (b *bitmap) first() int {
	for b.words[b.low] == 0 {
		b.low++
	}
	return b.low*64 + bits.TrailingZeros64(b.words[b.low])
}
