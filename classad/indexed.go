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
		x.ok, x.key = true, intKey(v.int())
	case col.class == ofReals && (integral(v) || v.kind == Real):
		f, _ := v.Number()
		x.ok, x.key = f == f, realKey(f)
	case col.class == ofTexts && v.kind == String && op == opEqual:
		d := c.table.texts
		x.ok, x.key = true, uint64(d.leader[d.text(v.str)])
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
	m := &q.m
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
	if q.pick = append(q.pick, i); len(q.pick) == lanes {
		return q.flush(p, hits)
	}
	return hits
}

func (q *Query) flush(p *part, hits []Hit) []Hit {
	if len(q.pick) > 0 {
		q.m.picked, q.m.live = q.pick, firstLanes(len(q.pick))
		hits = q.block(p, hits)
	}
	q.pick, q.m.picked = q.pick[:0], nil
	return hits
}
