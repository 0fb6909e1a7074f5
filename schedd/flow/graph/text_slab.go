package graph

import "hash/maphash"

// slabPage is the size of a page of texts. No text crosses the end of a page.
const slabPage = 1 << 20

// maxSlabPages bounds the texts of one slab: an offset has 32 bits.
const maxSlabPages = 1 << 12

// MaxTextSize bounds one text in bytes: the pages of a slab have this size.
const MaxTextSize = slabPage

// textSlab holds many short texts in few pages.
type textSlab struct{ pages [][]byte }

// add copies a text into the slab and returns its place. It reports false where there is
// no room for it.
func (s *textSlab) add(text []byte) (start uint32, ok bool) {
	last := len(s.pages) - 1
	if last < 0 || len(s.pages[last])+len(text) > slabPage {
		if len(text) > slabPage || len(s.pages) == maxSlabPages {
			return 0, false
		}
		page := []byte(nil) // the first one grows: most flows are small
		if last >= 0 {
			page = make([]byte, 0, slabPage)
		}
		s.pages, last = append(s.pages, page), last+1
	}
	start = uint32(last)*slabPage + uint32(len(s.pages[last]))
	s.pages[last] = append(s.pages[last], text...)
	return start, true
}

func (s *textSlab) text(start, size uint32) []byte {
	if size == 0 {
		return nil
	}
	page, at := s.pages[start/slabPage], start%slabPage
	return page[at : at+size : at+size]
}

// hashIndex finds numbers by the hash of a text. It does not hold the texts. A slot has
// the hash above the number plus one; 0 is free. The hash alone gives the place of a
// slot, so an index that grows reads no text. The seed is random: no file can be written
// so that all its names collide.
type hashIndex struct {
	seed  maphash.Seed
	slots []uint64
	used  int
}

const minSlots = 1 << 6

func newHashIndex() hashIndex {
	return hashIndex{seed: maphash.MakeSeed(), slots: make([]uint64, minSlots)}
}

// hash is the hash of a text, of 32 bits.
func (x *hashIndex) hash(text []byte) uint64 { return maphash.Bytes(x.seed, text) >> 32 }

// find returns the number whose hash and text are equal. It also returns the slot where
// such a number belongs.
func (x *hashIndex) find(hash uint64, isEqual func(number uint32) bool) (number uint32, slot int, ok bool) {
	mask := uint64(len(x.slots) - 1)
	for at := hash & mask; ; at = (at + 1) & mask {
		v := x.slots[at]
		if v == 0 {
			return 0, int(at), false
		}
		if v>>32 == hash && isEqual(uint32(v)-1) {
			return uint32(v) - 1, int(at), true
		}
	}
}

// put fills the slot that find has returned.
func (x *hashIndex) put(slot int, hash uint64, number uint32) {
	x.slots[slot] = hash<<32 | uint64(number+1)
	if x.used++; x.used*4 < len(x.slots)*3 {
		return
	}
	old := x.slots
	x.slots = make([]uint64, 2*len(old))
	mask := uint64(len(x.slots) - 1)
	for _, v := range old {
		if v == 0 {
			continue
		}
		at := v >> 32 & mask
		for x.slots[at] != 0 {
			at = (at + 1) & mask
		}
		x.slots[at] = v
	}
}

// TextID is the number of a text in a table; 0 is the empty text.
type TextID uint32

// TextTable holds each text once.
type TextTable struct {
	slab  textSlab
	index hashIndex
	spans []textSpan
}

type textSpan struct{ start, size uint32 }

// NewTextTable returns a table with the empty text.
func NewTextTable() *TextTable {
	return &TextTable{index: newHashIndex(), spans: make([]textSpan, 1)}
}

// Add returns the number of a text, which is copied if it is new. It reports false where
// there is no room for it.
func (t *TextTable) Add(text []byte) (TextID, bool) {
	if len(text) == 0 {
		return 0, true
	}
	hash := t.index.hash(text)
	number, slot, ok := t.index.find(hash, func(n uint32) bool { return string(t.Bytes(TextID(n))) == string(text) })
	if ok {
		return TextID(number), true
	}
	start, ok := t.slab.add(text)
	if !ok {
		return 0, false
	}
	number = uint32(len(t.spans))
	t.spans = append(t.spans, textSpan{start, uint32(len(text))})
	t.index.put(slot, hash, number)
	return TextID(number), true
}

// Find returns the number of a text that the table has.
func (t *TextTable) Find(text []byte) (TextID, bool) {
	if len(text) == 0 {
		return 0, true
	}
	number, _, ok := t.index.find(t.index.hash(text), func(n uint32) bool {
		return string(t.Bytes(TextID(n))) == string(text)
	})
	return TextID(number), ok
}

// Bytes returns a text, which must not be changed.
func (t *TextTable) Bytes(id TextID) []byte {
	s := t.spans[id]
	return t.slab.text(s.start, s.size)
}

// Text returns a text.
func (t *TextTable) Text(id TextID) string { return string(t.Bytes(id)) }

// Len is the number of texts, with the empty one.
func (t *TextTable) Len() int { return len(t.spans) }
