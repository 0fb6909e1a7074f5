package classad

import "slices"

// class is what a column holds in one segment of a table.
type class uint8

const (
	ofNothing  class = iota // no row of the segment has a value
	ofTruths                // Booleans
	ofIntegers              // Integers
	ofReals                 // Reals
	ofTexts                 // Strings, as numbers of the table's dictionary
	ofOthers                // lists, ads and times, as numbers of the table's other dictionary
	ofExpr                  // the same expression for all rows but for its literals, which depends on the other side of a match
)

// classOf is the class of columns that hold values of a kind.
func classOf(k ValueKind) class {
	switch k {
	case Boolean:
		return ofTruths
	case Integer:
		return ofIntegers
	case Real:
		return ofReals
	case String:
		return ofTexts
	case Undefined, Error:
		return ofNothing
	}
	return ofOthers
}

// bitmap is a set of rows.
type bitmap []uint64

func (b bitmap) has(i int) bool { return b[i>>6]>>(i&63)&1 != 0 }
func (b bitmap) set(i int, on bool) {
	if on {
		b[i>>6] |= 1 << (i & 63)
	} else {
		b[i>>6] &^= 1 << (i & 63)
	}
}

// each calls f for every row of the set.
func (b bitmap) each(f func(i int)) {
	for i, w := range b {
		for ; w != 0; w &= w - 1 {
			f(i<<6 + trailingZeros(w))
		}
	}
}

// cleared is an empty set with room for so many words.
func (b bitmap) cleared(words int) bitmap {
	b = slices.Grow(b[:0], words)[:words]
	clear(b)
	return b
}

// column holds one attribute of a segment's rows. A row has a value, or is UNDEFINED, or is ERROR.
type column struct {
	class  class
	cells  []uint64 // integers as they are, reals as their bits, texts and others as numbers
	truth  bitmap   // of truths
	undef  bitmap
	bad    bitmap
	undefs int // rows that are UNDEFINED
	bads   int // rows that are ERROR
	form   *template
	params []column // the literals of form
	order  *order   // the rows sorted by value; nil until that pays
	asked  int      // how often an order would have helped
}

func newColumn(k class, form *template) column {
	col := column{class: k, form: form}
	if form != nil {
		for _, k := range form.kinds {
			col.params = append(col.params, newColumn(k, nil))
		}
	}
	return col
}

// cell is one row's part of a column.
type cell struct {
	class  class // nothing for UNDEFINED and ERROR
	bits   uint64
	bad    bool // ERROR
	there  bool // the ad has the attribute
	form   *template
	params []Value
}

// value is the cell's value.
func (c *column) value(t *Table, i int) Value {
	switch {
	case c.class == ofNothing || c.undef.has(i):
		if c.bads > 0 && c.bad.has(i) {
			return ErrorValue()
		}
		return Value{}
	case c.bad.has(i):
		return ErrorValue()
	}
	switch c.class {
	case ofTruths:
		return BoolValue(c.truth.has(i))
	case ofIntegers:
		return Value{kind: Integer, num: c.cells[i]}
	case ofReals:
		return Value{kind: Real, num: c.cells[i]}
	case ofTexts:
		return t.texts.values[c.cells[i]]
	}
	return t.others.values[c.cells[i]]
}

// takes says whether the column can hold a cell without becoming another.
func (c *column) takes(x *cell) bool {
	if x.class == ofNothing {
		return c.class != ofExpr
	}
	return c.class == x.class && c.form == x.form
}

// put writes a cell that the column takes.
func (c *column) put(t *Table, i int, x *cell) {
	if c.class == ofExpr {
		for k := range c.params {
			var p cell
			t.setValue(&p, x.params[k])
			c.params[k].put(t, i, &p)
		}
		return
	}
	undef := x.class == ofNothing && !x.bad
	if c.order != nil && !c.order.dirty.has(i) && (undef || x.bad || c.undef.has(i) || c.bad.has(i) || c.cells[i] != x.bits) {
		c.order.touch(i)
	}
	if undef != c.undef.has(i) {
		c.undef.set(i, undef)
		c.undefs += delta(undef)
	}
	if x.bad != c.bad.has(i) {
		c.bad.set(i, x.bad)
		c.bads += delta(x.bad)
	}
	switch c.class {
	case ofNothing:
	case ofTruths:
		c.truth.set(i, x.class == ofTruths && x.bits != 0)
	default:
		c.cells[i] = x.bits
	}
}

func delta(up bool) int {
	if up {
		return 1
	}
	return -1
}

// grow makes room for a row more than n.
func (c *column) grow(n int) {
	for k := range c.params {
		c.params[k].grow(n)
	}
	if c.class == ofExpr || n < 64*len(c.undef) {
		return
	}
	room := max(lanes, 2*n) // a multiple of lanes
	c.undef = append(make(bitmap, 0, room/64), c.undef...)[:room/64]
	c.bad = append(make(bitmap, 0, room/64), c.bad...)[:room/64]
	c.allot(room)
	if c.order != nil {
		c.order.grow(room)
	}
}

// allot gives the class's own storage room for so many rows.
func (c *column) allot(room int) {
	switch c.class {
	case ofNothing, ofExpr:
	case ofTruths:
		c.truth = append(make(bitmap, 0, room/64), c.truth...)[:room/64]
	default:
		c.cells = append(make([]uint64, 0, room), c.cells...)[:room]
	}
}

// become makes a column without values one of a class.
func (c *column) become(k class) {
	c.class = k
	c.allot(64 * len(c.undef))
}

// drop takes row i away and puts the last row, last, in its place.
func (c *column) drop(i, last int) {
	for k := range c.params {
		c.params[k].drop(i, last)
	}
	if c.class == ofExpr {
		return
	}
	if c.order != nil {
		c.order.touch(i)
		c.order.touch(last)
	}
	if c.undef.has(i) {
		c.undefs--
	}
	if c.bad.has(i) {
		c.bads--
	}
	c.undef.set(i, c.undef.has(last))
	c.bad.set(i, c.bad.has(last))
	c.undef.set(last, false)
	c.bad.set(last, false)
	switch c.class {
	case ofNothing:
	case ofTruths:
		c.truth.set(i, c.truth.has(last))
		c.truth.set(last, false)
	default:
		c.cells[i] = c.cells[last]
	}
}

// clear makes row i, which nothing has been put into, UNDEFINED.
func (c *column) clear(i int) {
	for k := range c.params {
		c.params[k].clear(i)
	}
	if c.class == ofExpr || c.undef.has(i) {
		return
	}
	c.undef.set(i, true)
	c.undefs++
	if c.order != nil {
		c.order.touch(i)
	}
}

// numbered is how many numbers of a dictionary the column keeps for a row.
func (c *column) numbered() int {
	n := 0
	for k := range c.params {
		n += c.params[k].numbered()
	}
	if c.class == ofTexts || c.class == ofOthers {
		n++
	}
	return n
}
