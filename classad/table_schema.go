package classad

import (
	"slices"
	"strings"
)

// column returns the number of an attribute's column and adds a missing one. ok is false
// if there are too many.
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
	t.attrs = append(t.attrs, schemaColumn{name: strings.Clone(name), hash: hashName(name)})
	t.byName[string(key)] = c
	return c, true
}

// addNewColumns adds columns to all segments for attributes that are new in the schema.
func (t *Table) addNewColumns() {
	first := t.filledColumns
	if t.filledColumns = len(t.attrs); first == t.filledColumns {
		return
	}
	for _, s := range t.segments[1:] {
		s.addColumns(t.attrs)
	}
	t.reshaped = true
	for r := range t.rows {
		if p := &t.rows[r]; p.segment != nil && !p.segment.rowByRow && !t.updateInPlace(p, first) {
			t.placeRow(RowID(r))
		}
	}
}

// rebuild places all rows again, with new dictionaries. It has columns only for the rows'
// own requirements: queries add the columns that they need.
func (t *Table) rebuild() {
	t.epoch++
	t.placements, t.queriesRun = 0, 0
	t.attrs, t.byName, t.templates, t.policyColumns = nil, map[string]int{}, nil, nil
	for _, name := range t.policy {
		c, _ := t.column(name)
		t.policyColumns = append(t.policyColumns, c)
	}
	t.shapes, t.reshaped = map[string]*tableSegment{}, false
	t.rowByRow = &tableSegment{rowByRow: true}
	t.segments = []*tableSegment{t.rowByRow}
	t.strings, t.otherValues = newDictionary(), newDictionary()
	t.outerScope = &nameScope{ad: New()}
	t.filledColumns = len(t.attrs)
	for r := range t.rows {
		t.rows[r].segment = nil
	}
	for r := range t.rows {
		if t.rows[r].ad != nil && t.rows[r].segment == nil {
			t.placeRow(RowID(r))
		}
	}
	t.maxValues = fewValues
}

// rebuildIfWasteful rebuilds the table if it stores much that is unused. That is values
// of dictionaries, columns that no recent query used, or empty segments while there is no
// room for new ones.
func (t *Table) rebuildIfWasteful() {
	t.queriesRun++
	values := len(t.strings.values) + len(t.otherValues.values)
	full := len(t.segments) >= maxSegments || len(t.templates) >= maxTemplates
	switch {
	case len(t.attrs) > t.maxColumnCount:
		if t.maxColumnCount = min(2*t.maxColumnCount, maxColumns); t.queriesRun > 64*fewColumns {
			t.maxColumnCount = fewColumns
		}
		t.rebuild()
	case values > t.maxValues && values > 2*t.usedValues():
		t.rebuild()
	case values > t.maxValues:
		t.maxValues = 2 * values
	case full && len(t.rowByRow.rows) > 0 && t.placements > 4*t.Len()+fewValues:
		t.rebuild()
	}
}

// usedValues returns the most dictionary values that the rows can have.
func (t *Table) usedValues() int {
	n := 0
	for _, s := range t.segments {
		for c := range s.cols {
			n += len(s.rows) * s.cols[c].numbersPerRow()
		}
	}
	return n
}

// segment returns the segment for t.cells and adds a missing one.
func (t *Table) segment() *tableSegment {
	if t.reshaped {
		t.rekeySegments()
	}
	words := len(t.attrs)/64 + 1
	checked, there := t.checkedAttrs.reset(words), t.presentAttrs.reset(words)
	for _, c := range t.policyColumns {
		checked.set(c, true)
	}
	for c := range t.attrs {
		if x := &t.cells[c]; x.class == classExpr {
			for _, name := range x.template.names {
				checked.set(name, true)
			}
		}
	}
	key := t.key[:0]
	for c := range t.attrs {
		x := &t.cells[c]
		there.set(c, checked.has(c) && x.present)
		key = appendShapeKey(key, t.classFor(c), x.template, there.has(c))
	}
	t.key, t.checkedAttrs, t.presentAttrs = key, checked, there
	if s := t.shapes[string(key)]; s != nil {
		return s
	}
	if len(t.segments) >= maxSegments {
		return t.rowByRow
	}
	s := &tableSegment{checkedAttrs: slices.Clone(checked), presentAttrs: slices.Clone(there),
		cols: make([]segmentColumn, len(t.attrs))}
	for c := range s.cols {
		s.cols[c] = newColumn(t.classFor(c), t.cells[c].template)
	}
	t.segments = append(t.segments, s)
	t.shapes[string(key)] = s
	return s
}

// classFor returns the class of a column that must hold t.cells[c].
func (t *Table) classFor(c int) columnClass {
	if k := t.cells[c].class; k != classNone {
		return k
	}
	return t.attrs[c].usualClass
}

// appendShapeKey adds one column to the key of a segment.
func appendShapeKey(key []byte, k columnClass, form *exprTemplate, there bool) []byte {
	if there {
		k |= 0x80
	}
	key = append(key, byte(k))
	if form != nil {
		key = append(key, byte(form.id), byte(form.id>>8))
	}
	return key
}

// firstValue records the class of the first value of an attribute, and gives it to
// columns without values.
func (t *Table) firstValue(c int, k columnClass) {
	t.attrs[c].usualClass = k
	for _, s := range t.segments {
		if c < len(s.cols) && s.cols[c].class == classNone {
			s.cols[c].setClass(k)
			s.shapeVersion++
		}
	}
	t.reshaped = true
}

// rekeySegments computes the keys of all segments again.
func (t *Table) rekeySegments() {
	t.reshaped = false
	clear(t.shapes)
	for _, s := range t.segments[1:] {
		key := t.key[:0]
		for c := range s.cols {
			key = appendShapeKey(key, s.cols[c].class, s.cols[c].template, s.presentAttrs.has(c))
		}
		t.key = key
		t.shapes[string(key)] = s
	}
}
