// Package indexset has a set of small numbers, such as the indexes of tasks, whose lowest
// element is found quickly.
package indexset

import (
	"math"
	"math/bits"
)

// Set is a set of indexes. The zero value is empty.
type Set struct {
	words     []uint64
	firstWord int // no word below it has a bit
}

// Add puts an index into the set.
func (b *Set) Add(i int) {
	w := i / 64
	for len(b.words) <= w {
		b.words = append(b.words, 0)
	}
	b.words[w] |= 1 << (i % 64)
	b.firstWord = min(b.firstWord, w)
}

// Remove takes an index out that was in the set once.
func (b *Set) Remove(i int) { b.words[i/64] &^= 1 << (i % 64) }

// Has reports whether an index is in the set.
func (b *Set) Has(i int) bool { return i/64 < len(b.words) && b.words[i/64]>>(i%64)&1 == 1 }

// First returns the lowest index in the set, -1 when it is empty.
func (b *Set) First() int {
	for ; b.firstWord < len(b.words); b.firstWord++ {
		if w := b.words[b.firstWord]; w != 0 {
			return b.firstWord*64 + bits.TrailingZeros64(w)
		}
	}
	return -1
}

// After returns the lowest index in the set above i, -1 when there is none.
func (b *Set) After(i int) int {
	for i++; i < 64*len(b.words); i = i/64*64 + 64 {
		if w := b.words[i/64] >> (i % 64); w != 0 {
			return i + bits.TrailingZeros64(w)
		}
	}
	return -1
}

// Below counts the indexes in the set that are less than i.
func (b *Set) Below(i int) (n int) {
	for w := b.firstWord; w <= i/64 && w < len(b.words); w++ {
		word := b.words[w]
		if w == i/64 {
			word &= 1<<(i%64) - 1
		}
		n += bits.OnesCount64(word)
	}
	return n
}

// Nth is the index of which n in the set are less; -1 if there are no more than n.
func (b *Set) Nth(n int) int {
	for w := b.firstWord; w < len(b.words); w++ {
		word := b.words[w]
		if ones := bits.OnesCount64(word); n >= ones {
			n -= ones
			continue
		}
		for ; n > 0; n-- {
			word &= word - 1
		}
		return w*64 + bits.TrailingZeros64(word)
	}
	return -1
}

// Fill makes it the set of the indexes below n.
func (b *Set) Fill(n int) {
	b.firstWord, b.words = 0, make([]uint64, (n+63)/64)
	for w := range b.words {
		b.words[w] = math.MaxUint64
	}
	if n%64 != 0 {
		b.words[n/64] = 1<<(n%64) - 1
	}
}
