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
// An expression whose evaluation would reach one of the bounds of [Env] may still give a value here, because less is evaluated. What has to
// be evaluated row by row may take 1,000 nodes a row on the average, and then is ERROR for the rows that are left.
type Query struct {
	table *Table
	job   *Ad  // nil for a query of Where
	where Expr // without a job: the condition on each row
	parts map[*segment]*part
	epoch int

	budget int // nodes that may still be evaluated row by row
	given  int // of them, to the evaluation that was begun last

	env  *Env
	m    *machine // of the table: its queries take turns
	now  cursor
	ev   evaluator // for rows that are evaluated one by one
	flat flattener

	unindexed bool // for measurements: all rows are looked at
}

// part is a query compiled for one segment.
type part struct {
	shaped   int     // of the segment, when this was compiled
	one      bool    // rows are evaluated one by one
	never    bool    // no row of the segment can match
	always   bool    // all do, with a rank of 0
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
	coded  bool // prog or test is there
	cost   float64
	test   plainTest
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
	q := &Query{table: t, job: job, where: where, parts: map[*segment]*part{}, m: &t.m}
	q.now.t = t
	q.flat.t, q.flat.job, q.flat.now = t, job, &q.now
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

// Match says whether one row matches, and its rank. A row that is not there does not.
func (q *Query) Match(r Row, env *Env) (rank float64, ok bool) {
	if q.table.Ad(r) == nil {
		return 0, false
	}
	q.ready(env)
	p := q.table.rows[r]
	part := q.parts[p.seg]
	if part.never || part.always {
		return 0, part.always
	}
	q.m.few[0] = int32(p.at)
	q.m.seg, q.m.picked, q.m.live = p.seg, q.m.few[:1], firstLanes(1)
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
	q.budget, q.given, q.ev.steps = maxTogether+maxAverage*t.Len(), 0, 0
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
	if p.always {
		for _, row := range s.rows {
			hits = append(hits, Hit{Row: row})
		}
		return hits
	}
	m, n := q.m, len(s.rows)
	m.seg, m.picked = s, nil
	if rows, col := q.candidates(s, p); col != nil {
		return q.scanIndex(p, rows, col.order, hits)
	}
	for m.base = 0; m.base < n; m.base += lanes {
		m.live, m.picked = firstLanes(n-m.base), nil
		hits = q.block(p, hits)
	}
	q.learn(s, p)
	return hits
}

// block matches the live lanes of the machine.
func (q *Query) block(p *part, hits []Hit) []Hit {
	m := q.m
	if p.one {
		q.oneByOne(p)
	}
	left := m.live.count()
	for _, c := range p.conds {
		if left <= lanes/8 && m.picked == nil {
			q.narrow()
		}
		c.seen += left
		q.hold(c, p)
		if left = m.live.count(); left == 0 {
			return hits
		}
		c.passed += left
	}
	return q.emit(p, hits)
}

// narrow goes on with the few lanes that are left of a block as rows that were picked one by one, which fit into one word.
func (q *Query) narrow() {
	m := q.m
	few := m.few[:0]
	m.live.each(func(lane int) { few = append(few, int32(m.base+lane)) })
	m.picked, m.live = few, firstLanes(len(few))
}

// emit appends the live lanes with their ranks.
func (q *Query) emit(p *part, hits []Hit) []Hit {
	m := q.m
	ranks := &m.ranks
	switch p.rankOf {
	case compiledRank:
		m.run(&p.rank)
		m.numbers(p.rank.result, ranks)
	case noRank:
		*ranks = [lanes]float64{}
	}
	n := len(hits)
	hits = slices.Grow(hits, m.live.count())
	hits = hits[:n+m.live.count()]
	for w, word := range m.live {
		if m.picked == nil && w<<6 < len(m.seg.rows)-m.base {
			n += fillHits(hits[n:], m.seg.rows[m.base+w<<6:], (*[64]float64)(ranks[w<<6:]), word)
			continue
		}
		for ; word != 0; word &= word - 1 {
			lane := w<<6 + trailingZeros(word)
			hits[n] = Hit{m.seg.rows[m.row(lane)], ranks[lane]}
			n++
		}
	}
	if p.rankOf == treeRank {
		q.rankOneByOne(hits[n-m.live.count():])
	}
	return hits
}

// fillHits makes a hit of each row of a word, and says how many there are.
func fillHits(hits []Hit, rows []Row, ranks *[64]float64, word uint64) (n int) {
	for ; word != 0; word &= word - 1 {
		lane := trailingZeros(word) & 63
		hits[n] = Hit{rows[lane], ranks[lane]}
		n++
	}
	return n
}

// rankOneByOne evaluates the ranks of the lanes that were just emitted.
func (q *Query) rankOneByOne(hits []Hit) {
	n := 0
	for w, word := range q.m.live {
		for ; word != 0; word &= word - 1 {
			hits[n].Rank = q.rankByTree(q.m.row(w<<6 + trailingZeros(word)))
			n++
		}
	}
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
	m := q.m
	switch {
	case c.test.ok:
		c.test.hold(m, q.table.texts)
		return
	case !c.coded:
		m.stray = m.live
		m.live = mask{}
	default:
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
