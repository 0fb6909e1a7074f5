package classad

// minIndexed is the least number of rows for which an index is worth its cost.
const minIndexed = 4096

// plainTest is a condition that compares a column with a constant. It needs no program,
// and an index can answer it.
type plainTest struct {
	ok  bool
	ref *cellRef
	op  exprOperator
	key uint64

	class columnClass // of the column
	v     Value       // the constant, of the column's type
}

// plainTest returns the plain test that a flat condition is equivalent to, if any.
func (c *segmentCompiler) plainTest(n exprNode) (x plainTest) {
	b, ok := n.(*binaryNode)
	if !ok || b.op < opEqual || b.op > opGreaterEqual || b.op == opNotEqual || b.op == opIs || b.op == opIsnt {
		return x
	}
	ref, isRef := b.x.(*cellRef)
	v, isLiteral := literalValue(b.y)
	op := b.op
	if !isRef {
		ref, isRef = b.y.(*cellRef)
		v, isLiteral = literalValue(b.x)
		op = mirroredOperator(op)
	}
	if !isRef || !isLiteral {
		return x
	}
	x = plainTest{ref: ref, op: op}
	col := ref.column(c.programBuilder.segment)
	x.class = col.class
	switch {
	case col.class == classInt && toIntegers(v):
		x.ok, x.key, x.v = true, intKey(v.int()), v
	case col.class == classReal && (toIntegers(v) || v.kind == Real):
		f, _ := v.Number()
		x.ok, x.key, x.v = f == f, realKey(f), RealValue(f)
	case col.class == classString && v.kind == String && op == opEqual:
		d := c.table.strings
		x.ok, x.key, x.v = true, uint64(d.canonicalID[d.text(v.str)]), v
	}
	return x
}

// indexCandidates returns the rows that the best index leaves, and its column. It returns
// nil if scanning all rows is cheaper.
func (q *Query) indexCandidates(s *tableSegment, p *segmentQuery) (rows []int32, col *segmentColumn) {
	n := len(s.rows)
	if n < minIndexed || q.unindexed {
		return nil, nil
	}
	best := n / 8
	for _, c := range p.rowConditions {
		if !c.test.ok {
			continue
		}
		x := c.test.ref.column(s)
		if x.index == nil {
			continue
		}
		if x.index.changedCount > n/16 {
			x.sort(q.table.strings, n)
		}
		if found := x.index.between(c.test.op, c.test.key); len(found)+x.index.changedCount < best {
			best, rows, col = len(found)+x.index.changedCount, found, x
		}
	}
	return rows, col
}

// scanIndex matches the rows that an index found and those changed since the index was
// sorted.
func (q *Query) scanIndex(p *segmentQuery, rows []int32, o *columnIndex, hits []QueryHit) []QueryHit {
	m := q.vm
	for _, i := range rows {
		if !o.dirty.has(int(i)) {
			hits = q.addPicked(p, i, hits)
		}
	}
	if o.changedCount > 0 {
		for i := range m.segment.rows {
			if o.dirty.has(i) {
				hits = q.addPicked(p, int32(i), hits)
			}
		}
	}
	return q.flush(p, hits)
}

// addPicked adds a row to the next block.
func (q *Query) addPicked(p *segmentQuery, i int32, hits []QueryHit) []QueryHit {
	if q.vm.indexRows = append(q.vm.indexRows, i); len(q.vm.indexRows) == lanes {
		return q.flush(p, hits)
	}
	return hits
}

func (q *Query) flush(p *segmentQuery, hits []QueryHit) []QueryHit {
	if len(q.vm.indexRows) > 0 {
		q.vm.rows, q.vm.live = q.vm.indexRows, firstLanes(len(q.vm.indexRows))
		hits = q.block(p, hits)
	}
	q.vm.indexRows, q.vm.rows = q.vm.indexRows[:0], nil
	return hits
}

// applyTest removes the live lanes that do not pass.
func (x *plainTest) applyTest(m *vectorVM, d *valueDictionary) {
	col := x.ref.column(m.segment)
	m.loadCells(0, col)
	pass := &m.passing // not a local variable, which would escape to the heap in the call of a chosen loop
	switch x.class {
	case classInt:
		kernel, negated := intKernel(x.op)
		if kernel(m.vectors[0], x.v.int(), &m.live, pass); negated {
			pass.invert()
		}
	case classReal:
		realKernel(x.op)(m.vectors[0], x.v.real(), &m.live, pass)
	default:
		textsEqual(d, m.vectors[0], x.key, &m.store[1], &m.live, pass)
	}
	if col.undefinedCount > 0 {
		m.loadBits(scratchMask, col.undefined)
		pass.remove(&m.masks[scratchMask])
	}
	if col.errorCount > 0 {
		m.loadBits(scratchMask, col.errors)
		pass.remove(&m.masks[scratchMask])
	}
	for w := range m.live {
		m.live[w] &= pass[w]
	}
}
