package classad

import (
	"cmp"
	"fmt"
	"slices"
)

// Explanation says which conditions keep the rows of a table from matching a request.
type Explanation struct {
	Rows      int
	Matched   int
	Conjuncts []Conjunct // the request's first, in the order in which they are written, then the rows' own
	Most      int        // the conjunct that excludes most rows; -1 if none excludes any
	Conflicts []Conflict // why no row matches; empty if some do
	Nearest   []Near     // the rows that miss least, at most maxNear kinds of them

	failing []uint16 // by row: how many conjuncts do not hold
	first   []uint16 // and the first of them
}

// Conjunct is one operand of the && of the request's Requirements, or of the rows' own, and for how many rows it holds. A row that has no
// such conjunct counts as one for which it holds.
type Conjunct struct {
	Side      Side  // Left is the request's, Right the rows'
	Expr      Expr  // as written; of a row's own, as the first of the rows with this one has it
	Means     Expr  // with the values of the request's own attributes in place of their names; as written where that is not possible
	Pass      int   // rows for which it is true
	Fail      int   // false
	Undefined int   // UNDEFINED: an attribute is missing
	Error     int   // ERROR: it makes no sense for them
	Alone     int   // rows that would match but for this
	Nearest   Value // of a comparison with a constant: the best that those rows have; UNDEFINED if there is none
	Admits    int   // how many of them have that
}

// Excludes is for how many rows the conjunct does not hold.
func (c *Conjunct) Excludes() int { return c.Fail + c.Undefined + c.Error }

// Conflict is a set of conjuncts that no row meets together. If there is more than one, each pair of a set of two is met by some rows one
// by one, and without any of a larger set some row would be left.
type Conflict struct {
	Conjuncts []int
	Always    bool // they contradict each other: no row can ever meet them
}

// Near is a kind of row that misses few conjuncts.
type Near struct {
	Missing []int // conjuncts that do not hold
	Rows    int   // how many rows miss these and no others
	Example Row   // the first of them
}

const (
	maxNear      = 5
	maxConjuncts = 256 // further ones are counted together with the last
	maxPairs     = 32  // conjuncts of which all pairs are looked at
)

// Failing is how many conjuncts do not hold for a row, and the first of them.
func (x *Explanation) Failing(r Row) (n, first int) { return int(x.failing[r]), int(x.first[r]) }

// Explain counts for each conjunct of the request's and of the rows' Requirements the rows for which it holds. A conjunct that is merely
// the name of another attribute of the same ad gives way to that attribute's own, as in [Reasons].
func (q *Query) Explain(env *Env) *Explanation {
	q.ready(env)
	t := q.table
	x := &explainer{Query: q, rows: len(t.rows), byKey: map[string]int{}}
	for _, s := range t.segments {
		if len(s.rows) > 0 {
			x.segment(s)
		}
	}
	return x.explanation()
}

// explainer makes an explanation.
type explainer struct {
	*Query
	rows    int
	entries []*entry
	byKey   map[string]int
}

// entry is a conjunct in the making.
type entry struct {
	Conjunct
	not       bitmap // rows for which it does not hold
	test      plainTest
	described bool
}

// entry is the entry of a conjunct that has a key on its side, made if it is not there.
func (x *explainer) entry(side Side, key string, e Expr) *entry {
	key = side.String() + key
	if i, ok := x.byKey[key]; ok {
		return x.entries[i]
	}
	if len(x.entries) == maxConjuncts {
		return x.entries[maxConjuncts-1]
	}
	x.byKey[key] = len(x.entries)
	n := &entry{Conjunct: Conjunct{Side: side, Expr: e, Means: e}, not: make(bitmap, x.rows/64+1)}
	x.entries = append(x.entries, n)
	return n
}

// count notes what an entry is for a row.
func (n *entry) count(r Row, v verdict) {
	if v == isTrue || n.not.has(int(r)) {
		return
	}
	n.not.set(int(r), true)
	switch v {
	case isFalse:
		n.Fail++
	case isUndef:
		n.Undefined++
	default:
		n.Error++
	}
}

// segment counts the rows of one segment.
func (x *explainer) segment(s *segment) {
	x.m.seg, x.m.picked = s, nil
	if s.loose || x.job != nil && x.job.hides {
		for i, r := range s.rows {
			x.row(i, r)
		}
		return
	}
	c := &compiler{Query: x.Query, part: &part{}, lowering: lowering{q: x.Query, seg: s}}
	x.flat.seg = s
	if x.job == nil {
		for _, conj := range Conjuncts(x.where) {
			x.conjunct(c, clause{side: Right, n: conj.n, col: -1})
		}
		return
	}
	for _, cl := range x.ofJob() {
		x.conjunct(c, cl)
	}
	for _, cl := range x.ofRows(s) {
		x.conjunct(c, cl)
	}
}

