package classad

import "time"

// Env is what an evaluation may ask of the world. A nil *Env is an empty one.
type Env struct {
	Now    time.Time      // what time() says, and whose location is the local time zone; the zero time counts as the epoch, UTC
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
func (a *Ad) Eval(name string, env *Env) Value {
	i := a.index(hashName(name), name)
	if i < 0 {
		return Value{}
	}
	if l, ok := a.exprs[i].n.(*literal); ok {
		return l.v
	}
	ev := newEvaluator(a, nil, env)
	return ev.bounded(ev.attribute(&ev.left, i))
}

// Eval evaluates e with the names of my, then of target, either of which may be nil.
func Eval(e Expr, my, target *Ad, env *Env) Value {
	if l, ok := e.n.(*literal); ok {
		return l.v
	}
	ev := newEvaluator(my, target, env)
	return ev.bounded(ev.eval(e.n, &ev.left))
}

// frame is a place to look names up in: an ad, the ads that enclose it, and the other side of a match.
type frame struct {
	ad    *Ad
	up    *frame // what encloses ad; nil at the root
	other *frame // the root of the other side; nil outside a match

	reaches bool // names are looked up in other although up is not nil
}

func (f *frame) root() *frame {
	for f.up != nil {
		f = f.up
	}
	return f
}

// inside is the frame of an ad that stands in f.
func (f *frame) inside(ad *Ad) *frame { return &frame{ad: ad, up: f, other: f.other} }

// evaluator holds the bounds and the attributes under evaluation.
type evaluator struct {
	env         *Env
	steps       int // left
	nest        int
	text        int   // bytes left
	strays      bool  // it has asked for more than what it was given: outer or other ads, the clock, chance, an attribute that needs itself
	bound       cause // that it has reached
	left, right frame
	empty       Ad
	active      []active
	first       [8]active
}

// active is an attribute under evaluation. One that asks for itself is UNDEFINED.
type active struct {
	ad *Ad
	i  int
}

func newEvaluator(my, target *Ad, env *Env) *evaluator {
	ev := &evaluator{env: env, steps: MaxSteps, text: maxText}
	if env != nil && env.Steps > 0 {
		ev.steps = env.Steps
	}
	ev.active = ev.first[:0]
	if my == nil {
		my = &ev.empty
	}
	ev.left.ad = my
	if target != nil {
		ev.right = frame{ad: target, other: &ev.left}
		ev.left.other = &ev.right
	}
	return ev
}

// eval evaluates n in f within the bounds.
func (ev *evaluator) eval(n node, f *frame) Value {
	if l, ok := n.(*literal); ok {
		return l.v
	}
	if n == nil {
		return Value{}
	}
	if ev.steps--; ev.steps < 0 || ev.nest >= maxNest {
		ev.exceed(tooManySteps)
		return ErrorValue()
	}
	ev.nest++
	var v Value
	switch n := n.(type) { // most nodes are of these, and a direct call is faster
	case *binary:
		v = n.eval(ev, f)
	case *selection:
		v = n.eval(ev, f)
	case *attrRef:
		v = n.eval(ev, f)
	default:
		v = n.eval(ev, f)
	}
	ev.nest--
	return v
}

// element evaluates an element of a list for a function or a selection that stands in f. Upstream's lists do not know where they come
// from: names in them are looked up where they are used. Only nested ads and lists remember where they were written.
func (ev *evaluator) element(list Value, n node, f *frame) Value {
	switch n.(type) {
	case *adNode, *listNode:
		f = list.comp.frame(ev)
	}
	return ev.eval(n, f)
}

// exceed ends the evaluation for a bound; the first counts.
func (ev *evaluator) exceed(bound cause) {
	switch {
	case ev.bound != noCause:
	case ev.nest >= maxNest:
		ev.bound = tooDeep
	default:
		ev.bound = bound
	}
	ev.steps = -1
}

// bounded is v, or ERROR if a bound was reached on the way.
func (ev *evaluator) bounded(v Value) Value {
	if ev.steps < 0 {
		ev.exceed(tooManySteps)
		return failure(ev.bound)
	}
	return v
}

// charge counts the work on a long string as steps.
func (ev *evaluator) charge(v Value) Value {
	if v.kind == String {
		ev.steps -= len(v.str) >> 6
	}
	return v
}

// spend takes n bytes from what may be made, and says whether there were so many.
func (ev *evaluator) spend(n int) bool {
	if ev.text -= n; ev.text < 0 {
		ev.exceed(tooMuchText)
		return false
	}
	return true
}

// attribute evaluates the attribute at place i of f's ad, in f.
func (ev *evaluator) attribute(f *frame, i int) Value {
	e := f.ad.exprs[i]
	if l, ok := e.n.(*literal); ok {
		return l.v
	}
	for _, a := range ev.active {
		if a.i == i && a.ad == f.ad {
			ev.strays = true
			return Value{}
		}
	}
	ev.steps -= len(ev.active) >> 4
	ev.active = append(ev.active, active{f.ad, i})
	v := ev.eval(e.n, f)
	ev.active = ev.active[:len(ev.active)-1]
	return v
}

// now is the time of the evaluation.
func (ev *evaluator) now() time.Time {
	ev.strays = true
	if ev.env == nil || ev.env.Now.IsZero() {
		return time.Unix(0, 0).UTC()
	}
	return ev.env.Now
}

func (n *fixed) eval(*evaluator, *frame) Value      { return n.v }
func (n *literal) eval(*evaluator, *frame) Value    { return n.v }
func (n *paren) eval(ev *evaluator, f *frame) Value { return ev.eval(n.x, f) }
func (n *listNode) eval(_ *evaluator, f *frame) Value {
	return Value{kind: List, comp: &composite{elems: n.elems, in: f}}
}
func (n *adNode) eval(_ *evaluator, f *frame) Value { return adIn(f.inside(n.ad)) }

// adIn is the value of the ad of a frame.
func adIn(f *frame) Value { return Value{kind: AdValue, comp: &composite{ad: f.ad, in: f}} }

// frame is where the names in a list or an ad are looked up.
func (c *composite) frame(ev *evaluator) *frame {
	switch {
	case c.in != nil:
		return c.in
	case c.ad != nil:
		return &frame{ad: c.ad}
	}
	return &frame{ad: &ev.empty}
}

func (n *ternary) eval(ev *evaluator, f *frame) Value {
	cond := ev.eval(n.cond, f)
	if cond.kind == Undefined {
		return cond
	}
	switch truth, ok := cond.Truth(); {
	case !ok:
		return noCondition(cond)
	case truth:
		return ev.eval(n.x, f)
	}
	return ev.eval(n.y, f)
}

func (n *elvis) eval(ev *evaluator, f *frame) Value {
	if v := ev.eval(n.x, f); v.kind != Undefined {
		return v
	}
	return ev.eval(n.y, f)
}

func (n *index) eval(ev *evaluator, f *frame) Value {
	x, i := ev.eval(n.x, f), ev.charge(ev.eval(n.i, f))
	switch {
	case x.kind == Error:
		return x
	case i.kind == Error:
		return i
	case x.kind == Undefined || i.kind == Undefined:
		return Value{}
	case x.kind == List && i.kind == Integer:
		if k := i.int(); k >= 0 && k < int64(len(x.comp.elems)) {
			return ev.eval(x.comp.elems[k].n, x.comp.frame(ev))
		}
		return outOf(len(x.comp.elems), i.int())
	case x.kind == AdValue && i.kind == String:
		in := x.comp.frame(ev)
		k := in.ad.index(hashName(i.str), i.str)
		if k < 0 {
			return Value{}
		}
		return ev.attribute(in, k)
	}
	return failure(badSubscript, uint8(x.kind), uint8(i.kind))
}

func (n *callNode) eval(ev *evaluator, f *frame) Value {
	if n.fn.call == nil {
		return Value{kind: Error, off: int32(noFunction), str: n.name}
	}
	if len(n.args) < n.fn.least || len(n.args) > n.fn.most {
		return Value{kind: Error, off: int32(wrongCount), num: uint64(len(n.args)), str: n.name}
	}
	v := n.fn.call(call{ev, f, n.args, n.re})
	if v.kind == Error {
		v = v.of(n.name)
	}
	return v
}
