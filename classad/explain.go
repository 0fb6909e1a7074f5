package classad

import (
	"cmp"
	"fmt"
	"slices"
)

// Explanation describes which conditions keep the rows of a table from matching a
// request.
type Explanation struct {
	Rows          int
	Matched       int
	Conjuncts     []ConjunctResult   // the request's, in the order in which they are written, then the rows' own
	MostExcluding int                // index of the conjunct that excludes most rows; -1 if none excludes any
	Conflicts     []ConjunctConflict // why no row matches; empty if some do
	Nearest       []NearMiss         // the rows that fail fewest conjuncts, at most maxNearMisses kinds of them

	failCounts   []uint16 // by row: how many conjuncts do not hold
	firstFailing []uint16 // by row: the first conjunct that does not hold
}

// ConjunctResult counts the rows for which one conjunct holds. The conjunct is an operand
// of the && of the request's Requirements or of the rows' own. It counts as true for a
// row that does not have it.
type ConjunctResult struct {
	Side MatchSide // Left: the request's; Right: the rows'
	Expr Expr      // as written; of the rows' own conjuncts, as written in the first row that has this one
	// Expr with the request's own attributes replaced by their values; Expr itself if
	// that is not possible
	Substituted  Expr
	Pass         int // rows for which it is true
	Fail         int // rows for which it is false
	Undefined    int // rows for which it is UNDEFINED, because an attribute is missing
	Error        int // rows for which it is ERROR, because it makes no sense
	OnlyObstacle int // rows that fail only this conjunct
	// of a comparison with a constant: the best value among the OnlyObstacle rows;
	// UNDEFINED if there is none
	BestValue Value
	BestCount int // how many of those rows have BestValue
}

// Excluded returns the number of rows for which the conjunct does not hold.
func (c *ConjunctResult) Excluded() int { return c.Fail + c.Undefined + c.Error }

// ConjunctConflict is a minimal set of conjuncts that no row meets together. In a set of
// two, some row meets each of them alone. Without any one member of a larger set, some
// row meets the others.
type ConjunctConflict struct {
	Conjuncts     []int
	Contradiction bool // the conjuncts contradict each other: no possible row meets them
}

// NearMiss is a set of rows that fail the same few conjuncts.
type NearMiss struct {
	Missing []int // conjuncts that do not hold
	Rows    int   // rows that fail these and no others
	Example RowID // the first of these rows
}

const (
	maxNearMisses    = 5
	maxConjuncts     = 256 // further ones are counted together with the last
	maxPairConjuncts = 32  // conjuncts of which all pairs are tested for conflicts
)

// Failing returns how many conjuncts do not hold for a row, and the first of them.
func (x *Explanation) Failing(r RowID) (n, first int) {
	return int(x.failCounts[r]), int(x.firstFailing[r])
}

// Explain counts, for each conjunct of both sides' Requirements, the rows for which it
// holds. A conjunct that is only the name of another attribute of the same ad is replaced
// by that attribute's conjuncts, as in [Reasons].
func (q *Query) Explain(env *EvalEnv) *Explanation {
	q.update(env)
	t := q.table
	x := &explanationBuilder{Query: q, rows: len(t.rows), byKey: map[string]int{}}
	for _, s := range t.segments {
		if len(s.rows) > 0 {
			x.segment(s)
		}
	}
	return x.explanation()
}

// explanationBuilder builds an Explanation.
type explanationBuilder struct {
	*Query
	rows    int
	entries []*conjunctEntry
	byKey   map[string]int
}

// conjunctEntry is a conjunct whose rows are being counted.
type conjunctEntry struct {
	ConjunctResult
	failing     rowSet // rows for which the conjunct does not hold
	test        plainTest
	isDescribed bool
}

