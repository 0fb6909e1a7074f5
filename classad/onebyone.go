package classad

// What is evaluated row by row, or remembered, may cost in one go, in nodes: so many, and on the average so many for each row of the table.
// Nobody's requirements can so take minutes by being slow for each of 100,000 rows.
const (
	maxTogether = 10_000_000
	maxAverage  = 1000
)

// bind makes the evaluator ready for a row of the machine's segment. When all that may be spent is spent, everything is ERROR.
func (q *Query) bind(i int) {
	q.budget -= q.given - max(q.ev.steps, 0)
	steps := MaxSteps
	if q.env != nil && q.env.Steps > 0 {
		steps = q.env.Steps
	}
	steps = min(steps, max(q.budget, 0))
	q.given = steps
	row := q.table.rows[q.m.seg.rows[i]].ad
	if q.job == nil {
		q.ev.reset(row, nil, q.env, steps)
		return
	}
	q.ev.reset(q.job, row, q.env, steps)
}

// condByTree evaluates a condition for row i.
func (q *Query) condByTree(c *cond, p *part, i int) Value {
	q.bind(i)
	if c.n == nil {
		return q.rowWilling()
	}
	if q.job != nil {
		q.ev.active = append(q.ev.active, active{q.job, p.required})
	}
	return q.ev.bounded(q.ev.eval(c.n, &q.ev.left))
}

// rowWilling evaluates the row's own requirements.
func (q *Query) rowWilling() Value {
	f := &q.ev.right
	for _, name := range q.table.policy {
		if i := f.ad.index(hashName(name), name); i >= 0 {
			return q.ev.bounded(q.ev.attribute(f, i))
		}
	}
	return BoolValue(q.table.lax)
}

// rankByTree evaluates the job's rank of row i.
func (q *Query) rankByTree(i int) float64 {
	q.bind(i)
	rank, _ := q.ev.named(&q.ev.left, "Rank").Number()
	return rank
}

// oneByOne leaves the live lanes that match, without any program.
func (q *Query) oneByOne(p *part) {
	m := q.m
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
	q.bind(i)
	if q.job == nil {
		return q.ev.bounded(q.ev.eval(q.where.n, &q.ev.left)).IsTrue()
	}
	if !q.ev.named(&q.ev.left, "Requirements").IsTrue() {
		return false
	}
	q.bind(i)
	return q.rowWilling().IsTrue()
}
