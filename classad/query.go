package classad

import (
	"math"
	"slices"
)

// QueryHit is a row that matches a [Query], with the query's Rank of it, as in [Match].
type QueryHit struct {
	Row  RowID
	Rank float64
}

// Query is a request compiled for a [Table]. It gives the result of [Match] for the
// request and many rows at once. It stays valid while the table changes, and becomes
// faster with use, as it learns which conditions exclude most rows.
//
// An expression whose evaluation would exceed a bound of [EvalEnv] may still give a value
// here, because less is evaluated. Expressions that are evaluated row by row may take
// 1,000 nodes a row on average; after that they are ERROR for the remaining rows.
type Query struct {
	table *Table
	job   *Ad  // nil for a query of Where
	where Expr // if job is nil: the condition on each row
	parts map[*tableSegment]*segmentQuery
	epoch int

	budget     int // nodes that may still be evaluated row by row
	givenNodes int // part of the budget that the last evaluation got

	env       *EvalEnv
	vm        *vectorVM // the table's, which its queries use in turn
	now       rowCursor
	evaluator evaluator // for rows that are evaluated one by one
	flattener exprFlattener

	unindexed bool // for measurements: scan all rows
}

// segmentQuery is a query compiled for one segment.
type segmentQuery struct {
	shapeVersion  int               // of the segment when this was compiled
	rowByRow      bool              // rows are evaluated one by one
	matchesNone   bool              // no row of the segment can match
	matchesAll    bool              // all rows match, with rank 0
	rowConditions []*queryCondition // all must hold
	rank          vectorProgram
	rankOf        rankKind
	required      int // index of the job's attribute Requirements
}

type rankKind uint8

const (
	noRank       rankKind = iota // rank is 0 for all rows
	compiledRank                 // field rank computes it
	treeRank                     // the evaluator computes it
)

// queryCondition is one condition of a segmentQuery.
type queryCondition struct {
	expr     exprNode // as written, for the evaluator; nil for the whole of the row's own requirements
	program  vectorProgram
	compiled bool // program or test is set
	cost     float64
	test     plainTest
	tested   int // recently tested rows
	passed   int // tested rows for which the condition held
}

// Compile prepares to match a job with the rows of the table. The job must not be changed
// afterwards.
func (t *Table) Compile(job *Ad) *Query {
	if job == nil {
		job = New()
	}
	return t.newQuery(job, Expr{})
}

// Where prepares to find the rows for which e is true, evaluated in the row's ad without
// another one.
func (t *Table) Where(e Expr) *Query { return t.newQuery(nil, e) }

func (t *Table) newQuery(job *Ad, where Expr) *Query {
	q := &Query{table: t, job: job, where: where, parts: map[*tableSegment]*segmentQuery{}, vm: &t.vm}
	q.now.table = t
	q.flattener.table, q.flattener.job, q.flattener.now = t, job, &q.now
	return q
}

// Select appends the matching rows to hits, in no particular order. It allocates nothing
// if hits has room and the table has not changed.
func (q *Query) Select(hits []QueryHit, env *EvalEnv) []QueryHit {
	q.update(env)
	for _, s := range q.table.segments {
		if len(s.rows) > 0 {
			hits = q.scan(s, q.parts[s], hits)
		}
	}
	return hits
}

// Match reports whether one row matches, and its rank. A row that does not exist does not
// match.
func (q *Query) Match(r RowID, env *EvalEnv) (rank float64, ok bool) {
	if q.table.Ad(r) == nil {
		return 0, false
	}
	q.update(env)
	p := q.table.rows[r]
	part := q.parts[p.segment]
	if part.matchesNone || part.matchesAll {
		return 0, part.matchesAll
	}
	q.vm.remainingRows[0] = int32(p.row)
	q.vm.segment, q.vm.rows, q.vm.live = p.segment, q.vm.remainingRows[:1], firstLanes(1)
	var one [1]QueryHit
	hits := q.block(part, one[:0])
	if len(hits) == 0 {
		return 0, false
	}
	return hits[0].Rank, true
}

// update recompiles the query where the table has changed.
func (q *Query) update(env *EvalEnv) {
	t := q.table
	t.rebuildIfWasteful()
	if q.epoch != t.epoch {
		clear(q.parts)
		q.epoch = t.epoch
	}
	q.budget, q.givenNodes, q.evaluator.stepsLeft = maxRowNodes+maxAverageRowNodes*t.Len(), 0, 0
	q.env = env
	q.evaluator.env = env
	q.vm.now = q.evaluator.now().Unix()
	for again := true; again; {
		again = false
		for _, s := range t.segments {
			if p := q.parts[s]; len(s.rows) > 0 && (p == nil || p.shapeVersion != s.shapeVersion) {
				q.parts[s] = q.compile(s)
			}
		}
		if t.filledColumns < len(t.attrs) {
			t.addNewColumns()
			clear(q.parts)
			again = true
		}
	}
}