// entry returns the entry of a conjunct by its key on its side, and creates a missing
// one.
func (x *explanationBuilder) entry(side MatchSide, key string, e Expr) *conjunctEntry {
	key = side.String() + key
	if i, ok := x.byKey[key]; ok {
		return x.entries[i]
	}
	if len(x.entries) == maxConjuncts {
		return x.entries[maxConjuncts-1]
	}
	x.byKey[key] = len(x.entries)
	n := &conjunctEntry{ConjunctResult: ConjunctResult{Side: side, Expr: e, Substituted: e},
		failing: make(rowSet, x.rows/64+1)}
	x.entries = append(x.entries, n)
	return n
}

// countOutcome records the result of a conjunct for a row.
func (n *conjunctEntry) countOutcome(r RowID, v truthState) {
	if v == truthTrue || n.failing.has(int(r)) {
		return
	}
	n.failing.set(int(r), true)
	switch v {
	case truthFalse:
		n.Fail++
	case truthUndefined:
		n.Undefined++
	default:
		n.Error++
	}
}

// segment counts the rows of one segment.
func (x *explanationBuilder) segment(s *tableSegment) {
	x.vm.segment, x.vm.rows = s, nil
	if s.rowByRow || x.job != nil && x.job.hasReservedNames {
		for i, r := range s.rows {
			x.row(i, r)
		}
		return
	}
	c := &segmentCompiler{Query: x.Query, segmentQuery: &segmentQuery{},
		programBuilder: programBuilder{query: x.Query, segment: s}}
	x.flattener.segment = s
	if x.job == nil {
		for _, conj := range Conjuncts(x.where) {
			x.conjunct(c, sideConjunct{side: Right, expr: conj.n, column: -1})
		}
		return
	}
	for _, cl := range x.jobConjuncts() {
		x.conjunct(c, cl)
	}
	for _, cl := range x.rowConjuncts(s) {
		x.conjunct(c, cl)
	}
}

// conjunct counts the rows of the compiler's segment for one conjunct.
func (x *explanationBuilder) conjunct(c *segmentCompiler, cl sideConjunct) {
	s := c.programBuilder.segment
	e := x.writtenConjunct(s, cl)
	key := e.String()
	if cl.side == Right && cl.number >= 0 && cl.column >= 0 { // rows with other literals have the same conjunct
		key = fmt.Sprint(" ", s.cols[cl.column].template.id, cl.number)
	}
	n := x.entry(cl.side, key, e)
	flat, ok := c.flatten(cl.expr, cl.side, cl.attributes)
	var prog vectorProgram
	if ok {
		x.now.segment, x.now.at = s, 0 // the row whose literals are shown
		n.describe(c, flat)
		prog, ok = c.program(flat)
		x.vm.reserve(c.vectors, c.masks)
	}
	m := x.vm
	for m.base = 0; m.base < len(s.rows); m.base += lanes {
		m.live = firstLanes(len(s.rows) - m.base)
		m.undecided = m.live
		if ok {
			m.run(&prog)
		}
		m.live.each(func(lane int) {
			v := truthUnknown
			if ok {
				v = m.laneTruth(&prog, lane)
			}
			if v == truthUnknown {
				v = x.evalConjunct(s, cl, m.base+lane)
			}
			n.countOutcome(s.rows[m.base+lane], v)
		})
	}
}

// describe records a conjunct of the job with its values filled in, and its plain test. A
// conjunct that is constant for the whole segment has none.
func (n *conjunctEntry) describe(c *segmentCompiler, flat exprNode) {
	if _, constant := literalValue(flat); constant || n.Side == Right || n.isDescribed {
		return
	}
	n.isDescribed = true
	n.Substituted, n.test = Expr{unflatten(flat)}, c.plainTest(flat)
}

