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
	Side MatchSide // whose Requirements
	// in which the conjunct stands: Requirements, or an attribute that is itself a
	// conjunct of them, such as START
	Attribute string
	Conjunct  Expr            // without the parentheses around it; the name Requirements where a side has none
	Value     Value           // of the conjunct; never true
	Operands  []ReasonOperand // the names in the conjunct, each once, in the order in which they stand
}

// ReasonOperand is a name that a conjunct mentions, with its scope and what is selected
// from it, as in TARGET.Memory or Gpu.Name.
type ReasonOperand struct {
	Expr  Expr
	Value Value
}

// Reasons says why left and right do not match: every conjunct of each side's
// Requirements that is not true, the left side's first. It is empty if and only if
// [Match] says that they match. A conjunct that is merely the name of another attribute
// of the same ad gives way to that attribute's own conjuncts.
func Reasons(left, right *Ad, env *EvalEnv) []MismatchReason {
	if left == nil {
		left = New()
	}
	if right == nil {
		right = New()
	}
	return append(reasonsOf(Left, left, right, env), reasonsOf(Right, right, left, env)...)
}

// reasonsOf is what one side objects to. The conjuncts share the bounds of one
// evaluation, so that a side takes twice as long as a match at most.
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
	if len(l.reasons) == 0 { // each conjunct by itself is true, but a bound or a random number came between
		return []MismatchReason{{Side: side, Attribute: my.labels[i].name, Conjunct: my.exprs[i], Value: whole}}
	}
	return l.reasons
}

// maxOperands is how many attributes may each be merely the name of the next.
const maxOperands = 100

// reasonCollector collects the reasons of one side.
type reasonCollector struct {
	ev      *evaluator
	side    MatchSide
	reasons []MismatchReason
}

// attribute takes the conjuncts of an attribute, which counts as under evaluation
// meanwhile, as it does in a match.
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

// namedAttribute is the place of the attribute that a conjunct consists of, if that holds
// more than a literal and is not under evaluation; else -1.
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

// operands are the names in n and their values. What a nested ad or a function that works
// inside other ads mentions means something only there.
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

// isName says whether n is a name, or selects names from one.
func isName(n exprNode) bool {
	switch n := n.(type) {
	case *attrRef, *rootRef:
		return true
	case *selectionNode:
		return isName(n.x)
	}
	return false
}
