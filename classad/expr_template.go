package classad

// exprTemplate is an expression that the rows of a segment share except for its literals.
// With it, one program serves machines whose owners wrote KeyboardIdle > 900 and
// KeyboardIdle > 600.
type exprTemplate struct {
	id    int
	expr  exprNode      // with a templateParam for each literal that may differ
	kinds []columnClass // of the params
	// columns of the names in the expression without a scope, whose meaning depends on
	// whether the ad has them
	names []int
}

// templateParam stands for a literal of a template, by number.
type templateParam struct{ index int }

func (n *templateParam) eval(*evaluator, *nameScope) Value {
	panic("classad: a template was evaluated")
}

// isLifted reports whether an operand of an operator becomes a templateParam.
func isLifted(op exprOperator, n exprNode) (*literalNode, bool) {
	if op == opAnd || op == opOr {
		return nil, false
	}
	l, ok := n.(*literalNode)
	if !ok {
		return nil, false
	}
	switch l.v.kind {
	case Integer, Real, String:
		return l, true
	}
	return nil, false
}

// liftLiterals returns n with templateParams in place of literals, and appends the
// literals to values. It shares subtrees without literals.
func liftLiterals(n exprNode, values *[]Value) exprNode {
	switch n := n.(type) {
	case *parenNode:
		return liftLiterals(n.x, values)
	case *unaryNode:
		return &unaryNode{n.op, liftLiterals(n.x, values)}
	case *binaryNode:
		x := liftOperand(n.op, n.x, values)
		return &binaryNode{n.op, x, liftOperand(n.op, n.y, values)}
	case *elvisNode:
		x := liftLiterals(n.x, values)
		return &elvisNode{x, liftLiterals(n.y, values)}
	case *ternaryNode:
		cond := liftLiterals(n.cond, values)
		x := liftLiterals(n.x, values)
		return &ternaryNode{cond, x, liftLiterals(n.y, values)}
	}
	return n
}

func liftOperand(op exprOperator, n exprNode, values *[]Value) exprNode {
	if l, ok := isLifted(op, n); ok {
		*values = append(*values, l.v)
		return &templateParam{len(*values) - 1}
	}
	return liftLiterals(n, values)
}

// fits reports whether n is the template's expression with other literals, and appends
// these to values.
func (t *exprTemplate) fits(n exprNode, values []Value) ([]Value, bool) {
	return exprFits(t, t.expr, n, values)
}

func exprFits(t *exprTemplate, m, n exprNode, values []Value) ([]Value, bool) {
	if p, ok := n.(*parenNode); ok {
		return exprFits(t, m, p.x, values)
	}
	ok := false
	switch m := m.(type) {
	case *templateParam:
		if l, ok := n.(*literalNode); ok && classOf(l.v.kind) == t.kinds[m.index] && len(values) == m.index {
			return append(values, l.v), true
		}
		return values, false
	case *unaryNode:
		if n, same := n.(*unaryNode); same && n.op == m.op {
			return exprFits(t, m.x, n.x, values)
		}
		return values, false
	case *binaryNode:
		if n, same := n.(*binaryNode); same && n.op == m.op {
			if values, ok = exprFits(t, m.x, n.x, values); ok {
				return exprFits(t, m.y, n.y, values)
			}
		}
		return values, false
	case *elvisNode:
		if n, same := n.(*elvisNode); same {
			if values, ok = exprFits(t, m.x, n.x, values); ok {
				return exprFits(t, m.y, n.y, values)
			}
		}
		return values, false
	case *ternaryNode:
		if n, same := n.(*ternaryNode); same {
			if values, ok = exprFits(t, m.cond, n.cond, values); !ok {
				return values, false
			}
			if values, ok = exprFits(t, m.x, n.x, values); ok {
				return exprFits(t, m.y, n.y, values)
			}
		}
		return values, false
	}
	return values, sameExpr(m, n)
}

// sameExpr reports whether two expressions are written alike, with names compared without
// regard to case.
func sameExpr(m, n exprNode) bool {
	switch m := m.(type) {
	case nil:
		return n == nil
	case *literalNode:
		n, ok := n.(*literalNode)
		return ok && m.v.kind == n.v.kind && m.v.num == n.v.num && m.v.off == n.v.off && m.v.str == n.v.str &&
			m.v.comp == n.v.comp
	case *attrRef:
		n, ok := n.(*attrRef)
		return ok && m.hash == n.hash && m.scope == n.scope && foldEqual(m.name, n.name)
	case *rootRef:
		n, ok := n.(*rootRef)
		return ok && m.hash == n.hash && foldEqual(m.name, n.name)
	case *selectionNode:
		n, ok := n.(*selectionNode)
		return ok && m.hash == n.hash && m.scope == n.scope && foldEqual(m.name, n.name) && sameExpr(m.x, n.x)
	case *subscriptNode:
		n, ok := n.(*subscriptNode)
		return ok && sameExpr(m.x, n.x) && sameExpr(m.i, n.i)
	case *unaryNode:
		n, ok := n.(*unaryNode)
		return ok && m.op == n.op && sameExpr(m.x, n.x)
	case *binaryNode:
		n, ok := n.(*binaryNode)
		return ok && m.op == n.op && sameExpr(m.x, n.x) && sameExpr(m.y, n.y)
	case *elvisNode:
		n, ok := n.(*elvisNode)
		return ok && sameExpr(m.x, n.x) && sameExpr(m.y, n.y)
	case *ternaryNode:
		n, ok := n.(*ternaryNode)
		return ok && sameExpr(m.cond, n.cond) && sameExpr(m.x, n.x) && sameExpr(m.y, n.y)
	case *parenNode:
		n, ok := n.(*parenNode)
		return ok && sameExpr(m.x, n.x)
	case *callNode:
		n, ok := n.(*callNode)
		return ok && foldEqual(m.name, n.name) && sameList(m.args, n.args)
	case *listNode:
		n, ok := n.(*listNode)
		return ok && sameList(m.elems, n.elems)
	case *adNode:
		n, ok := n.(*adNode)
		return ok && sameAd(m.ad, n.ad)
	}
	return m == n
}

func sameList(a, b []Expr) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !sameExpr(a[i].n, b[i].n) {
			return false
		}
	}
	return true
}

func sameAd(a, b *Ad) bool {
	if len(a.labels) != len(b.labels) {
		return false
	}
	for i := range a.labels {
		if a.labels[i] != b.labels[i] || !sameExpr(a.exprs[i].n, b.exprs[i].n) {
			return false
		}
	}
	return true
}
