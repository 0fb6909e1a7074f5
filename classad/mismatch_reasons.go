package classad

// MatchSide is one of the two ads of a match.
type MatchSide uint8

// The sides.
const (
	Left MatchSide = iota
	Right
)

func (s MatchSide) String() string { return [...]string{"left", "right"}[s] }

// MismatchReason is one condition that keeps two ads from matching: a conjunct of a
// side's Requirements that is not true.
type MismatchReason struct {
	Side MatchSide // the side whose Requirements contain the conjunct
	// the attribute that contains the conjunct: Requirements, or one that is itself a
	// conjunct of them, such as START
	Attribute string
	Conjunct  Expr            // without parentheses around it; the name Requirements where a side has none
	Value     Value           // value of the conjunct; never true
	Operands  []ReasonOperand // the names in the conjunct, each once, in their order
}

// ReasonOperand is a name in a conjunct, with its scope and its selections. Examples are
// TARGET.Memory and Gpu.Name.
type ReasonOperand struct {
	Expr  Expr
	Value Value
}

// Reasons explains why left and right do not match. It returns every conjunct of each
// side's Requirements that is not true, the left side's first. The result is empty if and
// only if the ads match in [Match]. A conjunct that is only the name of another attribute
// of the same ad is replaced by that attribute's conjuncts.
func Reasons(left, right *Ad, env *EvalEnv) []MismatchReason {
	if left == nil {
		left = New()
	}
	if right == nil {
		right = New()
	}
	return append(reasonsOf(Left, left, right, env), reasonsOf(Right, right, left, env)...)
}

// reasonsOf returns the reasons of one side. The conjuncts share the bounds of one
// evaluation, so a side takes at most twice as long as a match.
func reasonsOf(side MatchSide, my, target *Ad, env *EvalEnv) []MismatchReason {
	const name = "Requirements"
	ev := newEvaluator(my, target, env)
	whole := ev.evalOwn(&ev.leftScope, name)
	if whole.IsTrue() {
		return nil
	}
	i := my.labelIndex(hashName(name), name)
	if i < 0 {
		return []MismatchReason{{Side: side, Attribute: name,
			Conjunct: Expr{&attrRef{name: name, hash: hashName(name)}}, Value: whole}}
	}
	l := &reasonCollector{ev: newEvaluator(my, target, env), side: side}
	l.attribute(i)
	if len(l.reasons) == 0 { // each conjunct alone is true, but a bound or a random number made the whole false
		return []MismatchReason{{Side: side, Attribute: my.labels[i].name, Conjunct: my.exprs[i], Value: whole}}
	}
	return l.reasons
}

// maxOperands is the longest chain of attributes that are each only the name of the next.
const maxOperands = 100

// reasonCollector collects the reasons of one side.
type reasonCollector struct {
	ev      *evaluator
	side    MatchSide
	reasons []MismatchReason
}

// attribute adds the conjuncts of an attribute. Meanwhile the attribute counts as under
// evaluation, as in a match.
func (l *reasonCollector) attribute(i int) {
	ev, whole := l.ev, l.ev.leftScope.ad.exprs[i]
	ev.activeAttrs = append(ev.activeAttrs, activeAttr{ev.leftScope.ad, i})
	for _, c := range Conjuncts(whole) {
		v := ev.eval(c.n, &ev.leftScope)
		if ev.stepsLeft >= 0 && v.IsTrue() {
			continue
		}
		if k := l.namedAttribute(c.n); k >= 0 && ev.stepsLeft >= 0 {
			before := len(l.reasons)
			if l.attribute(k); len(l.reasons) > before {
				continue
			}
		}
		l.reasons = append(l.reasons, MismatchReason{l.side, ev.leftScope.ad.labels[i].name, c, ev.withinBounds(v),
			l.operands(c.n)})
		if ev.stepsLeft < 0 {
			break
		}
	}
	ev.activeAttrs = ev.activeAttrs[:len(ev.activeAttrs)-1]
}

// namedAttribute returns the index of the attribute of which a conjunct is only the name.
// It returns -1 if the attribute is a literal or is under evaluation.
func (l *reasonCollector) namedAttribute(n exprNode) int {
	ad, i := l.ev.leftScope.ad, -1
	switch n := n.(type) {
	case *attrRef:
		i = ad.labelIndex(n.hash, n.name)
	case *selectionNode:
		if n.scope == scopeMy && !ad.hasReservedNames {
			i = ad.labelIndex(n.hash, n.name)
		}
	}
	if i < 0 || len(l.ev.activeAttrs) >= maxOperands {
		return -1
	}
	if _, ok := ad.exprs[i].Literal(); ok {
		return -1
	}
	for _, a := range l.ev.activeAttrs {
		if a.ad == ad && a.i == i {
			return -1
		}
	}
	return i
}

// operands returns the names in n and their values. Names inside a nested ad, or in an
// argument that a function evaluates in other ads, have a meaning only there and are left
// out.
func (l *reasonCollector) operands(n exprNode) []ReasonOperand {
	var list []ReasonOperand
	seen := map[string]bool{}
	var walk func(n exprNode)
	walk = func(n exprNode) {
		switch n := n.(type) {
		case *adNode:
			return
		case *callNode:
			if foldEqual(n.name, "evalInEachContext") || foldEqual(n.name, "countMatches") {
				eachExpr(n.args[min(1, len(n.args)):], func(x exprNode) bool { walk(x); return true })
				return
			}
		}
		if !isName(n) {
			for child := range children(n) {
				walk(child)
			}
			return
		}
		e := Expr{n}
		if key := lowerASCII(e.String()); !seen[key] {
			seen[key] = true
			list = append(list, ReasonOperand{e, l.ev.withinBounds(l.ev.eval(n, &l.ev.leftScope))})
		}
	}
	walk(n)
	return list
}

// isName reports whether n is a name or a selection from one.
func isName(n exprNode) bool {
	switch n := n.(type) {
	case *attrRef, *rootRef:
		return true
	case *selectionNode:
		return isName(n.x)
	}
	return false
}
