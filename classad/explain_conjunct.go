package classad

import "slices"

// sideConjunct is one conjunct of one side, with the attributes that contain it.
type sideConjunct struct {
	side       MatchSide
	expr       exprNode
	attributes []inlinedAttr
	column     int // of a row's own conjunct: the column whose expression contains it
	number     int // its number in that expression
}

// maxConjunctNesting bounds how deep names are replaced by their conjuncts: each may
// stand for many others.
const maxConjunctNesting = 64

// jobConjuncts returns the conjuncts of the job's Requirements, or these as a whole if
// there are too many.
func (x *explanationBuilder) jobConjuncts() (list []sideConjunct) {
	name := &rootRef{"Requirements", hashName("Requirements")}
	i := x.job.labelIndex(name.hash, name.name)
	if i < 0 {
		return []sideConjunct{{side: Left, expr: name}}
	}
	spreads := 0
	var spread func(i int, inside []inlinedAttr)
	spread = func(i int, inside []inlinedAttr) {
		spreads++
		inside = append(inside[:len(inside):len(inside)], inlinedAttr{Left, i})
		for _, conj := range Conjuncts(x.job.exprs[i]) {
			if k := namedAttribute(x.job, conj.n); k >= 0 && spreads < maxConjunctNesting &&
				!slices.Contains(inside, inlinedAttr{Left, k}) {
				if _, plain := x.job.exprs[k].Literal(); !plain {
					spread(k, inside)
					continue
				}
			}
			list = append(list, sideConjunct{side: Left, expr: conj.n, attributes: inside})
		}
	}
	if spread(i, nil); len(list) > maxConjuncts {
		return []sideConjunct{{side: Left, expr: x.job.exprs[i].n, attributes: []inlinedAttr{{Left, i}}}}
	}
	return list
}

// namedAttribute returns the index of the attribute of ad of which n is only the name, or
// -1.
func namedAttribute(ad *Ad, n exprNode) int {
	switch n := n.(type) {
	case *attrRef:
		return ad.labelIndex(n.hash, n.name)
	case *selectionNode:
		if n.scope == scopeMy {
			return ad.labelIndex(n.hash, n.name)
		}
	}
	return -1
}

// rowConjuncts returns the conjuncts of the requirements of a segment's rows.
func (x *explanationBuilder) rowConjuncts(s *tableSegment) (list []sideConjunct) {
	spreads := 0
	var spread func(k int, inside []inlinedAttr)
	spread = func(k int, inside []inlinedAttr) {
		spreads++
		inside = append(inside[:len(inside):len(inside)], inlinedAttr{Right, k})
		for nth, conj := range Conjuncts(Expr{s.cols[k].template.expr}) {
			if c := x.namedColumn(s, conj.n); c >= 0 && spreads < maxConjunctNesting &&
				!slices.Contains(inside, inlinedAttr{Right, c}) {
				spread(c, inside)
				continue
			}
			list = append(list, sideConjunct{side: Right, expr: conj.n, attributes: inside, column: k, number: nth})
		}
	}
	for _, k := range x.table.policyColumns {
		if !s.presentAttrs.has(k) {
			continue
		}
		if s.cols[k].class == classExpr {
			if spread(k, nil); len(list) <= maxConjuncts {
				return list
			}
		}
		a := &x.table.attrs[k]
		return []sideConjunct{{side: Right, expr: &rootRef{a.name, a.hash}, column: k, number: -1}}
	}
	if !x.table.matchAllByDefault {
		list = []sideConjunct{{side: Right, expr: undefinedNode, column: -1}}
	}
	return list
}

// namedColumn returns the column with expressions of which n is only the name, or -1.
func (x *explanationBuilder) namedColumn(s *tableSegment, n exprNode) int {
	name := ""
	switch n := n.(type) {
	case *attrRef:
		name = n.name
	case *selectionNode:
		if n.scope == scopeMy {
			name = n.name
		}
	}
	c, ok := x.table.byName[lowerASCII(name)]
	if !ok || c >= len(s.cols) || s.cols[c].class != classExpr {
		return -1
	}
	return c
}

// writtenConjunct returns a conjunct as it was written; of the rows' own, as the first
// row has it.
func (x *explanationBuilder) writtenConjunct(s *tableSegment, cl sideConjunct) Expr {
	if cl.side == Left || x.job == nil {
		return Expr{withoutParens(cl.expr)}
	}
	if cl.column < 0 {
		return Expr{&attrRef{name: x.table.policy[0], hash: hashName(x.table.policy[0])}}
	}
	e, _ := x.table.rows[s.rows[0]].ad.Lookup(x.table.attrs[cl.column].name)
	if cl.number < 0 {
		return Expr{withoutParens(e.n)}
	}
	return Conjuncts(e)[cl.number]
}

// evalConjunct evaluates a conjunct for a row.
func (x *explanationBuilder) evalConjunct(s *tableSegment, cl sideConjunct, i int) truthState {
	x.bindRow(i)
	f := &x.evaluator.leftScope
	if cl.side == Right && x.job != nil {
		f = &x.evaluator.rightScope
	}
	n := cl.expr
	for _, in := range cl.attributes {
		k := in.index
		if in.side == Right {
			a := &x.table.attrs[in.index]
			k = f.ad.labelIndex(a.hash, a.name)
		}
		x.evaluator.activeAttrs = append(x.evaluator.activeAttrs, activeAttr{f.ad, k})
	}
	if cl.side == Right && cl.column >= 0 && cl.number >= 0 {
		a := &x.table.attrs[cl.column]
		n = Conjuncts(f.ad.exprs[f.ad.labelIndex(a.hash, a.name)])[cl.number].n
	}
	return truthStateOf(x.evaluator.withinBounds(x.evaluator.eval(n, f)))
}
