package queue

import "math/bits"

// indexSet is a set of task indexes whose lowest element is found quickly.
type indexSet struct {
	words     []uint64
	firstWord int // no word below it has a bit
}

func (b *indexSet) set(i int) {
	w := i / 64
	for len(b.words) <= w {
		b.words = append(b.words, 0)
	}
	b.words[w] |= 1 << (i % 64)
	b.firstWord = min(b.firstWord, w)
}

func (b *indexSet) clear(i int) { b.words[i/64] &^= 1 << (i % 64) }

func (b *indexSet) has(i int) bool { return i/64 < len(b.words) && b.words[i/64]>>(i%64)&1 == 1 }

// first returns the lowest index in the set, -1 when it is empty.
func (b *indexSet) first() int {
	for ; b.firstWord < len(b.words); b.firstWord++ {
		if w := b.words[b.firstWord]; w != 0 {
			return b.firstWord*64 + bits.TrailingZeros64(w)
		}
	}
	return -1
}

// after returns the lowest index in the set above i, -1 when there is none.
func (b *indexSet) after(i int) int {
	for i++; i < 64*len(b.words); i = i/64*64 + 64 {
		if w := b.words[i/64] >> (i % 64); w != 0 {
			return i + bits.TrailingZeros64(w)
		}
	}
	return -1
}

// below counts the indexes in the set that are less than i.
func (b *indexSet) below(i int) (n int) {
	for w := b.firstWord; w <= i/64 && w < len(b.words); w++ {
		word := b.words[w]
		if w == i/64 {
			word &= 1<<(i%64) - 1
		}
		n += bits.OnesCount64(word)
	}
	return n
}

// nth is the index of which n in the set are less; -1 if there are no more than n.
func (b *indexSet) nth(n int) int {
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
