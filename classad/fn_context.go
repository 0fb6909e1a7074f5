package classad

import (
	"slices"
	"strings"
)

// contextBuiltin are the functions that work on expressions rather than on their values.
func contextBuiltin(name string) builtin {
	switch name {
	case "eval":
		return builtin{1, 1, fnEval}
	case "debug":
		return builtin{1, 1, func(c call) Value { return c.arg(0) }}
	case "unparse":
		return builtin{1, 1, fnUnparse}
	case "unresolved":
		return builtin{1, 2, fnUnresolved}
	case "evalineachcontext":
		return builtin{2, 2, fnEvalInEachContext}
	case "countmatches":
		return builtin{2, 2, fnCountMatches}
	}
	return builtin{}
}

// fnEval evaluates a string as an expression, here. Of another value it evaluates the text, which mostly gives the value.
func fnEval(c call) Value {
	v := c.arg(0)
	switch v.kind {
	case Undefined:
		return wrong(0, v)
	case Error, Boolean, Integer, Real, List, AdValue:
		return v
	}
	s := plainText(v)
	if !c.ev.spend(16 * len(s)) {
		return ErrorValue()
	}
	e, err := ParseExpr(s)
	if err != nil {
		return Value{kind: Error, off: int32(badExpression), str: err.Error()}
	}
	return c.ev.eval(e.n, c.f)
}

// isReference says whether n is a name, or one behind a dot.
func isReference(n node) bool {
	switch n.(type) {
	case *attrRef, *rootRef, *selection:
		return true
	}
	return false
}

// resolve finds the attribute that n, a name or one behind a dot, stands for in f: the frame of its ad, and its place there. It finds
// nothing for the language's own names. With fallback, names are looked up in the other ad of a match as well.
func (ev *evaluator) resolve(n node, f *frame, fallback bool) (in *frame, i int) {
	var hash uint32
	var name string
	from := f
	switch n := n.(type) {
	case *attrRef:
		hash, name = n.hash, n.name
	case *rootRef:
		hash, name, from = n.hash, n.name, f.root()
	case *selection:
		x := ev.eval(n.x, f)
		if x.kind != AdValue {
			return nil, 0
		}
		hash, name, from = n.hash, n.name, x.comp.frame(ev)
	}
	own := scopeOf(name) != scopeNone
	for g := from; g != nil; g = g.up {
		if i := g.ad.index(hash, name); i >= 0 {
			return g, i
		}
		if own {
			return nil, 0
		}
	}
	ev.strays = true
	if _, plain := n.(*attrRef); plain && fallback && f.other != nil && (f.up == nil || f.reaches) {
		if i := f.other.ad.index(hash, name); i >= 0 {
			return f.other, i
		}
	}
	return nil, 0
}

// fnUnparse is the text of the expression of one of the ad's own attributes, "" if there is no such attribute.
func fnUnparse(c call) Value {
	n := c.args[0].n
	if !isReference(n) {
		return failure(badText, 0)
	}
	ref, ok := n.(*attrRef)
	if !ok {
		return StringValue("")
	}
	i := c.f.ad.index(ref.hash, ref.name)
	if i < 0 {
		return StringValue("")
	}
	return c.text(string(style{pretty: true}.expr(nil, c.f.ad.exprs[i].n)))
}

// fnUnresolved lists the names that an attribute needs, directly or through others, and that the ad does not have; with a pattern it
// says whether one of them matches.
func fnUnresolved(c call) Value {
	if !isReference(c.args[0].n) {
		return failure(badText, 0)
	}
	in, i := c.ev.resolve(c.args[0].n, c.f, true)
	if in == nil {
		return UndefinedValue()
	}
	var re *pattern
	if len(c.args) == 2 {
		p := c.arg(1)
		if p.kind != String {
			return wrong(1, p)
		}
		var bad Value
		if re, bad = c.compile(p.str, "i"); re == nil {
			return bad
		}
	}
	var missing nameSet
	if !c.ev.needs(in.ad.exprs[i].n, in, &missing) {
		missing = nil
	}
	slices.SortStableFunc(missing, foldCompare)
	names := slices.CompactFunc(missing, foldEqual)
	for i, name := range names {
		names[i] = withoutTarget(name)
	}
	if re == nil {
		return c.text(strings.Join(names, ","))
	}
	return BoolValue(slices.ContainsFunc(names, func(name string) bool { return c.found(re, name) }))
}

