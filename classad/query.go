package classad

import (
	"math"
	"slices"
)

// Hit is a row that matches a [Query], and what the query's Rank says of it, as in [Match].
type Hit struct {
	Row  Row
	Rank float64
}

// Query is a request compiled for a [Table]: what [Match] says of the request and each row, for many rows at once. It stays valid while the
// table changes, and gets faster with use, as it learns which conditions exclude most rows.
//
// An expression whose evaluation would reach one of the bounds of [Env] may still give a value here, because less is evaluated.
type Query struct {
	table *Table
	job   *Ad  // nil for a query of Where
	where Expr // without a job: the condition on each row
	parts map[*segment]*part
	epoch int

	env   *Env
	m     machine
	now   cursor
	ev    evaluator // for rows that are evaluated one by one
	flat  flattener
	pick  []int32
	ranks [lanes]float64

	unindexed bool // for measurements: all rows are looked at
}

// part is a query compiled for one segment.
type part struct {
	shaped   int     // of the segment, when this was compiled
	one      bool    // rows are evaluated one by one
	never    bool    // no row of the segment can match
	conds    []*cond // all have to hold
	rank     program
	rankOf   rankKind
	required int // the job's attribute of requirements
}

type rankKind uint8

const (
	noRank       rankKind = iota // 0 for all
	compiledRank                 // rank tells
	treeRank                     // the evaluator tells
)

// cond is one condition of a part.
type cond struct {
	n      node // as written, for the evaluator; nil for the whole of the row's own requirements
	prog   program
	coded  bool // prog is there
	cost   float64
	index  indexed
	seen   int // rows that this was asked about, of late
	passed int // and those for which it held
}

// Compile prepares to match a job with the rows of the table. The job must not be changed afterwards.
func (t *Table) Compile(job *Ad) *Query {
	if job == nil {
		job = New()
	}
	return t.newQuery(job, Expr{})
}

// Where prepares to find the rows for which e is true, evaluated in the row's ad without another one.
func (t *Table) Where(e Expr) *Query { return t.newQuery(nil, e) }

func (t *Table) newQuery(job *Ad, where Expr) *Query {
	q := &Query{table: t, job: job, where: where, parts: map[*segment]*part{}}
	q.now.t = t
	q.flat.t, q.flat.job, q.flat.now = t, job, &q.now
	q.pick = make([]int32, 0, lanes)
	return q
}

// Select appends the rows that match to hits, in no particular order. Nothing is allocated if hits has room and the table is as it was.
func (q *Query) Select(hits []Hit, env *Env) []Hit {
	q.ready(env)
	for _, s := range q.table.segments {
		if len(s.rows) > 0 {
			hits = q.scan(s, q.parts[s], hits)
		}
	}
	return hits
}

// Match says whether one row matches, and its rank.
func (q *Query) Match(r Row, env *Env) (rank float64, ok bool) {
	q.ready(env)
	p := q.table.rows[r]
	if p.seg == nil {
		return 0, false
	}
	part := q.parts[p.seg]
	if part.never {
		return 0, false
	}
	q.m.seg, q.m.picked, q.m.live = p.seg, append(q.pick[:0], int32(p.at)), firstLanes(1)
	var one [1]Hit
	hits := q.block(part, one[:0])
	if len(hits) == 0 {
		return 0, false
	}
	return hits[0].Rank, true
}

// ready brings the query up to date with the table.
func (q *Query) ready(env *Env) {
	t := q.table
	t.tidy()
	if q.epoch != t.epoch {
		clear(q.parts)
		q.epoch = t.epoch
	}
	q.env = env
	q.ev.env = env
	q.m.now = q.ev.now().Unix()
	for again := true; again; {
		again = false
		for _, s := range t.segments {
			if p := q.parts[s]; len(s.rows) > 0 && (p == nil || p.shaped != s.shaped) {
				q.parts[s] = q.compile(s)
			}
		}
		if t.filled < len(t.attrs) {
			t.fill()
			clear(q.parts)
			again = true
		}
	}
}

// scan matches the rows of one segment.
func (q *Query) scan(s *segment, p *part, hits []Hit) []Hit {
	if p.never {
		return hits
	}
	m, n := &q.m, len(s.rows)
	m.seg, m.picked = s, nil
	if rows, col := q.candidates(s, p); col != nil {
		return q.scanIndex(p, rows, col.order, hits)
	}
	for m.base = 0; m.base < n; m.base += lanes {
		m.live = firstLanes(n - m.base)
		hits = q.block(p, hits)
	}
	q.learn(s, p)
	return hits
}

// block matches the live lanes of the machine.
func (q *Query) block(p *part, hits []Hit) []Hit {
	m := &q.m
	if p.one {
		q.oneByOne(p)
	}
	for _, c := range p.conds {
		c.seen += m.live.count()
		q.hold(c, p)
		c.passed += m.live.count()
		if m.live.none() {
			return hits
		}
	}
	return q.emit(p, hits)
}

// emit appends the live lanes with their ranks.
func (q *Query) emit(p *part, hits []Hit) []Hit {
	m := &q.m
	if p.rankOf == compiledRank {
		m.run(&p.rank)
		m.numbers(p.rank.result, &q.ranks)
	}
	n := len(hits)
	hits = slices.Grow(hits, m.live.count())
	hits = hits[:n+m.live.count()]
	for w, word := range m.live {
		for ; word != 0; word &= word - 1 {
			lane := w<<6 + trailingZeros(word)
			hit := &hits[n]
			n++
			if m.picked != nil {
				hit.Row = m.seg.rows[m.picked[lane]]
			} else {
				hit.Row = m.seg.rows[m.base+lane]
			}
			hit.Rank = 0
			switch p.rankOf {
			case compiledRank:
				hit.Rank = q.ranks[lane]
			case treeRank:
				hit.Rank = q.rankByTree(m.row(lane))
			}
		}
	}
	return hits
}

// numbers are the lanes of a number, 0 where there is none.
func (m *machine) numbers(x operand, out *[lanes]float64) {
	gaps := m.m[x.undef]
	for w := range gaps {
		gaps[w] |= m.m[x.bad][w]
	}
	switch x.kind {
	case Boolean:
		for i := range out {
			out[i] = float64(m.m[x.at][i>>6] >> (i & 63) & 1)
		}
	case Integer:
		for i, a := range m.v[x.at] {
			out[i] = float64(int64(a))
		}
	default:
		for i, a := range m.v[x.at] {
			out[i] = math.Float64frombits(a)
		}
	}
	if !gaps.none() {
		gaps.each(func(lane int) { out[lane] = 0 })
	}
}

// hold takes the lanes for which a condition does not hold from the live ones.
func (q *Query) hold(c *cond, p *part) {
	m := &q.m
	if !c.coded {
		m.stray = m.live
		m.live = mask{}
	} else {
		m.run(&c.prog)
		truth := &m.m[c.prog.result.at]
		for w := range m.live {
			m.stray[w] &= m.live[w]
			m.live[w] &= truth[w] &^ m.stray[w]
		}
	}
	for w, word := range m.stray {
		for ; word != 0; word &= word - 1 {
			lane := w<<6 + trailingZeros(word)
			if q.condByTree(c, p, m.row(lane)).IsTrue() {
				m.live.set(lane)
			}
		}
	}
}
