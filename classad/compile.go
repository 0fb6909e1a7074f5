package classad

import "slices"

// Costs of a condition for one row, in units of a plain comparison: guesses that put the conditions in order.
const (
	costCode = 1
	costMemo = 20
	costTree = 2000
)

// compile makes the part of a query for one segment.
func (q *Query) compile(s *segment) *part {
	p := &part{shaped: s.shaped, one: s.loose || q.job != nil && q.job.hides}
	if q.job != nil {
		p.required = q.job.index(hashName("Requirements"), "Requirements")
		if p.required < 0 {
			p.never = true
			return p
		}
		if q.job.index(hashName("Rank"), "Rank") >= 0 {
			p.rankOf = treeRank
		}
	}
	if p.one {
		return p
	}
	c := &compiler{Query: q, part: p, lowering: lowering{q: q, seg: s}}
	q.flat.seg = s
	if q.job == nil {
		c.conjuncts(Right, q.where, nil)
	} else {
		c.conjuncts(Left, q.job.exprs[p.required], []within{{Left, p.required}})
		c.policy()
		c.rank()
	}
	q.arrange(p)
	p.always = !p.never && len(p.conds) == 0 && p.rankOf == noRank
	return p
}

// compiler makes one part.
type compiler struct {
	*Query
	*part
	lowering
}

// flatten is the flat form of n, which stands inside an attribute.
func (c *compiler) flatten(n node, side Side, inside []within) (node, bool) {
	c.flat.stack = append(c.flat.stack[:0], inside...)
	c.flat.left = maxFlat
	return c.flat.flat(n, side)
}

// conjuncts compiles the operands of the && of an expression, each by itself: all of them have to be true, and that is all that counts.
func (c *compiler) conjuncts(side Side, e Expr, inside []within) {
	list := Conjuncts(e)
	if len(list) > maxConjuncts {
		list = []Expr{e}
	}
	for _, conj := range list {
		n := conj.n
		flat, ok := c.flatten(n, side, inside)
		if !ok {
			c.conds = append(c.conds, &cond{n: n, cost: costTree})
			continue
		}
		c.conditions(n, flat)
	}
}

// policy compiles what the rows ask of the job.
func (c *compiler) policy() {
	s := c.lowering.seg
	for _, k := range c.table.policyColumns {
		if !s.there.has(k) {
			continue
		}
		col := &s.cols[k]
		if col.class != ofExpr {
			flat, ok := c.flatten(&rootRef{c.table.attrs[k].name, c.table.attrs[k].hash}, Right, nil)
			if !ok {
				c.conds = append(c.conds, &cond{cost: costTree})
				return
			}
			c.conditions(nil, flat)
			return
		}
		for _, conj := range Conjuncts(Expr{col.form.n}) {
			flat, ok := c.flatten(conj.n, Right, []within{{Right, k}})
			if !ok {
				c.conds = append(c.conds, &cond{cost: costTree})
				continue
			}
			c.conditions(nil, flat)
		}
		return
	}
	c.never = c.never || !c.table.lax
}

// conditions adds the conjuncts of a flat expression, which was written as n.
func (c *compiler) conditions(n, flat node) {
	rest := false
	for _, conj := range Conjuncts(Expr{flat}) {
		if v, ok := literalValue(conj.n); ok {
			c.never = c.never || !v.IsTrue()
			continue
		}
		if test := c.plainTest(conj.n); test.ok {
			c.m.reserve(0, fixedMasks)
			c.conds = append(c.conds, &cond{n: n, test: test, coded: true, cost: costCode})
			continue
		}
		prog, ok := c.program(conj.n)
		if !ok {
			rest = true
			continue
		}
		c.m.reserve(c.vectors, c.masks)
		x := &cond{n: n, prog: prog, coded: true, cost: costCode}
		if c.memos > 0 {
			x.cost = costMemo
		}
		c.conds = append(c.conds, x)
	}
	if rest {
		c.conds = append(c.conds, &cond{n: n, cost: costTree})
	}
}

// rank compiles the job's Rank.
func (c *compiler) rank() {
	i := c.job.index(hashName("Rank"), "Rank")
	if i < 0 {
		return
	}
	flat, ok := c.flatten(c.job.exprs[i].n, Left, []within{{Left, i}})
	if !ok {
		return
	}
	if v, ok := literalValue(flat); ok {
		if f, isNumber := v.Number(); !isNumber || f == 0 {
			c.rankOf = noRank
			return
		}
	}
	prog, ok := c.value(flat)
	if !ok || c.memos > 0 {
		return
	}
	c.part.rank, c.rankOf = prog, compiledRank
	c.m.reserve(c.vectors, c.masks)
}

// arrange puts the conditions first that exclude most for what they cost.
func (q *Query) arrange(p *part) {
	slices.SortStableFunc(p.conds, func(a, b *cond) int {
		switch x, y := a.worth(), b.worth(); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
}

// worth is the part of rows that a condition excludes for what it costs; half of them, as long as nobody knows.
func (c *cond) worth() float64 {
	return (1 - float64(c.passed+1)/float64(c.seen+2)) / c.cost
}

// learn puts the conditions in order by what they have excluded lately, and makes an index where the first of them leaves few rows.
func (q *Query) learn(s *segment, p *part) {
	if len(p.conds) == 0 {
		return
	}
	if first := p.conds[0]; first.test.ok && len(s.rows) >= minIndexed && first.passed < first.seen/16 {
		col := first.test.ref.column(s)
		if col.asked++; col.asked >= 3 && col.order == nil {
			col.sort(q.table.texts, len(s.rows))
		}
	}
	inOrder := true
	for i, c := range p.conds {
		inOrder = inOrder && (i == 0 || p.conds[i-1].worth() >= c.worth())
	}
	if !inOrder {
		q.arrange(p)
	}
	for _, c := range p.conds {
		if c.seen > 1<<20 {
			c.seen, c.passed = c.seen/2, c.passed/2
		}
	}
}