// row counts a row that is evaluated without columns.
func (x *explanationBuilder) row(i int, r RowID) {
	if x.job == nil {
		for _, conj := range Conjuncts(x.where) {
			x.bindRow(i)
			x.entry(Right, conj.String(), conj).countOutcome(r,
				truthStateOf(x.evaluator.withinBounds(x.evaluator.eval(conj.n, &x.evaluator.leftScope))))
		}
		return
	}
	for _, cl := range x.jobConjuncts() {
		e := Expr{withoutParens(cl.expr)}
		x.entry(Left, e.String(), e).countOutcome(r, x.evalConjunct(x.vm.segment, cl, i))
	}
	x.bindRow(i)
	willing := truthStateOf(x.rowRequirementsHold())
	name := x.table.policy[0]
	own := Expr{&attrRef{name: name, hash: hashName(name)}}
	for _, name := range x.table.policy {
		if e, ok := x.table.rows[r].ad.Lookup(name); ok {
			own = Expr{withoutParens(e.n)}
			break
		}
	}
	if willing != truthTrue {
		x.entry(Right, own.String(), own).countOutcome(r, willing)
	}
}

// explanation builds the result from the counts.
func (x *explanationBuilder) explanation() *Explanation {
	slices.SortStableFunc(x.entries, func(a, b *conjunctEntry) int { return cmp.Compare(a.Side, b.Side) })
	e := &Explanation{Rows: x.table.Len(), MostExcluding: -1, failCounts: make([]uint16, x.rows),
		firstFailing: make([]uint16, x.rows)}
	for i, n := range x.entries {
		n.failing.each(func(r int) {
			if e.failCounts[r] == 0 {
				e.firstFailing[r] = uint16(i)
			}
			e.failCounts[r]++
		})
	}
	for r := range x.rows {
		if x.table.rows[r].ad == nil {
			continue
		}
		switch e.failCounts[r] {
		case 0:
			e.Matched++
		case 1:
			x.entries[e.firstFailing[r]].countOnlyObstacle(x.table, RowID(r))
		}
	}
	for i, n := range x.entries {
		n.Pass = e.Rows - n.Excluded()
		e.Conjuncts = append(e.Conjuncts, n.ConjunctResult)
		if n.Excluded() > 0 && (e.MostExcluding < 0 || n.Excluded() > e.Conjuncts[e.MostExcluding].Excluded()) {
			e.MostExcluding = i
		}
	}
	e.Nearest = x.nearMisses(e)
	if e.Matched == 0 && e.Rows > 0 {
		e.Conflicts = x.conflicts(e.Rows)
	}
	return e
}

// countOnlyObstacle counts a row for which only this conjunct does not hold.
func (n *conjunctEntry) countOnlyObstacle(t *Table, r RowID) {
	n.OnlyObstacle++
	p := &t.rows[r]
	if !n.test.ok || n.test.ref.param >= 0 || p.segment.rowByRow || p.segment.cols[n.test.ref.col].class == classExpr {
		return
	}
	have := p.segment.cols[n.test.ref.col].value(t, p.row)
	switch same := applyOperator(opEqual, have, n.BestValue); {
	case have.kind == Undefined || have.kind == Error:
	case same.IsTrue():
		n.BestCount++
	case n.BestValue.kind == Undefined || n.test.op != opEqual && applyOperator(n.test.op, have, n.BestValue).IsTrue():
		n.BestValue, n.BestCount = have, 1
	}
}

// nearMisses returns the kinds of rows that fail fewest conjuncts.
func (x *explanationBuilder) nearMisses(e *Explanation) []NearMiss {
	least := uint16(0)
	for r := range x.rows {
		if n := e.failCounts[r]; n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	if least == 0 {
		return nil
	}
	var kinds []NearMiss
	byKey := map[string]int{}
	for r := range x.rows {
		if e.failCounts[r] != least {
			continue
		}
		var missing []int
		var key []byte
		for i, n := range x.entries {
			if n.failing.has(r) {
				missing = append(missing, i)
				key = append(key, byte(i))
			}
		}
		k, ok := byKey[string(key)]
		if !ok {
			k = len(kinds)
			byKey[string(key)] = k
			kinds = append(kinds, NearMiss{Missing: missing, Example: RowID(r)})
		}
		kinds[k].Rows++
	}
	slices.SortStableFunc(kinds, func(a, b NearMiss) int { return cmp.Compare(b.Rows, a.Rows) })
	return kinds[:min(len(kinds), maxNearMisses)]
}