// conjunct counts the rows of the compiler's segment for one conjunct.
func (x *explainer) conjunct(c *compiler, cl clause) {
	s := c.lowering.seg
	e := x.written(s, cl)
	key := e.String()
	if cl.side == Right && cl.nth >= 0 && cl.col >= 0 { // rows with other literals have the same conjunct
		key = fmt.Sprint(" ", s.cols[cl.col].form.id, cl.nth)
	}
	n := x.entry(cl.side, key, e)
	flat, ok := c.flatten(cl.n, cl.side, cl.inside)
	var prog program
	if ok {
		x.now.seg, x.now.at = s, 0 // whose literals are shown
		n.describe(c, flat)
		prog, ok = c.program(flat)
		x.m.reserve(c.vectors, c.masks)
	}
	m := x.m
	for m.base = 0; m.base < len(s.rows); m.base += lanes {
		m.live = firstLanes(len(s.rows) - m.base)
		m.stray = m.live
		if ok {
			m.run(&prog)
		}
		m.live.each(func(lane int) {
			v := unknown
			if ok {
				v = m.verdict(&prog, lane)
			}
			if v == unknown {
				v = x.byTree(s, cl, m.base+lane)
			}
			n.count(s.rows[m.base+lane], v)
		})
	}
}

// describe notes what the flat form of a conjunct of the job's says about it, unless it is the same for a whole segment.
func (n *entry) describe(c *compiler, flat node) {
	if _, constant := literalValue(flat); constant || n.Side == Right || n.described {
		return
	}
	n.described = true
	n.Means, n.test = Expr{unflatten(flat)}, c.plainTest(flat)
}

// row counts a row that is not in columns.
func (x *explainer) row(i int, r Row) {
	if x.job == nil {
		for _, conj := range Conjuncts(x.where) {
			x.bind(i)
			x.entry(Right, conj.String(), conj).count(r, verdictOf(x.ev.bounded(x.ev.eval(conj.n, &x.ev.left))))
		}
		return
	}
	for _, cl := range x.ofJob() {
		e := Expr{bare(cl.n)}
		x.entry(Left, e.String(), e).count(r, x.byTree(x.m.seg, cl, i))
	}
	x.bind(i)
	willing := verdictOf(x.rowWilling())
	name := x.table.policy[0]
	own := Expr{&attrRef{name: name, hash: hashName(name)}}
	for _, name := range x.table.policy {
		if e, ok := x.table.rows[r].ad.Lookup(name); ok {
			own = Expr{bare(e.n)}
			break
		}
	}
	if willing != isTrue {
		x.entry(Right, own.String(), own).count(r, willing)
	}
}

// explanation puts the counts together.
func (x *explainer) explanation() *Explanation {
	slices.SortStableFunc(x.entries, func(a, b *entry) int { return cmp.Compare(a.Side, b.Side) })
	e := &Explanation{Rows: x.table.Len(), Most: -1, failing: make([]uint16, x.rows), first: make([]uint16, x.rows)}
	for i, n := range x.entries {
		n.not.each(func(r int) {
			if e.failing[r] == 0 {
				e.first[r] = uint16(i)
			}
			e.failing[r]++
		})
	}
	for r := range x.rows {
		if x.table.rows[r].ad == nil {
			continue
		}
		switch e.failing[r] {
		case 0:
			e.Matched++
		case 1:
			x.entries[e.first[r]].alone(x.table, Row(r))
		}
	}
	for i, n := range x.entries {
		n.Pass = e.Rows - n.Excludes()
		e.Conjuncts = append(e.Conjuncts, n.Conjunct)
		if n.Excludes() > 0 && (e.Most < 0 || n.Excludes() > e.Conjuncts[e.Most].Excludes()) {
			e.Most = i
		}
	}
	e.Nearest = x.nearest(e)
	if e.Matched == 0 && e.Rows > 0 {
		e.Conflicts = x.conflicts(e.Rows)
	}
	return e
}

// alone counts a row that would match but for this conjunct.
func (n *entry) alone(t *Table, r Row) {
	n.Alone++
	p := &t.rows[r]
	if !n.test.ok || n.test.ref.param >= 0 || p.seg.loose || p.seg.cols[n.test.ref.col].class == ofExpr {
		return
	}
	have := p.seg.cols[n.test.ref.col].value(t, p.at)
	switch same := apply(opEqual, have, n.Nearest); {
	case have.kind == Undefined || have.kind == Error:
	case same.IsTrue():
		n.Admits++
	case n.Nearest.kind == Undefined || n.test.op != opEqual && apply(n.test.op, have, n.Nearest).IsTrue():
		n.Nearest, n.Admits = have, 1
	}
}

// nearest are the kinds of rows that miss least.
func (x *explainer) nearest(e *Explanation) []Near {
	least := uint16(0)
	for r := range x.rows {
		if n := e.failing[r]; n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	if least == 0 {
		return nil
	}
	var kinds []Near
	byKey := map[string]int{}
	for r := range x.rows {
		if e.failing[r] != least {
			continue
		}
		var missing []int
		var key []byte
		for i, n := range x.entries {
			if n.not.has(r) {
				missing = append(missing, i)
				key = append(key, byte(i))
			}
		}
		k, ok := byKey[string(key)]
		if !ok {
			k = len(kinds)
			byKey[string(key)] = k
			kinds = append(kinds, Near{Missing: missing, Example: Row(r)})
		}
		kinds[k].Rows++
	}
	slices.SortStableFunc(kinds, func(a, b Near) int { return cmp.Compare(b.Rows, a.Rows) })
	return kinds[:min(len(kinds), maxNear)]
}
