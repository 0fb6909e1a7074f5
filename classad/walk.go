package classad

import (
	"slices"
	"strings"
)

// Conjuncts are the operands of the && at the top of e, from left to right, without the parentheses around them; e itself if there
// is no &&.
func Conjuncts(e Expr) []Expr {
	n := bare(e.n)
	if b, ok := n.(*binary); ok && b.op == opAnd {
		return append(Conjuncts(Expr{b.x}), Conjuncts(Expr{b.y})...)
	}
	return []Expr{{n}}
}

// bare is n without the parentheses around it.
func bare(n node) node {
	for {
		p, ok := n.(*paren)
		if !ok {
			return n
		}
		n = p.x
	}
}

// References are the names that e mentions, each once, sorted without regard to case: those scoped MY (or self), those scoped TARGET
// (or other), and those without a scope. Of a.b.c the name is a, or b behind MY or TARGET. Names inside nested ads count too.
func References(e Expr) (my, target, unscoped []string) {
	var r references
	r.walk(e.n)
	return r[scopeMy].sorted(), r[scopeTarget].sorted(), r[scopeNone].sorted()
}

type nameSet []string

type references [scopeTarget + 1]nameSet

func (r *references) walk(n node) {
	switch n := n.(type) {
	case *attrRef:
		if n.scope == scopeNone {
			r[scopeNone] = append(r[scopeNone], n.name)
		}
		return
	case *rootRef:
		r[scopeMy] = append(r[scopeMy], n.name)
		return
	case *selection:
		if n.scope == scopeMy || n.scope == scopeTarget {
			r[n.scope] = append(r[n.scope], n.name)
			return
		}
	}
	for child := range children(n) {
		r.walk(child)
	}
}

// sorted is the set without doubles.
func (s nameSet) sorted() []string {
	slices.SortFunc(s, foldCompare)
	return slices.CompactFunc(s, strings.EqualFold)
}

// children ranges over the nodes right below n.
func children(n node) func(yield func(node) bool) {
	return func(yield func(node) bool) {
		switch n := n.(type) {
		case *selection:
			yield(n.x)
		case *index:
			_ = yield(n.x) && yield(n.i)
		case *unary:
			yield(n.x)
		case *binary:
			_ = yield(n.x) && yield(n.y)
		case *elvis:
			_ = yield(n.x) && yield(n.y)
		case *ternary:
			_ = yield(n.cond) && yield(n.x) && yield(n.y)
		case *paren:
			yield(n.x)
		case *callNode:
			each(n.args, yield)
		case *fixed:
			yield(Value{kind: n.v.kind, comp: &composite{elems: n.v.comp.elems, ad: n.v.comp.ad}}.Expr().n)
		case *listNode:
			each(n.elems, yield)
		case *adNode:
			for i := range n.ad.labels {
				if !yield(n.ad.exprs[i].n) {
					return
				}
			}
		}
	}
}

func each(elems []Expr, yield func(node) bool) {
	for _, e := range elems {
		if !yield(e.n) {
			return
		}
	}
}
