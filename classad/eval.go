package classad

import "time"

// EvalEnv is the environment of an evaluation: time, random numbers and a bound. A nil
// *EvalEnv is an empty one.
type EvalEnv struct {
	// the result of time(); its location is the local time zone; the zero time means the
	// epoch in UTC
	Now    time.Time
	Random func() float64 // random numbers in [0, 1); nil: random() is ERROR
	Steps  int            // nodes evaluated before the result is ERROR; 0 means MaxSteps
	Text   int            // bytes of strings and lists made until then; 0 means 16 MiB
}

// Bounds on an evaluation. An evaluation that exceeds one is ERROR as a whole.
const (
	MaxSteps = 10_000_000 // nodes evaluated
	maxNest  = 10_000     // nodes and attributes inside each other
	maxText  = 16 << 20   // bytes of strings and lists made during the evaluation
)

// Eval evaluates an attribute. A missing one is UNDEFINED.
func (a *Ad) Eval(name string, env *EvalEnv) Value {
	i := a.labelIndex(hashName(name), name)
	if i < 0 {
		return Value{}
	}
	if l, ok := a.exprs[i].n.(*literalNode); ok {
		return l.v
	}
	ev := newEvaluator(a, nil, env)
	return ev.withinBounds(ev.attribute(&ev.leftScope, i))
}

// Eval evaluates e with the names of my first, then of target. Either may be nil.
func Eval(e Expr, my, target *Ad, env *EvalEnv) Value {
	if l, ok := e.n.(*literalNode); ok {
		return l.v
	}
	ev := newEvaluator(my, target, env)
	return ev.withinBounds(ev.eval(e.n, &ev.leftScope))
}

// nameScope is a scope for names: an ad, its enclosing ads, and the other ad of a match.
type nameScope struct {
	ad     *Ad
	parent *nameScope // scope of the enclosing ad; nil at the root
	other  *nameScope // root scope of the other ad; nil outside a match

	reachesOther bool // names are looked up in other even if parent is not nil
}

func (f *nameScope) root() *nameScope {
	for f.parent != nil {
		f = f.parent
	}
	return f
}

// nested returns the scope of an ad nested in f.
func (f *nameScope) nested(ad *Ad) *nameScope { return &nameScope{ad: ad, parent: f, other: f.other} }

// evaluator holds the state of one evaluation: its bounds and the attributes under
// evaluation.
type evaluator struct {
	env       *EvalEnv
	stepsLeft int // nodes that may still be evaluated
	depth     int
	textLeft  int // bytes that may still be made
	// the evaluation used more than its own ad: an outer or another ad, the clock, a
	// random number, or an attribute that depends on itself
	impure                bool
	bound                 errorCause // the bound that was exceeded first
	leftScope, rightScope nameScope
	emptyScope            Ad
	activeAttrs           []activeAttr
	firstActive           [8]activeAttr
}

// activeAttr is an attribute under evaluation. One that depends on itself is UNDEFINED.
type activeAttr struct {
	ad *Ad
	i  int
}

func newEvaluator(my, target *Ad, env *EvalEnv) *evaluator {
	ev := &evaluator{env: env, stepsLeft: MaxSteps, textLeft: maxText}
	if env != nil && env.Steps > 0 {
		ev.stepsLeft = env.Steps
	}
	if env != nil && env.Text > 0 {
		ev.textLeft = env.Text
	}
	ev.activeAttrs = ev.firstActive[:0]
	if my == nil {
		my = &ev.emptyScope
	}
	ev.leftScope.ad = my
	if target != nil {
		ev.rightScope = nameScope{ad: target, other: &ev.leftScope}
		ev.leftScope.other = &ev.rightScope
	}
	return ev
}

// eval evaluates n in f within the bounds.
func (ev *evaluator) eval(n exprNode, f *nameScope) Value {
	if l, ok := n.(*literalNode); ok {
		return l.v
	}
	if n == nil {
		return Value{}
	}
	if ev.stepsLeft--; ev.stepsLeft < 0 || ev.depth >= maxNest {
		ev.failAtBound(tooManySteps)
		return ErrorValue()
	}
	ev.depth++
	var v Value
	switch n := n.(type) { // most nodes are of these types, and a direct call is faster
	case *binaryNode:
		v = n.eval(ev, f)
	case *selectionNode:
		v = n.eval(ev, f)
	case *attrRef:
		v = n.eval(ev, f)
	default:
		v = n.eval(ev, f)
	}
	ev.depth--
	return v
}

// element evaluates an element of a list for a function or a selection in scope f.
// Upstream's lists have no scope of their own: names in them are looked up where they are
// used. Only nested ads and lists retain the scope in which they were written.
func (ev *evaluator) element(list Value, n exprNode, f *nameScope) Value {
	switch n.(type) {
	case *adNode, *listNode:
		f = list.comp.scope(ev)
	}
	return ev.eval(n, f)
}

