package classad

import "slices"

// Costs of a condition for one row, in units of a plain comparison. They are guesses that
// order the conditions.
const (
	costCode = 1
	costMemo = 20
	costTree = 2000
)

// compile makes the segmentQuery for one segment.
func (q *Query) compile(s *tableSegment) *segmentQuery {
	p := &segmentQuery{shapeVersion: s.shapeVersion, rowByRow: s.rowByRow || q.job != nil && q.job.hasReservedNames}
	if q.job != nil {
		p.required = q.job.labelIndex(hashName("Requirements"), "Requirements")
		if p.required < 0 {
			p.matchesNone = true
			return p
		}
		if q.job.labelIndex(hashName("Rank"), "Rank") >= 0 {
			p.rankOf = treeRank
		}
	}
	if p.rowByRow {
		return p
	}
	c := &segmentCompiler{Query: q, segmentQuery: p, programBuilder: programBuilder{query: q, segment: s}}
	q.flattener.segment = s
	if q.job == nil {
		c.conjuncts(Right, q.where, nil)
	} else {
		c.conjuncts(Left, q.job.exprs[p.required], []inlinedAttr{{Left, p.required}})
		c.rowRequirements()
		c.rank()
	}
	q.sortConditions(p)
	p.matchesAll = !p.matchesNone && len(p.rowConditions) == 0 && p.rankOf == noRank
	return p
}

// segmentCompiler compiles a query for one segment.
type segmentCompiler struct {
	*Query
	*segmentQuery
	programBuilder
}

// flatten returns the flat form of n, which is part of the attributes inside.
func (c *segmentCompiler) flatten(n exprNode, side MatchSide, inside []inlinedAttr) (exprNode, bool) {
	c.flattener.stack = append(c.flattener.stack[:0], inside...)
	c.flattener.nodesLeft = maxFlatNodes
	return c.flattener.flatten(n, side)
}

// conjuncts compiles each operand of the && of an expression as a condition of its own.
// The expression is true if and only if all of them are.
func (c *segmentCompiler) conjuncts(side MatchSide, e Expr, inside []inlinedAttr) {
	list := Conjuncts(e)
	if len(list) > maxConjuncts {
		list = []Expr{e}
	}
	for _, conj := range list {
		n := conj.n
		flat, ok := c.flatten(n, side, inside)
		if !ok {
			c.rowConditions = append(c.rowConditions, &queryCondition{expr: n, cost: costTree})
			continue
		}
		c.conditions(n, flat)
	}
}

// rowRequirements compiles the rows' requirements on the job.
func (c *segmentCompiler) rowRequirements() {
	s := c.programBuilder.segment
	for _, k := range c.table.policyColumns {
		if !s.presentAttrs.has(k) {
			continue
		}
		col := &s.cols[k]
		if col.class != classExpr {
			flat, ok := c.flatten(&rootRef{c.table.attrs[k].name, c.table.attrs[k].hash}, Right, nil)
			if !ok {
				c.rowConditions = append(c.rowConditions, &queryCondition{cost: costTree})
				return
			}
			c.conditions(nil, flat)
			return
		}
		for _, conj := range Conjuncts(Expr{col.template.expr}) {
			flat, ok := c.flatten(conj.n, Right, []inlinedAttr{{Right, k}})
			if !ok {
				c.rowConditions = append(c.rowConditions, &queryCondition{cost: costTree})
				continue
			}
			c.conditions(nil, flat)
		}
		return
	}
	c.matchesNone = c.matchesNone || !c.table.matchAllByDefault
}

// conditions adds the conjuncts of flat, the flat form of n.
func (c *segmentCompiler) conditions(n, flat exprNode) {
	rest := false
	for _, conj := range Conjuncts(Expr{flat}) {
		if v, ok := literalValue(conj.n); ok {
			c.matchesNone = c.matchesNone || !v.IsTrue()
			continue
		}
		if test := c.plainTest(conj.n); test.ok {
			c.vm.reserve(0, fixedMasks)
			c.rowConditions = append(c.rowConditions,
				&queryCondition{expr: n, test: test, compiled: true, cost: costCode})
			continue
		}
		prog, ok := c.program(conj.n)
		if !ok {
			rest = true
			continue
		}
		c.vm.reserve(c.vectors, c.masks)
		x := &queryCondition{expr: n, program: prog, compiled: true, cost: costCode}
		if c.caches > 0 {
			x.cost = costMemo
		}
		c.rowConditions = append(c.rowConditions, x)
	}
	if rest {
		c.rowConditions = append(c.rowConditions, &queryCondition{expr: n, cost: costTree})
	}
}

// rank compiles the job's Rank.
func (c *segmentCompiler) rank() {
	i := c.job.labelIndex(hashName("Rank"), "Rank")
	if i < 0 {
		return
	}
	flat, ok := c.flatten(c.job.exprs[i].n, Left, []inlinedAttr{{Left, i}})
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
	if !ok || c.caches > 0 {
		return
	}
	c.segmentQuery.rank, c.rankOf = prog, compiledRank
	c.vm.reserve(c.vectors, c.masks)
}

// sortConditions puts first the conditions that exclude most rows for their cost.
func (q *Query) sortConditions(p *segmentQuery) {
	slices.SortStableFunc(p.rowConditions, func(a, b *queryCondition) int {
		switch x, y := a.selectivityPerCost(), b.selectivityPerCost(); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
}

// selectivityPerCost returns the share of rows that a condition excludes, divided by its
// cost. The share is half until it is measured.
func (c *queryCondition) selectivityPerCost() float64 {
	return (1 - float64(c.passed+1)/float64(c.tested+2)) / c.cost
}

// reorderConditions orders the conditions by what they excluded recently. It makes an
// index if the first of them leaves few rows.
func (q *Query) reorderConditions(s *tableSegment, p *segmentQuery) {
	if len(p.rowConditions) == 0 {
		return
	}
	if first := p.rowConditions[0]; first.test.ok && len(s.rows) >= minIndexed && first.passed < first.tested/16 {
		col := first.test.ref.column(s)
		if col.indexUses++; col.indexUses >= 3 && col.index == nil {
			col.sort(q.table.strings, len(s.rows))
		}
	}
	inOrder := true
	for i, c := range p.rowConditions {
		inOrder = inOrder && (i == 0 || p.rowConditions[i-1].selectivityPerCost() >= c.selectivityPerCost())
	}
	if !inOrder {
		q.sortConditions(p)
	}
	for _, c := range p.rowConditions {
		if c.tested > 1<<20 {
			c.tested, c.passed = c.tested/2, c.passed/2
		}
	}
}
