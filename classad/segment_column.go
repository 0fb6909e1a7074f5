package classad

import "slices"

// columnClass is what a column holds in one segment of a table.
type columnClass uint8

const (
	classNone   columnClass = iota // no row of the segment has a value
	classBool                      // Booleans
	classInt                       // Integers
	classReal                      // Reals
	classString                    // Strings, as numbers of the table's dictionary
	classOther                     // lists, ads and times, as numbers of the table's other dictionary
	// the same expression for all rows but for its literals, which depends on the other
	// side of a match
	classExpr
)

// classOf is the class of columns that hold values of a kind.
func classOf(k ValueKind) columnClass {
	switch k {
	case Boolean:
		return classBool
	case Integer:
		return classInt
	case Real:
		return classReal
	case String:
		return classString
	case Undefined, Error:
		return classNone
	}
	return classOther
}

// rowSet is a set of rows.
type rowSet []uint64

func (b rowSet) has(i int) bool { return b[i>>6]>>(i&63)&1 != 0 }
func (b rowSet) set(i int, on bool) {
	if on {
		b[i>>6] |= 1 << (i & 63)
	} else {
		b[i>>6] &^= 1 << (i & 63)
	}
}

// each calls f for every row of the set.
func (b rowSet) each(f func(i int)) {
	for i, w := range b {
		for ; w != 0; w &= w - 1 {
			f(i<<6 + trailingZeros(w))
		}
	}
}

// reset is an empty set with room for so many words.
func (b rowSet) reset(words int) rowSet {
	b = slices.Grow(b[:0], words)[:words]
	clear(b)
	return b
}

// segmentColumn holds one attribute of a segment's rows. A row has a value, or is
// UNDEFINED, or is ERROR.
type segmentColumn struct {
	class          columnClass
	cells          []uint64 // integers as they are, reals as their bits, texts and others as numbers
	bools          rowSet   // of truths
	undefined      rowSet
	errors         rowSet
	undefinedCount int // rows that are UNDEFINED
	errorCount     int // rows that are ERROR
	template       *exprTemplate
	params         []segmentColumn // the literals of form
	index          *columnIndex    // the rows sorted by value; nil until that pays
	indexUses      int             // how often an order would have helped
}

func newColumn(k columnClass, form *exprTemplate) segmentColumn {
	col := segmentColumn{class: k, template: form}
	if form != nil {
		for _, k := range form.kinds {
			col.params = append(col.params, newColumn(k, nil))
		}
	}
	return col
}

// tableCell is one row's part of a column.
type tableCell struct {
	class    columnClass // nothing for UNDEFINED and ERROR
	bits     uint64
	isError  bool // ERROR
	present  bool // the ad has the attribute
	template *exprTemplate
	params   []Value
}

// value is the cell's value.
func (c *segmentColumn) value(t *Table, i int) Value {
	switch {
	case c.class == classNone || c.undefined.has(i):
		if c.errorCount > 0 && c.errors.has(i) {
			return ErrorValue()
		}
		return Value{}
	case c.errors.has(i):
		return ErrorValue()
	}
	switch c.class {
	case classBool:
		return BoolValue(c.bools.has(i))
	case classInt:
		return Value{kind: Integer, num: c.cells[i]}
	case classReal:
		return Value{kind: Real, num: c.cells[i]}
	case classString:
		return t.strings.values[c.cells[i]]
	}
	return t.otherValues.values[c.cells[i]]
}

// accepts says whether the column can hold a cell without becoming another.
func (c *segmentColumn) accepts(x *tableCell) bool {
	if x.class == classNone {
		return c.class != classExpr
	}
	return c.class == x.class && c.template == x.template
}

// setCell writes a cell that the column takes.
func (c *segmentColumn) setCell(t *Table, i int, x *tableCell) {
	if c.class == classExpr {
		for k := range c.params {
			var p tableCell
			t.setValueCell(&p, x.params[k])
			c.params[k].setCell(t, i, &p)
		}
		return
	}
	undef := x.class == classNone && !x.isError
	if c.index != nil && !c.index.dirty.has(i) &&
		(undef || x.isError || c.undefined.has(i) || c.errors.has(i) || c.cells[i] != x.bits) {
		c.index.markChanged(i)
	}
	if undef != c.undefined.has(i) {
		c.undefined.set(i, undef)
		c.undefinedCount += boolDelta(undef)
	}
	if x.isError != c.errors.has(i) {
		c.errors.set(i, x.isError)
		c.errorCount += boolDelta(x.isError)
	}
	switch c.class {
	case classNone:
	case classBool:
		c.bools.set(i, x.class == classBool && x.bits != 0)
	default:
		c.cells[i] = x.bits
	}
}

func boolDelta(up bool) int {
	if up {
		return 1
	}
	return -1
}

// addRow makes room for a row more than n.
func (c *segmentColumn) addRow(n int) {
	for k := range c.params {
		c.params[k].addRow(n)
	}
	if c.class == classExpr || n < 64*len(c.undefined) {
		return
	}
	room := max(lanes, 2*n) // a multiple of lanes
	c.undefined = append(make(rowSet, 0, room/64), c.undefined...)[:room/64]
	c.errors = append(make(rowSet, 0, room/64), c.errors...)[:room/64]
	c.allocate(room)
	if c.index != nil {
		c.index.grow(room)
	}
}

// allocate gives the class's own storage room for so many rows.
func (c *segmentColumn) allocate(room int) {
	switch c.class {
	case classNone, classExpr:
	case classBool:
		c.bools = append(make(rowSet, 0, room/64), c.bools...)[:room/64]
	default:
		c.cells = append(make([]uint64, 0, room), c.cells...)[:room]
	}
}

// setClass makes a column without values one of a class.
func (c *segmentColumn) setClass(k columnClass) {
	c.class = k
	c.allocate(64 * len(c.undefined))
}

// removeRow takes row i away and puts the last row, last, in its place.
func (c *segmentColumn) removeRow(i, last int) {
	for k := range c.params {
		c.params[k].removeRow(i, last)
	}
	if c.class == classExpr {
		return
	}
	if c.index != nil {
		c.index.markChanged(i)
		c.index.markChanged(last)
	}
	if c.undefined.has(i) {
		c.undefinedCount--
	}
	if c.errors.has(i) {
		c.errorCount--
	}
	c.undefined.set(i, c.undefined.has(last))
	c.errors.set(i, c.errors.has(last))
	c.undefined.set(last, false)
	c.errors.set(last, false)
	switch c.class {
	case classNone:
	case classBool:
		c.bools.set(i, c.bools.has(last))
		c.bools.set(last, false)
	default:
		c.cells[i] = c.cells[last]
	}
}

// clearRow makes row i, which nothing has been put into, UNDEFINED.
func (c *segmentColumn) clearRow(i int) {
	for k := range c.params {
		c.params[k].clearRow(i)
	}
	if c.class == classExpr || c.undefined.has(i) {
		return
	}
	c.undefined.set(i, true)
	c.undefinedCount++
	if c.index != nil {
		c.index.markChanged(i)
	}
}

// numbersPerRow is how many numbers of a dictionary the column keeps for a row.
func (c *segmentColumn) numbersPerRow() int {
	n := 0
	for k := range c.params {
		n += c.params[k].numbersPerRow()
	}
	if c.class == classString || c.class == classOther {
		n++
	}
	return n
}
