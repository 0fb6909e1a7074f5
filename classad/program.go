package classad

// program is a compiled expression: steps that each compute one vector or mask of the machine's registers.
type program struct {
	steps  []func(m *machine)
	result operand
}

// operand is what a part of an expression has been compiled to: a constant, or registers.
type operand struct {
	kind  ValueKind // Boolean, Integer, Real or String, of the lanes that have a value
	lit   bool
	v     Value // where lit
	at    int   // register: a mask for a Boolean, else a vector. Lanes without a value are clear in a mask, and anything in a vector.
	undef int   // mask of the lanes that are UNDEFINED; zeros if none can be
	bad   int   // mask of the lanes that are ERROR, none of which is in undef; zeros if none can be
}

// Registers that are the same in every program.
const (
	zeros = iota // no lane
	ones         // every lane
	spare        // for use within a step
	fixedMasks
)

// machine runs programs over one block of rows of a segment: either lanes rows from a place on, or rows that were picked one by one.
type machine struct {
	seg    *segment
	base   int     // of a block of neighbours
	picked []int32 // the rows, if they are not neighbours
	live   mask    // lanes that matter
	stray  mask    // lanes about which the program has found that it cannot speak for them
	now    int64   // what time() says
	v      []*vector
	m      []mask
	store  []vector

	pass  mask             // lanes that pass a plain test
	pick  []int32          // rows that an index has found
	few   [lanes / 8]int32 // rows that are left of a block
	ranks [lanes]float64
}

// reserve makes room for so many registers, and for the two vectors that tests by themselves use.
func (m *machine) reserve(vectors, masks int) {
	vectors = max(vectors, 2)
	if vectors > len(m.store) {
		m.store = make([]vector, vectors)
		m.v = make([]*vector, vectors)
	}
	if masks > len(m.m) {
		m.m = make([]mask, masks)
		m.m[ones] = firstLanes(lanes)
	}
}

// run runs a program.
func (m *machine) run(p *program) {
	m.stray = mask{}
	for _, step := range p.steps {
		step(m)
	}
}

// verdict is what a program that has run says of a lane; unknown if it cannot speak for it.
func (m *machine) verdict(p *program, lane int) verdict {
	w, bit := lane>>6, uint64(1)<<(lane&63)
	switch {
	case m.stray[w]&bit != 0:
		return unknown
	case m.m[p.result.at][w]&bit != 0:
		return isTrue
	case m.m[p.result.undef][w]&bit != 0:
		return isUndef
	case m.m[p.result.bad][w]&bit != 0:
		return isBad
	}
	return isFalse
}

// row is the place in the segment of a lane.
func (m *machine) row(lane int) int {
	if m.picked != nil {
		return int(m.picked[lane])
	}
	return m.base + lane
}

// own points a vector register at its own memory and returns it.
func (m *machine) own(r int) *vector {
	m.v[r] = &m.store[r]
	return m.v[r]
}

// loadCells makes a vector of a column's cells.
func (m *machine) loadCells(r int, c *column) {
	if m.picked == nil {
		m.v[r] = (*vector)(c.cells[m.base:])
		return
	}
	out := m.own(r)
	for lane, i := range m.picked {
		out[lane] = c.cells[i]
	}
}

// loadBits makes a mask of a column's bits.
func (m *machine) loadBits(r int, b bitmap) {
	out := &m.m[r]
	if m.picked == nil {
		*out = mask(b[m.base>>6:][:lanes/64])
		return
	}
	*out = mask{}
	for lane, i := range m.picked {
		if b.has(int(i)) {
			out.set(lane)
		}
	}
}
