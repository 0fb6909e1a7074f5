package chunktracker

import "math/bits"

// ChunkSet is a set of chunks of a blob: chunk i is bit i%64 of word i/64.
type ChunkSet []uint64

const wordBits = 64

// NewChunkSet returns an empty set for chunks below n.
func NewChunkSet(n int) ChunkSet { return make(ChunkSet, (n+wordBits-1)/wordBits) }

// Has reports whether chunk i is in the set.
func (s ChunkSet) Has(i int) bool { return i/wordBits < len(s) && s[i/wordBits]>>(i%wordBits)&1 != 0 }

// Add puts a chunk into the set.
func (s ChunkSet) Add(i int) { s[i/wordBits] |= 1 << (i % wordBits) }

// Remove takes a chunk out of the set.
func (s ChunkSet) Remove(i int) { s[i/wordBits] &^= 1 << (i % wordBits) }

// Len counts the chunks in the set.
func (s ChunkSet) Len() (n int) {
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// Fill puts all chunks below n into the set.
func (s ChunkSet) Fill(n int) {
	for i := range s {
		s[i] = ^uint64(0)
		if above := (i+1)*wordBits - n; above > 0 {
			s[i] >>= above
		}
	}
}

// Encode returns the set as it is sent: chunk i is bit i%8 of byte i/8.
func (s ChunkSet) Encode(n int) []byte {
	b := make([]byte, (n+7)/8)
	for i := range b {
		b[i] = byte(s[i/8] >> (i % 8 * 8))
	}
	return b
}

// DecodeChunkSet reads what Encode wrote for n chunks. What is missing is not in the set,
// and chunks that the blob does not have are left out.
func DecodeChunkSet(b []byte, n int) ChunkSet {
	s := NewChunkSet(n)
	for i := range min(len(b), (n+7)/8) {
		s[i/8] |= uint64(b[i]) << (i % 8 * 8)
	}
	all := NewChunkSet(n)
	all.Fill(n)
	for i := range s {
		s[i] &= all[i]
	}
	return s
}

// each calls f with each chunk of a word of a set.
func each(word int, w uint64, f func(i int)) {
	for ; w != 0; w &= w - 1 {
		f(word*wordBits + bits.TrailingZeros64(w))
	}
}
