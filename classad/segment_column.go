package classad

import "slices"

// columnClass is the type of the values of a column in one segment of a table.
type columnClass uint8

const (
	classNone   columnClass = iota // no row of the segment has a value
	classBool                      // type Boolean
	classInt                       // type Integer
	classReal                      // type Real
	classString                    // type String, as numbers of the table's dictionary
	classOther                     // lists, ads and times, as numbers of the table's second dictionary
	// an expression that depends on the other side of a match, the same for all rows
	// except for its literals
	classExpr
)

// classOf returns the class of columns that hold values of a kind.
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

// reset returns an empty set with room for words words.
func (b rowSet) reset(words int) rowSet {
	b = slices.Grow(b[:0], words)[:words]
	clear(b)
	return b
}

// segmentColumn holds one attribute of a segment's rows. Each row has a value, or is
// UNDEFINED, or is ERROR.
type segmentColumn struct {
	class          columnClass
	cells          []uint64 // integers as they are, reals as their bits, other values as numbers of a dictionary
	bools          rowSet   // values of class Boolean
	undefined      rowSet
	errors         rowSet
	undefinedCount int // number of UNDEFINED rows
	errorCount     int // number of ERROR rows
	template       *exprTemplate
	params         []segmentColumn // literals of the template
	index          *columnIndex    // rows sorted by value; nil until an index is worth its cost
	indexUses      int             // how often an index would have helped
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

// tableCell is the value of one row in one column.
type tableCell struct {
	class    columnClass // classNone for UNDEFINED and ERROR
	bits     uint64
	isError  bool // the value is ERROR
	present  bool // the ad has the attribute
	template *exprTemplate
	params   []Value
}

// value returns the value of row i.
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

// accepts reports whether the column can hold a cell without changing its class or
// template.
func (c *segmentColumn) accepts(x *tableCell) bool {
	if x.class == classNone {
		return c.class != classExpr
	}
	return c.class == x.class && c.template == x.template
}

// setCell writes a cell that the column accepts.
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

// addRow makes room for row n.
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

// allocate gives the class's own storage room for room rows.
func (c *segmentColumn) allocate(room int) {
	switch c.class {
	case classNone, classExpr:
	case classBool:
		c.bools = append(make(rowSet, 0, room/64), c.bools...)[:room/64]
	default:
		c.cells = append(make([]uint64, 0, room), c.cells...)[:room]
	}
}

// setClass gives a class to a column without values.
func (c *segmentColumn) setClass(k columnClass) {
	c.class = k
	c.allocate(64 * len(c.undefined))
}

// removeRow removes row i and moves the last row, last, to its place.
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

// clearRow makes row i, which has no value yet, UNDEFINED.
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

// numbersPerRow returns how many dictionary numbers the column has for a row.
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
