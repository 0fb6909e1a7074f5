package classad

// vectorProgram is a compiled expression: steps that each compute one vector or mask of
// the machine's registers.
type vectorProgram struct {
	steps  []func(m *vectorVM)
	result compiledOperand
}

// compiledOperand is what a part of an expression has been compiled to: a constant, or
// registers.
type compiledOperand struct {
	kind      ValueKind // Boolean, Integer, Real or String, of the lanes that have a value
	isLiteral bool
	value     Value // where lit
	// register: a mask for a Boolean, else a vector. Lanes without a value are clear in a
	// mask, and anything in a vector.
	at        int
	undefined int // mask of the lanes that are UNDEFINED; zeros if none can be
	errors    int // mask of the lanes that are ERROR, none of which is in undef; zeros if none can be
}

// Registers that are the same in every program.
const (
	zeros       = iota // no lane
	ones               // every lane
	scratchMask        // for use within a step
	fixedMasks
)

// vectorVM runs programs over one block of rows of a segment: either lanes rows from a
// place on, or rows that were picked one by one.
type vectorVM struct {
	segment   *tableSegment
	base      int      // of a block of neighbours
	rows      []int32  // the rows, if they are not neighbours
	live      laneMask // lanes that matter
	undecided laneMask // lanes about which the program has found that it cannot speak for them
	now       int64    // what time() says
	vectors   []*laneVector
	masks     []laneMask
	store     []laneVector

	passing       laneMask         // lanes that pass a plain test
	indexRows     []int32          // rows that an index has found
	remainingRows [lanes / 8]int32 // rows that are left of a block
	ranks         [lanes]float64
}

// reserve makes room for so many registers, and for the two vectors that tests by
// themselves use.
func (m *vectorVM) reserve(vectors, masks int) {
	vectors = max(vectors, 2)
	if vectors > len(m.store) {
		m.store = make([]laneVector, vectors)
		m.vectors = make([]*laneVector, vectors)
	}
	if masks > len(m.masks) {
		m.masks = make([]laneMask, masks)
		m.masks[ones] = firstLanes(lanes)
	}
}

// run runs a program.
func (m *vectorVM) run(p *vectorProgram) {
	m.undecided = laneMask{}
	for _, step := range p.steps {
		step(m)
	}
}

// laneTruth is what a program that has run says of a lane; unknown if it cannot speak for
// it.
func (m *vectorVM) laneTruth(p *vectorProgram, lane int) truthState {
	w, bit := lane>>6, uint64(1)<<(lane&63)
	switch {
	case m.undecided[w]&bit != 0:
		return truthUnknown
	case m.masks[p.result.at][w]&bit != 0:
		return truthTrue
	case m.masks[p.result.undefined][w]&bit != 0:
		return truthUndefined
	case m.masks[p.result.errors][w]&bit != 0:
		return truthError
	}
	return truthFalse
}

// row is the place in the segment of a lane.
func (m *vectorVM) row(lane int) int {
	if m.rows != nil {
		return int(m.rows[lane])
	}
	return m.base + lane
}

// ownVector points a vector register at its own memory and returns it.
func (m *vectorVM) ownVector(r int) *laneVector {
	m.vectors[r] = &m.store[r]
	return m.vectors[r]
}

// loadCells makes a vector of a column's cells.
func (m *vectorVM) loadCells(r int, c *segmentColumn) {
	if m.rows == nil {
		m.vectors[r] = (*laneVector)(c.cells[m.base:])
		return
	}
	out := m.ownVector(r)
	for lane, i := range m.rows {
		out[lane] = c.cells[i]
	}
}

// loadBits makes a mask of a column's bits.
func (m *vectorVM) loadBits(r int, b rowSet) {
	out := &m.masks[r]
	if m.rows == nil {
		*out = laneMask(b[m.base>>6:][:lanes/64])
		return
	}
	*out = laneMask{}
	for lane, i := range m.rows {
		if b.has(int(i)) {
			out.set(lane)
		}
	}
}