// failAtBound ends the evaluation because a bound is exceeded. Only the first call
// counts.
func (ev *evaluator) failAtBound(bound errorCause) {
	switch {
	case ev.bound != unknownCause:
	case ev.depth >= maxNest:
		ev.bound = tooDeep
	default:
		ev.bound = bound
	}
	ev.stepsLeft = -1
}

// withinBounds returns v, or ERROR if the evaluation exceeded a bound.
func (ev *evaluator) withinBounds(v Value) Value {
	if ev.stepsLeft < 0 {
		ev.failAtBound(tooManySteps)
		return errorFor(ev.bound)
	}
	return v
}

// chargeText counts the work on a long string as steps.
func (ev *evaluator) chargeText(v Value) Value {
	if v.kind == String {
		ev.stepsLeft -= len(v.str) >> 6
	}
	return v
}

// takeText charges n bytes to the bound on text and reports whether that sufficed.
func (ev *evaluator) takeText(n int) bool {
	if ev.textLeft -= n; ev.textLeft < 0 {
		ev.failAtBound(tooMuchText)
		return false
	}
	return true
}

// attribute evaluates attribute i of f's ad, in f.
func (ev *evaluator) attribute(f *nameScope, i int) Value {
	e := f.ad.exprs[i]
	if l, ok := e.n.(*literalNode); ok {
		return l.v
	}
	for _, a := range ev.activeAttrs {
		if a.i == i && a.ad == f.ad {
			ev.impure = true
			return Value{}
		}
	}
	ev.stepsLeft -= len(ev.activeAttrs) >> 4
	ev.activeAttrs = append(ev.activeAttrs, activeAttr{f.ad, i})
	v := ev.eval(e.n, f)
	ev.activeAttrs = ev.activeAttrs[:len(ev.activeAttrs)-1]
	return v
}

// now returns the time of the evaluation.
func (ev *evaluator) now() time.Time {
	ev.impure = true
	if ev.env == nil || ev.env.Now.IsZero() {
		return time.Unix(0, 0).UTC()
	}
	return ev.env.Now
}

func (n *boundValue) eval(*evaluator, *nameScope) Value     { return n.v }
func (n *literalNode) eval(*evaluator, *nameScope) Value    { return n.v }
func (n *parenNode) eval(ev *evaluator, f *nameScope) Value { return ev.eval(n.x, f) }
func (n *listNode) eval(_ *evaluator, f *nameScope) Value {
	return Value{kind: List, comp: &compositeValue{elems: n.elems, in: f}}
}
func (n *adNode) eval(_ *evaluator, f *nameScope) Value { return scopeAd(f.nested(n.ad)) }

// scopeAd returns the ad of a scope as a value.
func scopeAd(f *nameScope) Value { return Value{kind: AdValue, comp: &compositeValue{ad: f.ad, in: f}} }

// scope returns the scope for names in a list or an ad.
func (c *compositeValue) scope(ev *evaluator) *nameScope {
	switch {
	case c.in != nil:
		return c.in
	case c.ad != nil:
		return &nameScope{ad: c.ad}
	}
	return &nameScope{ad: &ev.emptyScope}
}

func (n *ternaryNode) eval(ev *evaluator, f *nameScope) Value {
	cond := ev.eval(n.cond, f)
	if cond.kind == Undefined {
		return cond
	}
	switch truth, ok := cond.Truth(); {
	case !ok:
		return conditionError(cond)
	case truth:
		return ev.eval(n.x, f)
	}
	return ev.eval(n.y, f)
}

func (n *elvisNode) eval(ev *evaluator, f *nameScope) Value {
	if v := ev.eval(n.x, f); v.kind != Undefined {
		return v
	}
	return ev.eval(n.y, f)
}

func (n *subscriptNode) eval(ev *evaluator, f *nameScope) Value {
	x, i := ev.eval(n.x, f), ev.chargeText(ev.eval(n.i, f))
	switch {
	case x.kind == Error:
		return x
	case i.kind == Error:
		return i
	case x.kind == Undefined || i.kind == Undefined:
		return Value{}
	case x.kind == List && i.kind == Integer:
		if k := i.int(); k >= 0 && k < int64(len(x.comp.elems)) {
			return ev.eval(x.comp.elems[k].n, x.comp.scope(ev))
		}
		return subscriptError(len(x.comp.elems), i.int())
	case x.kind == AdValue && i.kind == String:
		in := x.comp.scope(ev)
		k := in.ad.labelIndex(hashName(i.str), i.str)
		if k < 0 {
			return Value{}
		}
		return ev.attribute(in, k)
	}
	return errorFor(badSubscript, uint8(x.kind), uint8(i.kind))
}

func (n *callNode) eval(ev *evaluator, f *nameScope) Value {
	if n.fn.call == nil {
		return Value{kind: Error, off: int32(noFunction), str: n.name}
	}
	if len(n.args) < n.fn.minArgs || len(n.args) > n.fn.maxArgs {
		return Value{kind: Error, off: int32(wrongCount), num: uint64(len(n.args)), str: n.name}
	}
	v := n.fn.call(builtinCall{ev, f, n.args, n.re})
	if v.kind == Error {
		v = v.inFunction(n.name)
	}
	return v
}
