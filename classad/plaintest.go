package classad

// minIndexed is the least number of rows for which an index pays.
const minIndexed = 4096

// plainTest is a condition that compares a column with a constant: it needs no program, and an index can answer it.
type plainTest struct {
	ok  bool
	ref *cellRef
	op  operator
	key uint64

	class class // of the column
	v     Value // the constant, of the column's type
}

// plainTest is what a flat condition is, if it is one.
func (c *compiler) plainTest(n node) (x plainTest) {
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
	x = plainTest{ref: ref, op: op}
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
		if !c.test.ok {
			continue
		}
		x := c.test.ref.column(s)
		if x.order == nil {
			continue
		}
		if x.order.touched > n/16 {
			x.sort(q.table.texts, n)
		}
		if found := x.order.between(c.test.op, c.test.key); len(found)+x.order.touched < best {
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

// hold leaves of the live lanes those that pass.
func (x *plainTest) hold(m *machine, d *dictionary) {
	col := x.ref.column(m.seg)
	m.loadCells(0, col)
	pass := &m.pass // not a variable: what a chosen loop gets is on the heap
	switch x.class {
	case ofIntegers:
		kernel, negated := intKernel(x.op)
		if kernel(m.v[0], x.v.int(), &m.live, pass); negated {
			pass.invert()
		}
	case ofReals:
		realKernel(x.op)(m.v[0], x.v.real(), &m.live, pass)
	default:
		textsEqual(d, m.v[0], x.key, &m.store[1], &m.live, pass)
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
