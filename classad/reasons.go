package classad

// Side is one of the two ads of a match.
type Side uint8

// The sides.
const (
	Left Side = iota
	Right
)

func (s Side) String() string { return [...]string{"left", "right"}[s] }

// Reason is one condition that keeps two ads from matching: a conjunct of a side's Requirements that is not true.
type Reason struct {
	Side      Side      // whose Requirements
	Attribute string    // in which the conjunct stands: Requirements, or an attribute that is itself a conjunct of them, such as START
	Conjunct  Expr      // without the parentheses around it; the name Requirements where a side has none
	Value     Value     // of the conjunct; never true
	Operands  []Operand // the names in the conjunct, each once, in the order in which they stand
}

// Operand is a name that a conjunct mentions, with its scope and what is selected from it, as in TARGET.Memory or Gpu.Name.
type Operand struct {
	Expr  Expr
	Value Value
}

// Reasons says why left and right do not match: every conjunct of each side's Requirements that is not true, the left side's first. It
// is empty if and only if [Match] says that they match. A conjunct that is merely the name of another attribute of the same ad gives way
// to that attribute's own conjuncts.
func Reasons(left, right *Ad, env *Env) []Reason {
	if left == nil {
		left = New()
	}
	if right == nil {
		right = New()
	}
	return append(reasonsOf(Left, left, right, env), reasonsOf(Right, right, left, env)...)
}

// reasonsOf is what one side objects to. The conjuncts share the bounds of one evaluation, so that a side takes twice as long as a match
// at most.
func reasonsOf(side Side, my, target *Ad, env *Env) []Reason {
	const name = "Requirements"
	ev := newEvaluator(my, target, env)
	whole := ev.named(&ev.left, name)
	if whole.IsTrue() {
		return nil
	}
	i := my.index(hashName(name), name)
	if i < 0 {
		return []Reason{{Side: side, Attribute: name, Conjunct: Expr{&attrRef{name: name, hash: hashName(name)}}, Value: whole}}
	}
	l := &objector{ev: newEvaluator(my, target, env), side: side}
	l.attribute(i)
	if len(l.reasons) == 0 { // each conjunct by itself is true, but a bound or a random number came between
		return []Reason{{Side: side, Attribute: my.labels[i].name, Conjunct: my.exprs[i], Value: whole}}
	}
	return l.reasons
}

// maxNames is how many attributes may each be merely the name of the next.
const maxNames = 100

// objector collects the reasons of one side.
type objector struct {
	ev      *evaluator
	side    Side
	reasons []Reason
}

// attribute takes the conjuncts of an attribute, which counts as under evaluation meanwhile, as it does in a match.
func (l *objector) attribute(i int) {
	ev, whole := l.ev, l.ev.left.ad.exprs[i]
	ev.active = append(ev.active, active{ev.left.ad, i})
	for _, c := range Conjuncts(whole) {
		v := ev.eval(c.n, &ev.left)
		if ev.steps >= 0 && v.IsTrue() {
			continue
		}
		if k := l.names(c.n); k >= 0 && ev.steps >= 0 {
			before := len(l.reasons)
			if l.attribute(k); len(l.reasons) > before {
				continue
			}
		}
		l.reasons = append(l.reasons, Reason{l.side, ev.left.ad.labels[i].name, c, ev.bounded(v), l.operands(c.n)})
		if ev.steps < 0 {
			break
		}
	}
	ev.active = ev.active[:len(ev.active)-1]
}

// names is the place of the attribute that a conjunct consists of, if that holds more than a literal and is not under evaluation; else -1.
func (l *objector) names(n node) int {
	ad, i := l.ev.left.ad, -1
	switch n := n.(type) {
	case *attrRef:
		i = ad.index(n.hash, n.name)
	case *selection:
		if n.scope == scopeMy && !ad.hides {
			i = ad.index(n.hash, n.name)
		}
	}
	if i < 0 || len(l.ev.active) >= maxNames {
		return -1
	}
	if _, ok := ad.exprs[i].Literal(); ok {
		return -1
	}
	for _, a := range l.ev.active {
		if a.ad == ad && a.i == i {
			return -1
		}
	}
	return i
}

// operands are the names in n and their values. What a nested ad or a function that works inside other ads mentions means something
// only there.
func (l *objector) operands(n node) []Operand {
	var list []Operand
	seen := map[string]bool{}
	var walk func(n node)
	walk = func(n node) {
		switch n := n.(type) {
		case *adNode:
			return
		case *callNode:
			if foldEqual(n.name, "evalInEachContext") || foldEqual(n.name, "countMatches") {
				each(n.args[min(1, len(n.args)):], func(x node) bool { walk(x); return true })
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
			list = append(list, Operand{e, l.ev.bounded(l.ev.eval(n, &l.ev.left))})
		}
	}
	walk(n)
	return list
}

// isName says whether n is a name, or selects names from one.
func isName(n node) bool {
	switch n := n.(type) {
	case *attrRef, *rootRef:
		return true
	case *selection:
		return isName(n.x)
	}
	return false
}
