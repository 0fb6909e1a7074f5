package classad

import "time"

// EvalEnv is what an evaluation may ask of the world. A nil *EvalEnv is an empty one.
type EvalEnv struct {
	// what time() says, and whose location is the local time zone; the zero time counts
	// as the epoch, UTC
	Now    time.Time
	Random func() float64 // in [0, 1); without it random() is ERROR
	Steps  int            // nodes evaluated before giving up with ERROR; 0 for MaxSteps
}

// Bounds on an evaluation. One that goes beyond them is ERROR as a whole.
const (
	MaxSteps = 10_000_000 // nodes evaluated
	maxNest  = 10_000     // of nodes and attributes inside each other
	maxText  = 16 << 20   // bytes of strings and lists made on the way
)

// Eval evaluates an attribute. One that is missing is UNDEFINED.
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

// Eval evaluates e with the names of my, then of target, either of which may be nil.
func Eval(e Expr, my, target *Ad, env *EvalEnv) Value {
	if l, ok := e.n.(*literalNode); ok {
		return l.v
	}
	ev := newEvaluator(my, target, env)
	return ev.withinBounds(ev.eval(e.n, &ev.leftScope))
}

// nameScope is a place to look names up in: an ad, the ads that enclose it, and the other
// side of a match.
type nameScope struct {
	ad     *Ad
	parent *nameScope // what encloses ad; nil at the root
	other  *nameScope // the root of the other side; nil outside a match

	reachesOther bool // names are looked up in other although up is not nil
}

func (f *nameScope) root() *nameScope {
	for f.parent != nil {
		f = f.parent
	}
	return f
}

// nested is the frame of an ad that stands in f.
func (f *nameScope) nested(ad *Ad) *nameScope { return &nameScope{ad: ad, parent: f, other: f.other} }

// evaluator holds the bounds and the attributes under evaluation.
type evaluator struct {
	env       *EvalEnv
	stepsLeft int // left
	depth     int
	textLeft  int // bytes left
	// it has asked for more than what it was given: outer or other ads, the clock,
	// chance, an attribute that needs itself
	impure                bool
	bound                 errorCause // that it has reached
	leftScope, rightScope nameScope
	emptyScope            Ad
	activeAttrs           []activeAttr
	firstActive           [8]activeAttr
}

// activeAttr is an attribute under evaluation. One that asks for itself is UNDEFINED.
type activeAttr struct {
	ad *Ad
	i  int
}

func newEvaluator(my, target *Ad, env *EvalEnv) *evaluator {
	ev := &evaluator{env: env, stepsLeft: MaxSteps, textLeft: maxText}
	if env != nil && env.Steps > 0 {
		ev.stepsLeft = env.Steps
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
	switch n := n.(type) { // most nodes are of these, and a direct call is faster
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

// element evaluates an element of a list for a function or a selection that stands in f.
// Upstream's lists do not know where they come from: names in them are looked up where
// they are used. Only nested ads and lists remember where they were written.
func (ev *evaluator) element(list Value, n exprNode, f *nameScope) Value {
	switch n.(type) {
	case *adNode, *listNode:
		f = list.comp.scope(ev)
	}
	return ev.eval(n, f)
}

// failAtBound ends the evaluation for a bound; the first counts.
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

// withinBounds is v, or ERROR if a bound was reached on the way.
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

// takeText takes n bytes from what may be made, and says whether there were so many.
func (ev *evaluator) takeText(n int) bool {
	if ev.textLeft -= n; ev.textLeft < 0 {
		ev.failAtBound(tooMuchText)
		return false
	}
	return true
}

// attribute evaluates the attribute at place i of f's ad, in f.
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

// now is the time of the evaluation.
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

// scopeAd is the value of the ad of a frame.
func scopeAd(f *nameScope) Value { return Value{kind: AdValue, comp: &compositeValue{ad: f.ad, in: f}} }

// scope is where the names in a list or an ad are looked up.
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
