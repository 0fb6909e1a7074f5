package classad

// vectorProgram is a compiled expression: steps that each compute one register of the
// vectorVM, a vector or a mask.
type vectorProgram struct {
	steps  []func(m *vectorVM)
	result compiledOperand
}

// compiledOperand is the compiled form of a part of an expression: a constant, or
// registers.
type compiledOperand struct {
	kind      ValueKind // type of the lanes that have a value: Boolean, Integer, Real or String
	isLiteral bool
	value     Value // if isLiteral
	// register: a mask for a Boolean, else a vector. Lanes without a value are clear in a
	// mask, and arbitrary in a vector.
	at        int
	undefined int // mask of the UNDEFINED lanes; zeros if there can be none
	errors    int // mask of the ERROR lanes, disjoint from undefined; zeros if there can be none
}

// Registers with the same meaning in every program.
const (
	zeros       = iota // no lane
	ones               // every lane
	scratchMask        // scratch space within a step
	fixedMasks
)

// vectorVM runs programs over one block of rows of a segment. A block is a range of at
// most lanes rows, or rows that were picked one by one.
type vectorVM struct {
	segment   *tableSegment
	base      int      // first row, if the block is a range
	rows      []int32  // rows, if they were picked
	live      laneMask // lanes that are still candidates
	undecided laneMask // lanes for which the program cannot decide
	now       int64    // result of time()
	vectors   []*laneVector
	masks     []laneMask
	store     []laneVector

	passing       laneMask         // lanes that pass a plain test
	indexRows     []int32          // rows that an index found
	remainingRows [lanes / 8]int32 // remaining rows of a block
	ranks         [lanes]float64
}

// reserve makes room for registers, and for the two vectors that plain tests use.
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

// laneTruth returns the result of a program for a lane, or unknown if the program could
// not decide.
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

// row returns the place of a lane's row in the segment.
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

// loadCells loads a column's cells into a vector.
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

// loadBits loads a column's bits into a mask.
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
