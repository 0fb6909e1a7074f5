package classad

// minIndexed is the least number of rows for which an index pays.
const minIndexed = 4096

// indexed is a comparison of a column with a constant, which an index can answer.
type indexed struct {
	ok  bool
	ref *cellRef
	op  operator
	key uint64

	class class // of the column
	v     Value // the constant, of the column's type
}

// indexable is the comparison that a flat condition is, if it is one that an index can answer.
func (c *compiler) indexable(n node) (x indexed) {
	b, ok := n.(*binary)
	if !ok || b.op < opEqual || b.op > opGreaterEqual || b.op == opNotEqual || b.op == opIs || b.op == opIsnt {
		return x
	}
	ref, isRef := b.x.(*cellRef)
	v, isLiteral := literalValue(b.y)
	op := b.op
	if !isRef {
		ref, isRef = b.y.(*cellRef)
		v, isLiteral = literalValue(b.x)
		op = mirrored(op)
	}
	if !isRef || !isLiteral {
		return x
	}
	x = indexed{ref: ref, op: op}
	col := ref.column(c.lowering.seg)
	x.class = col.class
	switch {
	case col.class == ofIntegers && integral(v):
		x.ok, x.key, x.v = true, intKey(v.int()), v
	case col.class == ofReals && (integral(v) || v.kind == Real):
		f, _ := v.Number()
		x.ok, x.key, x.v = f == f, realKey(f), RealValue(f)
	case col.class == ofTexts && v.kind == String && op == opEqual:
		d := c.table.texts
		x.ok, x.key, x.v = true, uint64(d.leader[d.text(v.str)]), v
	}
	return x
}

// candidates are the rows that the best index leaves, and its column; nil if it is better to look at all rows.
func (q *Query) candidates(s *segment, p *part) (rows []int32, col *column) {
	n := len(s.rows)
	if n < minIndexed || q.unindexed {
		return nil, nil
	}
	best := n / 8
	for _, c := range p.conds {
		if !c.index.ok {
			continue
		}
		x := c.index.ref.column(s)
		if x.order == nil {
			continue
		}
		if x.order.touched > n/16 {
			x.sort(q.table.texts, n)
		}
		if found := x.order.between(c.index.op, c.index.key); len(found)+x.order.touched < best {
			best, rows, col = len(found)+x.order.touched, found, x
		}
	}
	return rows, col
}

// scanIndex matches the rows that an index has found and those that were changed since it was made.
func (q *Query) scanIndex(p *part, rows []int32, o *order, hits []Hit) []Hit {
	m := q.m
	for _, i := range rows {
		if !o.dirty.has(int(i)) {
			hits = q.picked(p, i, hits)
		}
	}
	if o.touched > 0 {
		for i := range m.seg.rows {
			if o.dirty.has(i) {
				hits = q.picked(p, int32(i), hits)
			}
		}
	}
	return q.flush(p, hits)
}

// picked adds a row to those that are matched together.
func (q *Query) picked(p *part, i int32, hits []Hit) []Hit {
	if q.m.pick = append(q.m.pick, i); len(q.m.pick) == lanes {
		return q.flush(p, hits)
	}
	return hits
}

func (q *Query) flush(p *part, hits []Hit) []Hit {
	if len(q.m.pick) > 0 {
		q.m.picked, q.m.live = q.m.pick, firstLanes(len(q.m.pick))
		hits = q.block(p, hits)
	}
	q.m.pick, q.m.picked = q.m.pick[:0], nil
	return hits
}

// hold leaves of the live lanes those that pass the test. It does what the program of the test does, in one step instead of many.
func (x *indexed) hold(m *machine, d *dictionary) {
	col := x.ref.column(m.seg)
	m.loadCells(0, col)
	var pass mask
	switch x.class {
	case ofIntegers:
		x.holdInts(m, &pass)
	case ofReals:
		x.holdReals(m, &pass)
	default:
		x.holdTexts(m, d, &pass)
	}
	if col.undefs > 0 {
		m.loadBits(spare, col.undef)
		pass.remove(&m.m[spare])
	}
	if col.bads > 0 {
		m.loadBits(spare, col.bad)
		pass.remove(&m.m[spare])
	}
	for w := range m.live {
		m.live[w] &= pass[w]
	}
}

func (x *indexed) holdInts(m *machine, pass *mask) {
	c := x.v.int()
	switch x.op {
	case opEqual:
		wordsEqual(m.v[0], uint64(c), &m.live, pass)
	case opLess, opGreaterEqual:
		intsLess(m.v[0], c, &m.live, pass)
	default:
		intsLessEqual(m.v[0], c, &m.live, pass)
	}
	if x.op == opGreater || x.op == opGreaterEqual {
		pass.invert()
	}
}

func (x *indexed) holdReals(m *machine, pass *mask) {
	c := x.v.real()
	switch x.op {
	case opEqual:
		realsEqual(m.v[0], c, &m.live, pass)
	case opLess:
		realsLess(m.v[0], c, &m.live, pass)
	case opLessEqual:
		realsLessEqual(m.v[0], c, &m.live, pass)
	case opGreater:
		realsGreater(m.v[0], c, &m.live, pass)
	default:
		realsGreaterEqual(m.v[0], c, &m.live, pass)
	}
}

func (x *indexed) holdTexts(m *machine, d *dictionary, pass *mask) {
	if d.kin[x.key] == 1 { // no other string is equal to it
		wordsEqual(m.v[0], x.key, &m.live, pass)
		return
	}
	leaders(d, m.v[0], &m.store[1], &m.live)
	wordsEqual(&m.store[1], x.key, &m.live, pass)
}
