package classad

import (
	"slices"
	"strings"
)

// column is the number of the column of an attribute, which is made if it is not there; ok is false if there are too many.
func (t *Table) column(name string) (c int, ok bool) {
	var buf [64]byte
	key := append(buf[:0], name...)
	for i := range key {
		key[i] = lower(key[i])
	}
	if c, ok := t.byName[string(key)]; ok {
		return c, true
	}
	if len(t.attrs) == maxColumns {
		return 0, false
	}
	c = len(t.attrs)
	t.attrs = append(t.attrs, attribute{name: strings.Clone(name), hash: hashName(name)})
	t.byName[string(key)] = c
	return c, true
}

// fill gives all segments columns for the attributes that the schema has got since it was last called.
func (t *Table) fill() {
	first := t.filled
	if t.filled = len(t.attrs); first == t.filled {
		return
	}
	for _, s := range t.segments[1:] {
		s.widen(t.attrs)
	}
	t.reshaped = true
	for r := range t.rows {
		if p := &t.rows[r]; p.seg != nil && !p.seg.loose && !t.refresh(p, first) {
			t.place(Row(r))
		}
	}
}

// rebuild places all rows anew, with new dictionaries, and columns for nothing but the rows' own requirements: queries ask for what they need.
func (t *Table) rebuild() {
	t.epoch++
	t.changes, t.asked = 0, 0
	t.attrs, t.byName, t.templates, t.policyColumns = nil, map[string]int{}, nil, nil
	for _, name := range t.policy {
		c, _ := t.column(name)
		t.policyColumns = append(t.policyColumns, c)
	}
	t.shapes, t.reshaped = map[string]*segment{}, false
	t.loose = &segment{loose: true}
	t.segments = []*segment{t.loose}
	t.texts, t.others = newDictionary(), newDictionary()
	t.nowhere = &frame{ad: New()}
	t.filled = len(t.attrs)
	for r := range t.rows {
		t.rows[r].seg = nil
	}
	for r := range t.rows {
		if t.rows[r].ad != nil && t.rows[r].seg == nil {
			t.place(Row(r))
		}
	}
	t.bound = fewValues
}

// tidy builds the table anew if it keeps much that nobody needs any more: values of dictionaries, columns that only queries of long ago
// asked for, or kinds of rows without rows while there is no room for new ones.
func (t *Table) tidy() {
	t.asked++
	values := len(t.texts.values) + len(t.others.values)
	full := len(t.segments) >= maxSegments || len(t.templates) >= maxTemplates
	switch {
	case len(t.attrs) > t.columns:
		if t.columns = min(2*t.columns, maxColumns); t.asked > 64*fewColumns {
			t.columns = fewColumns
		}
		t.rebuild()
	case values > t.bound && values > 2*t.inUse():
		t.rebuild()
	case values > t.bound:
		t.bound = 2 * values
	case full && len(t.loose.rows) > 0 && t.changes > 4*t.Len()+fewValues:
		t.rebuild()
	}
}

// inUse is how many values of the dictionaries rows can have at most.
func (t *Table) inUse() int {
	n := 0
	for _, s := range t.segments {
		for c := range s.cols {
			n += len(s.rows) * s.cols[c].numbered()
		}
	}
	return n
}

// segment finds or makes the segment for t.cells.
func (t *Table) segment() *segment {
	if t.reshaped {
		t.rekey()
	}
	words := len(t.attrs)/64 + 1
	tells, there := t.tells.cleared(words), t.there.cleared(words)
	for _, c := range t.policyColumns {
		tells.set(c, true)
	}
	for c := range t.attrs {
		if x := &t.cells[c]; x.class == ofExpr {
			for _, name := range x.form.names {
				tells.set(name, true)
			}
		}
	}
	key := t.key[:0]
	for c := range t.attrs {
		x := &t.cells[c]
		there.set(c, tells.has(c) && x.there)
		key = shape(key, t.classFor(c), x.form, there.has(c))
	}
	t.key, t.tells, t.there = key, tells, there
	if s := t.shapes[string(key)]; s != nil {
		return s
	}
	if len(t.segments) >= maxSegments {
		return t.loose
	}
	s := &segment{tells: slices.Clone(tells), there: slices.Clone(there), cols: make([]column, len(t.attrs))}
	for c := range s.cols {
		s.cols[c] = newColumn(t.classFor(c), t.cells[c].form)
	}
	t.segments = append(t.segments, s)
	t.shapes[string(key)] = s
	return s
}

// classFor is the class of a column that is to hold t.cells[c].
func (t *Table) classFor(c int) class {
	if k := t.cells[c].class; k != ofNothing {
		return k
	}
	return t.attrs[c].usual
}

// shape adds one column to the key of a segment.
func shape(key []byte, k class, form *template, there bool) []byte {
	if there {
		k |= 0x80
	}
	key = append(key, byte(k))
	if form != nil {
		key = append(key, byte(form.id), byte(form.id>>8))
	}
	return key
}

// firstValue notes the class of the first value of an attribute, which makes columns without values ones of that class.
func (t *Table) firstValue(c int, k class) {
	t.attrs[c].usual = k
	for _, s := range t.segments {
		if c < len(s.cols) && s.cols[c].class == ofNothing {
			s.cols[c].become(k)
			s.shaped++
		}
	}
	t.reshaped = true
}

// rekey finds the shapes of all segments anew.
func (t *Table) rekey() {
	t.reshaped = false
	clear(t.shapes)
	for _, s := range t.segments[1:] {
		key := t.key[:0]
		for c := range s.cols {
			key = shape(key, s.cols[c].class, s.cols[c].form, s.there.has(c))
		}
		t.key = key
		t.shapes[string(key)] = s
	}
}