// withoutTarget is a name without TARGET. before it.
func withoutTarget(name string) string {
	const target = "TARGET."
	if len(name) > len(target) && foldEqual(name[:len(target)], target) {
		return name[len(target):]
	}
	return name
}

// needs adds the names that n needs in f and that are not there. It gives up, with false, where a selection is not from an ad and
// where an attribute needs itself.
func (ev *evaluator) needs(n node, f *frame, missing *nameSet) bool {
	if ev.steps--; ev.steps < 0 || ev.nest >= maxNest {
		ev.steps = -1
		return false
	}
	ev.nest++
	defer func() { ev.nest-- }()
	if !isReference(n) {
		ok := true
		for child := range children(n) {
			ok = ok && ev.needs(child, f, missing)
		}
		return ok
	}
	name := ""
	switch n := n.(type) {
	case *attrRef:
		name = n.name
	case *rootRef:
		name = n.name
	case *selection:
		name = n.name
		switch x := ev.eval(n.x, f); x.kind {
		case AdValue:
		case Undefined:
			return missing.add(ev, string(style{}.expr(nil, n)))
		default:
			return false
		}
	}
	in, i := ev.resolve(n, f, false)
	if in == nil {
		if s := scopeOf(name); s != scopeNone && (s != scopeTarget || f.other != nil) {
			return true
		}
		return missing.add(ev, name)
	}
	for _, a := range ev.active {
		if a.i == i && a.ad == in.ad {
			return false
		}
	}
	ev.active = append(ev.active, active{in.ad, i})
	ok := ev.needs(in.ad.exprs[i].n, in, missing)
	ev.active = ev.active[:len(ev.active)-1]
	return ok
}

func (s *nameSet) add(ev *evaluator, name string) bool {
	*s = append(*s, name)
	return ev.spend(len(name) + 16)
}

// inContext evaluates n inside an ad. In a match, names that neither the ad nor the ad that holds it has are looked up in the other ad.
func (c call) inContext(ad Value, n node) Value {
	f := ad.comp.frame(c.ev)
	if f.up != nil && f.up.up == nil {
		f = &frame{ad: f.ad, up: f.up, other: f.other, reaches: true}
	}
	return c.ev.eval(n, f)
}

// contextual is the expression of the first argument: that of the attribute that it names, or else itself.
func (c call) contextual() node {
	if isReference(c.args[0].n) {
		if in, i := c.ev.resolve(c.args[0].n, c.f, true); in != nil {
			return in.ad.exprs[i].n
		}
	}
	return c.args[0].n
}

func fnEvalInEachContext(c call) Value {
	n, list := c.contextual(), c.arg(1)
	if list.kind == Undefined {
		return list
	}
	if list.kind != List {
		return wrong(1, list)
	}
	var values []Value
	c.elements(list, func(v Value) bool {
		switch v.kind {
		case AdValue:
			v = c.inContext(v, n)
		case Undefined:
		default:
			v = wrongElement(1, v).of("evalInEachContext")
		}
		if !c.ev.weigh(v) {
			return false
		}
		values = append(values, v)
		return true
	})
	return ListValue(values...)
}

// fnCountMatches counts the ads of a list in which an expression is true.
func fnCountMatches(c call) Value {
	n, list := c.contextual(), c.arg(1)
	if list.kind == Undefined {
		return IntValue(0)
	}
	if list.kind != List {
		return wrong(1, list)
	}
	count := int64(0)
	c.elements(list, func(v Value) bool {
		if v.kind == AdValue && c.inContext(v, n).IsTrue() {
			count++
		}
		return true
	})
	return IntValue(count)
}
