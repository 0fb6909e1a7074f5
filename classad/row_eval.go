package classad

// Bounds on the nodes evaluated row by row or for a cache in one Select: a fixed number,
// and an average for each row of the table. Without them, requirements that are slow for
// each of 100,000 rows would take minutes.
const (
	maxRowNodes        = 10_000_000
	maxAverageRowNodes = 1000
)

// bindRow sets the evaluator to a row of the present segment. When the budget is spent,
// every result is ERROR.
func (q *Query) bindRow(i int) {
	q.budget -= q.givenNodes - max(q.evaluator.stepsLeft, 0)
	steps := MaxSteps
	if q.env != nil && q.env.Steps > 0 {
		steps = q.env.Steps
	}
	steps = min(steps, max(q.budget, 0))
	q.givenNodes = steps
	row := q.table.rows[q.vm.segment.rows[i]].ad
	if q.job == nil {
		q.evaluator.reset(row, nil, q.env, steps)
		return
	}
	q.evaluator.reset(q.job, row, q.env, steps)
}

// condByTree evaluates a condition for row i.
func (q *Query) condByTree(c *queryCondition, p *segmentQuery, i int) Value {
	q.bindRow(i)
	if c.expr == nil {
		return q.rowRequirementsHold()
	}
	if q.job != nil {
		q.evaluator.activeAttrs = append(q.evaluator.activeAttrs, activeAttr{q.job, p.required})
	}
	return q.evaluator.withinBounds(q.evaluator.eval(c.expr, &q.evaluator.leftScope))
}

// rowRequirementsHold evaluates the row's own requirements.
func (q *Query) rowRequirementsHold() Value {
	f := &q.evaluator.rightScope
	for _, name := range q.table.policy {
		if i := f.ad.labelIndex(hashName(name), name); i >= 0 {
			return q.evaluator.withinBounds(q.evaluator.attribute(f, i))
		}
	}
	return BoolValue(q.table.matchAllByDefault)
}

// rankByTree evaluates the job's rank of row i.
func (q *Query) rankByTree(i int) float64 {
	q.bindRow(i)
	rank, _ := q.evaluator.evalOwn(&q.evaluator.leftScope, "Rank").Number()
	return rank
}

// matchRowByRow removes the live lanes that do not match, without any program.
func (q *Query) matchRowByRow(p *segmentQuery) {
	m := q.vm
	for w, word := range m.live {
		for ; word != 0; word &= word - 1 {
			lane := w<<6 + trailingZeros(word)
			if !q.matchByTree(m.row(lane)) {
				m.live[w] &^= 1 << (lane & 63)
			}
		}
	}
}

func (q *Query) matchByTree(i int) bool {
	q.bindRow(i)
	if q.job == nil {
		return q.evaluator.withinBounds(q.evaluator.eval(q.where.n, &q.evaluator.leftScope)).IsTrue()
	}
	if !q.evaluator.evalOwn(&q.evaluator.leftScope, "Requirements").IsTrue() {
		return false
	}
	q.bindRow(i)
	return q.rowRequirementsHold().IsTrue()
}