// scan matches the rows of one segment.
func (q *Query) scan(s *tableSegment, p *segmentQuery, hits []QueryHit) []QueryHit {
	if p.matchesNone {
		return hits
	}
	if p.matchesAll {
		for _, row := range s.rows {
			hits = append(hits, QueryHit{Row: row})
		}
		return hits
	}
	m, n := q.vm, len(s.rows)
	m.segment, m.rows = s, nil
	if rows, col := q.indexCandidates(s, p); col != nil {
		return q.scanIndex(p, rows, col.index, hits)
	}
	for m.base = 0; m.base < n; m.base += lanes {
		m.live, m.rows = firstLanes(n-m.base), nil
		hits = q.block(p, hits)
	}
	q.reorderConditions(s, p)
	return hits
}

// block matches the live lanes of the machine.
func (q *Query) block(p *segmentQuery, hits []QueryHit) []QueryHit {
	m := q.vm
	if p.rowByRow {
		q.matchRowByRow(p)
	}
	left := m.live.count()
	for _, c := range p.rowConditions {
		if left <= lanes/8 && m.rows == nil {
			q.compactLanes()
		}
		c.tested += left
		q.applyCondition(c, p)
		if left = m.live.count(); left == 0 {
			return hits
		}
		c.passed += left
	}
	return q.appendHits(p, hits)
}

// compactLanes makes a block of picked rows from the few remaining lanes, so that they
// fit into one word.
func (q *Query) compactLanes() {
	m := q.vm
	few := m.remainingRows[:0]
	m.live.each(func(lane int) { few = append(few, int32(m.base+lane)) })
	m.rows, m.live = few, firstLanes(len(few))
}

// appendHits appends the live lanes with their ranks.
func (q *Query) appendHits(p *segmentQuery, hits []QueryHit) []QueryHit {
	m := q.vm
	ranks := &m.ranks
	switch p.rankOf {
	case compiledRank:
		m.run(&p.rank)
		m.laneNumbers(p.rank.result, ranks)
	case noRank:
		*ranks = [lanes]float64{}
	}
	n := len(hits)
	hits = slices.Grow(hits, m.live.count())
	hits = hits[:n+m.live.count()]
	for w, word := range m.live {
		if m.rows == nil && w<<6 < len(m.segment.rows)-m.base {
			n += fillHits(hits[n:], m.segment.rows[m.base+w<<6:], (*[64]float64)(ranks[w<<6:]), word)
			continue
		}
		for ; word != 0; word &= word - 1 {
			lane := w<<6 + trailingZeros(word)
			hits[n] = QueryHit{m.segment.rows[m.row(lane)], ranks[lane]}
			n++
		}
	}
	if p.rankOf == treeRank {
		q.rankOneByOne(hits[n-m.live.count():])
	}
	return hits
}

// fillHits makes a hit of each row of a word and returns their number.
func fillHits(hits []QueryHit, rows []RowID, ranks *[64]float64, word uint64) (n int) {
	for ; word != 0; word &= word - 1 {
		lane := trailingZeros(word) & 63
		hits[n] = QueryHit{rows[lane], ranks[lane]}
		n++
	}
	return n
}

// rankOneByOne evaluates the ranks of the hits just appended.
func (q *Query) rankOneByOne(hits []QueryHit) {
	n := 0
	for w, word := range q.vm.live {
		for ; word != 0; word &= word - 1 {
			hits[n].Rank = q.rankByTree(q.vm.row(w<<6 + trailingZeros(word)))
			n++
		}
	}
}

// laneNumbers writes the lanes of a number to out, 0 where there is none.
func (m *vectorVM) laneNumbers(x compiledOperand, out *[lanes]float64) {
	gaps := m.masks[x.undefined]
	for w := range gaps {
		gaps[w] |= m.masks[x.errors][w]
	}
	switch x.kind {
	case Boolean:
		for i := range out {
			out[i] = float64(m.masks[x.at][i>>6] >> (i & 63) & 1)
		}
	case Integer:
		for i, a := range m.vectors[x.at] {
			out[i] = float64(int64(a))
		}
	default:
		for i, a := range m.vectors[x.at] {
			out[i] = math.Float64frombits(a)
		}
	}
	if !gaps.isEmpty() {
		gaps.each(func(lane int) { out[lane] = 0 })
	}
}

// applyCondition removes the live lanes for which a condition does not hold.
func (q *Query) applyCondition(c *queryCondition, p *segmentQuery) {
	m := q.vm
	switch {
	case c.test.ok:
		c.test.applyTest(m, q.table.strings)
		return
	case !c.compiled:
		m.undecided = m.live
		m.live = laneMask{}
	default:
		m.run(&c.program)
		truth := &m.masks[c.program.result.at]
		for w := range m.live {
			m.undecided[w] &= m.live[w]
			m.live[w] &= truth[w] &^ m.undecided[w]
		}
	}
	for w, word := range m.undecided {
		for ; word != 0; word &= word - 1 {
			lane := w<<6 + trailingZeros(word)
			if q.condByTree(c, p, m.row(lane)).IsTrue() {
				m.live.set(lane)
			}
		}
	}
}
