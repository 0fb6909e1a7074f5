package classad

// template is an expression that rows of a table have in common but for its literals. Machines whose owners wrote
// KeyboardIdle > 900 and KeyboardIdle > 600 can so be asked together.
type template struct {
	id    int
	n     node    // with a param for each literal that may differ
	kinds []class // of the params
	names []int   // columns of the names that n mentions without a scope: what they mean depends on whether the ad has them
}

// param is a literal of a template, by number.
type param struct{ k int }

func (n *param) eval(*evaluator, *frame) Value { panic("classad: a template was evaluated") }

// lifted says whether an operand of an operator becomes a param.
func lifted(op operator, n node) (*literal, bool) {
	if op == opAnd || op == opOr {
		return nil, false
	}
	l, ok := n.(*literal)
	if !ok {
		return nil, false
	}
	switch l.v.kind {
	case Integer, Real, String:
		return l, true
	}
	return nil, false
}

// lift is n with params in place of literals, and the literals. It shares what has none.
func lift(n node, values *[]Value) node {
	switch n := n.(type) {
	case *paren:
		return lift(n.x, values)
	case *unary:
		return &unary{n.op, lift(n.x, values)}
	case *binary:
		x := liftOperand(n.op, n.x, values)
		return &binary{n.op, x, liftOperand(n.op, n.y, values)}
	case *elvis:
		x := lift(n.x, values)
		return &elvis{x, lift(n.y, values)}
	case *ternary:
		cond := lift(n.cond, values)
		x := lift(n.x, values)
		return &ternary{cond, x, lift(n.y, values)}
	}
	return n
}

func liftOperand(op operator, n node, values *[]Value) node {
	if l, ok := lifted(op, n); ok {
		*values = append(*values, l.v)
		return &param{len(*values) - 1}
	}
	return lift(n, values)
}

// fits says whether n is the template's expression with other literals, which it appends to values.
func (t *template) fits(n node, values []Value) ([]Value, bool) { return fits(t, t.n, n, values) }

func fits(t *template, m, n node, values []Value) ([]Value, bool) {
	if p, ok := n.(*paren); ok {
		return fits(t, m, p.x, values)
	}
	ok := false
	switch m := m.(type) {
	case *param:
		if l, ok := n.(*literal); ok && classOf(l.v.kind) == t.kinds[m.k] && len(values) == m.k {
			return append(values, l.v), true
		}
		return values, false
	case *unary:
		if n, same := n.(*unary); same && n.op == m.op {
			return fits(t, m.x, n.x, values)
		}
		return values, false
	case *binary:
		if n, same := n.(*binary); same && n.op == m.op {
			if values, ok = fits(t, m.x, n.x, values); ok {
				return fits(t, m.y, n.y, values)
			}
		}
		return values, false
	case *elvis:
		if n, same := n.(*elvis); same {
			if values, ok = fits(t, m.x, n.x, values); ok {
				return fits(t, m.y, n.y, values)
			}
		}
		return values, false
	case *ternary:
		if n, same := n.(*ternary); same {
			if values, ok = fits(t, m.cond, n.cond, values); !ok {
				return values, false
			}
			if values, ok = fits(t, m.x, n.x, values); ok {
				return fits(t, m.y, n.y, values)
			}
		}
		return values, false
	}
	return values, same(m, n)
}

// same says whether two expressions are written alike, names compared without regard to case.
func same(m, n node) bool {
	switch m := m.(type) {
	case nil:
		return n == nil
	case *literal:
		n, ok := n.(*literal)
		return ok && m.v.kind == n.v.kind && m.v.num == n.v.num && m.v.off == n.v.off && m.v.str == n.v.str && m.v.comp == n.v.comp
	case *attrRef:
		n, ok := n.(*attrRef)
		return ok && m.hash == n.hash && m.scope == n.scope && foldEqual(m.name, n.name)
	case *rootRef:
		n, ok := n.(*rootRef)
		return ok && m.hash == n.hash && foldEqual(m.name, n.name)
	case *selection:
		n, ok := n.(*selection)
		return ok && m.hash == n.hash && m.scope == n.scope && foldEqual(m.name, n.name) && same(m.x, n.x)
	case *index:
		n, ok := n.(*index)
		return ok && same(m.x, n.x) && same(m.i, n.i)
	case *unary:
		n, ok := n.(*unary)
		return ok && m.op == n.op && same(m.x, n.x)
	case *binary:
		n, ok := n.(*binary)
		return ok && m.op == n.op && same(m.x, n.x) && same(m.y, n.y)
	case *elvis:
		n, ok := n.(*elvis)
		return ok && same(m.x, n.x) && same(m.y, n.y)
	case *ternary:
		n, ok := n.(*ternary)
		return ok && same(m.cond, n.cond) && same(m.x, n.x) && same(m.y, n.y)
	case *paren:
		n, ok := n.(*paren)
		return ok && same(m.x, n.x)
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
		if !same(a[i].n, b[i].n) {
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
		if a.labels[i] != b.labels[i] || !same(a.exprs[i].n, b.exprs[i].n) {
			return false
		}
	}
	return true
}
