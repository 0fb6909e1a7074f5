// Package adtext stores the texts of job ads, and of rows in lists of jobs, in little
// memory. The ads of jobs that a user submits differ in a name, a script and a few
// arguments; the rest, mostly the environment, is the same thousands of times.
//
// Naively equal attributes would be shared. But the environment is one attribute, and the
// name of the job is in the middle of it. So a text is stored as its differences from an
// earlier text, as a compressor with a dictionary does: bytes of its own, and ranges of
// the earlier text. A job of 2 kB then needs about 100 bytes.
package adtext

import (
	"encoding/binary"
	"strings"
)

// Packed is a text, stored as its differences from another. It is immutable. The zero
// value is the empty text.
type Packed struct {
	base *baseText // nil: edits is the text itself
	// of (literal, copy) pairs: the length of the literal, its bytes, the length of the
	// copy, and the distance of its place in the base from where the last copy would go
	// on; numbers are varints
	edits string
}

// Plain returns a text that shares nothing.
func Plain(text string) Packed { return Packed{edits: text} }

// Size returns how many bytes of memory the text has for itself.
func (t Packed) Size() int { return len(t.edits) }

// String returns the text.
func (t Packed) String() string {
	if t.base == nil {
		return t.edits
	}
	size := 0
	t.eachPiece(func(piece string) { size += len(piece) })
	var b strings.Builder
	b.Grow(size)
	t.eachPiece(func(piece string) { b.WriteString(piece) })
	return b.String()
}

// eachPiece calls f with the pieces of the text in their order.
func (t Packed) eachPiece(f func(piece string)) {
	at := 0 // in the base, where the last copy ended, and as much further as the literal is long
	for rest := t.edits; rest != ""; {
		var literal, length, distance uint64
		literal, rest = cutNumber(rest)
		f(rest[:literal])
		rest = rest[literal:]
		if rest == "" {
			return
		}
		length, rest = cutNumber(rest)
		distance, rest = cutNumber(rest)
		at += int(literal) + unfoldSign(distance)
		f(t.base.text[at : at+int(length)])
		at += int(length)
	}
}

// cutNumber reads a varint from the beginning of s.
func cutNumber(s string) (n uint64, rest string) {
	for i, shift := 0, 0; ; i, shift = i+1, shift+7 {
		n |= uint64(s[i]&0x7f) << shift
		if s[i] < 0x80 {
			return n, s[i+1:]
		}
	}
}

// foldSign maps small numbers of either sign to small numbers, and unfoldSign back.
func foldSign(n int) uint64 { return uint64(n<<1) ^ uint64(n>>63) }

func unfoldSign(n uint64) int { return int(n>>1) ^ -int(n&1) }

// baseText is a text from which others are stored as differences.
type baseText struct {
	text  string
	index []uint32 // hash of 8 bytes -> where they are in the text, plus one; nil while no text is compared
}

// windowBytes is how many equal bytes begin a copy, and windowStep how far the indexed
// windows of a base are apart.
const (
	windowBytes = 8
	windowStep  = 4
)

// buildIndex makes the index when the first text is compared.
func (b *baseText) buildIndex() {
	size := 256
	for size < len(b.text)/windowStep*2 {
		size *= 2
	}
	b.index = make([]uint32, size)
	for at := 0; at+windowBytes <= len(b.text); at += windowStep {
		if slot := &b.index[b.slotOf(window(b.text, at))]; *slot == 0 {
			*slot = uint32(at + 1)
		}
	}
}

// window returns the bytes of s from i on as a number.
func window(s string, i int) uint64 {
	_ = s[i+windowBytes-1]
	return uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
		uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
}

func (b *baseText) slotOf(w uint64) int {
	return int(w*0x9e3779b97f4a7c15>>32) & (len(b.index) - 1)
}

// appendEdits appends what makes text of the base's.
func (b *baseText) appendEdits(edits []byte, text string) []byte {
	if b.index == nil {
		b.buildIndex()
	}
	anchor, at := 0, 0 // the text before the anchor is written; at is as in eachPiece, without the literal
	for i := 0; i+windowBytes <= len(text); {
		from, ok := b.find(text, i, at+i-anchor)
		if !ok {
			i += 1 + (i-anchor)>>7 // a text without anything in common is passed quickly
			continue
		}
		for i > anchor && from > 0 && text[i-1] == b.text[from-1] {
			i, from = i-1, from-1
		}
		length := commonPrefix(text[i:], b.text[from:])
		edits = binary.AppendUvarint(edits, uint64(i-anchor))
		edits = append(edits, text[anchor:i]...)
		edits = binary.AppendUvarint(edits, uint64(length))
		edits = binary.AppendUvarint(edits, foldSign(from-(at+i-anchor)))
		i += length
		anchor, at = i, from+length
	}
	if anchor == len(text) {
		return edits
	}
	edits = binary.AppendUvarint(edits, uint64(len(text)-anchor))
	return append(edits, text[anchor:]...)
}

// find looks for the window of a text at i in the base, first where it is expected.
func (b *baseText) find(text string, i, expected int) (from int, ok bool) {
	w := window(text, i)
	if expected+windowBytes <= len(b.text) && window(b.text, expected) == w {
		return expected, true
	}
	from = int(b.index[b.slotOf(w)]) - 1
	return from, from >= 0 && window(b.text, from) == w
}

// commonPrefix returns the number of bytes with which both begin.
func commonPrefix(a, b string) int {
	n := min(len(a), len(b))
	i := 0
	for i+windowBytes <= n && window(a, i) == window(b, i) {
		i += windowBytes
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}
