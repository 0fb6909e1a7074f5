package classad

import (
	"slices"
	"strings"
)

// Conjuncts returns the operands of the && at the top of e, from left to right.
// Parentheses around them are removed. Without an && the result is e itself.
func Conjuncts(e Expr) []Expr {
	n := withoutParens(e.n)
	if b, ok := n.(*binaryNode); ok && b.op == opAnd {
		return append(Conjuncts(Expr{b.x}), Conjuncts(Expr{b.y})...)
	}
	return []Expr{{n}}
}

// withoutParens returns n without parentheses around it.
func withoutParens(n exprNode) exprNode {
	for {
		p, ok := n.(*parenNode)
		if !ok {
			return n
		}
		n = p.x
	}
}

// References returns the names in e, each once, sorted without regard to case. The three
// lists have the names scoped MY (or self), those scoped TARGET (or other), and those
// without a scope. Of a.b.c the name is a, or b after MY or TARGET. Names inside nested
// ads count, too.
func References(e Expr) (my, target, unscoped []string) {
	var r refCollector
	r.walk(e.n)
	return r[scopeMy].sorted(), r[scopeTarget].sorted(), r[scopeNone].sorted()
}

type nameSet []string

type refCollector [scopeTarget + 1]nameSet

func (r *refCollector) walk(n exprNode) {
	switch n := n.(type) {
	case *attrRef:
		if n.scope == scopeNone {
			r[scopeNone] = append(r[scopeNone], n.name)
		}
		return
	case *rootRef:
		r[scopeMy] = append(r[scopeMy], n.name)
		return
	case *selectionNode:
		if n.scope == scopeMy || n.scope == scopeTarget {
			r[n.scope] = append(r[n.scope], n.name)
			return
		}
	}
	for child := range children(n) {
		r.walk(child)
	}
}

// sorted returns the set as a list without duplicates.
func (s nameSet) sorted() []string {
	slices.SortFunc(s, foldCompare)
	return slices.CompactFunc(s, strings.EqualFold)
}

// children ranges over the direct children of n.
func children(n exprNode) func(yield func(exprNode) bool) {
	return func(yield func(exprNode) bool) {
		switch n := n.(type) {
		case *selectionNode:
			yield(n.x)
		case *subscriptNode:
			_ = yield(n.x) && yield(n.i)
		case *unaryNode:
			yield(n.x)
		case *binaryNode:
			_ = yield(n.x) && yield(n.y)
		case *elvisNode:
			_ = yield(n.x) && yield(n.y)
		case *ternaryNode:
			_ = yield(n.cond) && yield(n.x) && yield(n.y)
		case *parenNode:
			yield(n.x)
		case *callNode:
			eachExpr(n.args, yield)
		case *boundValue:
			yield(Value{kind: n.v.kind, comp: &compositeValue{elems: n.v.comp.elems, ad: n.v.comp.ad}}.Expr().n)
		case *listNode:
			eachExpr(n.elems, yield)
		case *adNode:
			for i := range n.ad.labels {
				if !yield(n.ad.exprs[i].n) {
					return
				}
			}
		}
	}
}

func eachExpr(elems []Expr, yield func(exprNode) bool) {
	for _, e := range elems {
		if !yield(e.n) {
			return
		}
	}
}
