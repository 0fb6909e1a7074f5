package classad

import "slices"

// clause is one conjunct of one side, and the attributes inside which it stands.
type clause struct {
	side   Side
	n      node
	inside []within
	col    int // of the rows' own: the column in whose expression it stands
	nth    int // and its number there
}

// maxSpread bounds how many names give way to what they stand for: each may stand for many others.
const maxSpread = 64

// ofJob are the conjuncts of the job's Requirements; these as a whole if there are too many.
func (x *explainer) ofJob() (list []clause) {
	name := &rootRef{"Requirements", hashName("Requirements")}
	i := x.job.index(name.hash, name.name)
	if i < 0 {
		return []clause{{side: Left, n: name}}
	}
	spreads := 0
	var spread func(i int, inside []within)
	spread = func(i int, inside []within) {
		spreads++
		inside = append(inside[:len(inside):len(inside)], within{Left, i})
		for _, conj := range Conjuncts(x.job.exprs[i]) {
			if k := ownName(x.job, conj.n); k >= 0 && spreads < maxSpread && !slices.Contains(inside, within{Left, k}) {
				if _, plain := x.job.exprs[k].Literal(); !plain {
					spread(k, inside)
					continue
				}
			}
			list = append(list, clause{side: Left, n: conj.n, inside: inside})
		}
	}
	if spread(i, nil); len(list) > maxConjuncts {
		return []clause{{side: Left, n: x.job.exprs[i].n, inside: []within{{Left, i}}}}
	}
	return list
}

// ownName is the place of the attribute of ad that n is merely the name of, or -1.
func ownName(ad *Ad, n node) int {
	switch n := n.(type) {
	case *attrRef:
		return ad.index(n.hash, n.name)
	case *selection:
		if n.scope == scopeMy {
			return ad.index(n.hash, n.name)
		}
	}
	return -1
}

// ofRows are the conjuncts of the own requirements of a segment's rows.
func (x *explainer) ofRows(s *segment) (list []clause) {
	spreads := 0
	var spread func(k int, inside []within)
	spread = func(k int, inside []within) {
		spreads++
		inside = append(inside[:len(inside):len(inside)], within{Right, k})
		for nth, conj := range Conjuncts(Expr{s.cols[k].form.n}) {
			if c := x.ownColumn(s, conj.n); c >= 0 && spreads < maxSpread && !slices.Contains(inside, within{Right, c}) {
				spread(c, inside)
				continue
			}
			list = append(list, clause{side: Right, n: conj.n, inside: inside, col: k, nth: nth})
		}
	}
	for _, k := range x.table.policyColumns {
		if !s.there.has(k) {
			continue
		}
		if s.cols[k].class == ofExpr {
			if spread(k, nil); len(list) <= maxConjuncts {
				return list
			}
		}
		a := &x.table.attrs[k]
		return []clause{{side: Right, n: &rootRef{a.name, a.hash}, col: k, nth: -1}}
	}
	if !x.table.lax {
		list = []clause{{side: Right, n: undefinedNode, col: -1}}
	}
	return list
}

// ownColumn is the column with expressions that n is merely the name of, or -1.
func (x *explainer) ownColumn(s *segment, n node) int {
	name := ""
	switch n := n.(type) {
	case *attrRef:
		name = n.name
	case *selection:
		if n.scope == scopeMy {
			name = n.name
		}
	}
	c, ok := x.table.byName[lowerASCII(name)]
	if !ok || c >= len(s.cols) || s.cols[c].class != ofExpr {
		return -1
	}
	return c
}

// written is a conjunct as it was written; of the rows' own, as the first row has it.
func (x *explainer) written(s *segment, cl clause) Expr {
	if cl.side == Left || x.job == nil {
		return Expr{bare(cl.n)}
	}
	if cl.col < 0 {
		return Expr{&attrRef{name: x.table.policy[0], hash: hashName(x.table.policy[0])}}
	}
	e, _ := x.table.rows[s.rows[0]].ad.Lookup(x.table.attrs[cl.col].name)
	if cl.nth < 0 {
		return Expr{bare(e.n)}
	}
	return Conjuncts(e)[cl.nth]
}

// byTree evaluates a conjunct for a row.
func (x *explainer) byTree(s *segment, cl clause, i int) verdict {
	x.bind(i)
	f := &x.ev.left
	if cl.side == Right && x.job != nil {
		f = &x.ev.right
	}
	n := cl.n
	for _, in := range cl.inside {
		k := in.i
		if in.at == Right {
			a := &x.table.attrs[in.i]
			k = f.ad.index(a.hash, a.name)
		}
		x.ev.active = append(x.ev.active, active{f.ad, k})
	}
	if cl.side == Right && cl.col >= 0 && cl.nth >= 0 {
		a := &x.table.attrs[cl.col]
		n = Conjuncts(f.ad.exprs[f.ad.index(a.hash, a.name)])[cl.nth].n
	}
	return verdictOf(x.ev.bounded(x.ev.eval(n, f)))
}
