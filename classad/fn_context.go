package classad

import (
	"slices"
	"strings"
)

// contextBuiltin returns a function that works on expressions instead of values.
func contextBuiltin(name string) builtinFunc {
	switch name {
	case "eval":
		return builtinFunc{1, 1, fnEval}
	case "debug":
		return builtinFunc{1, 1, func(c builtinCall) Value { return c.arg(0) }}
	case "unparse":
		return builtinFunc{1, 1, fnUnparse}
	case "unresolved":
		return builtinFunc{1, 2, fnUnresolved}
	case "evalineachcontext":
		return builtinFunc{2, 2, fnEvalInEachContext}
	case "countmatches":
		return builtinFunc{2, 2, fnCountMatches}
	}
	return builtinFunc{}
}

// fnEval evaluates a string as an expression in the present scope. For another value it
// evaluates its text, which usually gives the value.
func fnEval(c builtinCall) Value {
	v := c.arg(0)
	switch v.kind {
	case Undefined:
		return argumentError(0, v)
	case Error, Boolean, Integer, Real, List, AdValue:
		return v
	}
	s := plainText(v)
	if !c.evaluator.takeText(16 * len(s)) {
		return ErrorValue()
	}
	e, err := ParseExpr(s)
	if err != nil {
		return Value{kind: Error, off: int32(badExpression), str: err.Error()}
	}
	return c.evaluator.eval(e.n, c.scope)
}

// isReference reports whether n is a name, or a name after a dot.
func isReference(n exprNode) bool {
	switch n.(type) {
	case *attrRef, *rootRef, *selectionNode:
		return true
	}
	return false
}

// resolve finds the attribute that n stands for in f: its scope and its index there. n is
// a name or a name after a dot. It finds nothing for the language's own names. With
// fallback, names are also looked up in the other ad of a match.
func (ev *evaluator) resolve(n exprNode, f *nameScope, fallback bool) (in *nameScope, i int) {
	var hash uint32
	var name string
	from := f
	switch n := n.(type) {
	case *attrRef:
		hash, name = n.hash, n.name
	case *rootRef:
		hash, name, from = n.hash, n.name, f.root()
	case *selectionNode:
		x := ev.eval(n.x, f)
		if x.kind != AdValue {
			return nil, 0
		}
		hash, name, from = n.hash, n.name, x.comp.scope(ev)
	}
	own := scopeOf(name) != scopeNone
	for g := from; g != nil; g = g.parent {
		if i := g.ad.labelIndex(hash, name); i >= 0 {
			return g, i
		}
		if own {
			return nil, 0
		}
	}
	ev.impure = true
	if _, plain := n.(*attrRef); plain && fallback && f.other != nil && (f.parent == nil || f.reachesOther) {
		if i := f.other.ad.labelIndex(hash, name); i >= 0 {
			return f.other, i
		}
	}
	return nil, 0
}

// fnUnparse returns the text of an attribute's expression, or "" if the ad has no such
// attribute.
func fnUnparse(c builtinCall) Value {
	n := c.args[0].n
	if !isReference(n) {
		return errorFor(badText, 0)
	}
	ref, ok := n.(*attrRef)
	if !ok {
		return StringValue("")
	}
	i := c.scope.ad.labelIndex(ref.hash, ref.name)
	if i < 0 {
		return StringValue("")
	}
	return c.text(string(printStyle{pretty: true}.expr(nil, c.scope.ad.exprs[i].n)))
}

// fnUnresolved lists the names that an attribute needs and that the ad does not have. It
// follows the attributes that the attribute needs. With a pattern it returns whether one
// of the names matches.
func fnUnresolved(c builtinCall) Value {
	if !isReference(c.args[0].n) {
		return errorFor(badText, 0)
	}
	in, i := c.evaluator.resolve(c.args[0].n, c.scope, true)
	if in == nil {
		return UndefinedValue()
	}
	var re *regexPattern
	if len(c.args) == 2 {
		p := c.arg(1)
		if p.kind != String {
			return argumentError(1, p)
		}
		var bad Value
		if re, bad = c.compile(p.str, "i"); re == nil {
			return bad
		}
	}
	var missing nameSet
	if !c.evaluator.collectUnresolved(in.ad.exprs[i].n, in, &missing) {
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
	return BoolValue(slices.ContainsFunc(names, func(name string) bool { return c.matchesNonEmpty(re, name) }))
}

// withoutTarget returns a name without a leading "TARGET.".
func withoutTarget(name string) string {
	const target = "TARGET."
	if len(name) > len(target) && foldEqual(name[:len(target)], target) {
		return name[len(target):]
	}
	return name
}

// collectUnresolved adds the names that n needs in f and that do not exist. It gives up,
// with false, at a selection from something other than an ad and at an attribute that
// depends on itself.
func (ev *evaluator) collectUnresolved(n exprNode, f *nameScope, missing *nameSet) bool {
	if ev.stepsLeft--; ev.stepsLeft < 0 || ev.depth >= maxNest {
		ev.stepsLeft = -1
		return false
	}
	ev.depth++
	defer func() { ev.depth-- }()
	if !isReference(n) {
		ok := true
		for child := range children(n) {
			ok = ok && ev.collectUnresolved(child, f, missing)
		}
		return ok
	}
	name := ""
	switch n := n.(type) {
	case *attrRef:
		name = n.name
	case *rootRef:
		name = n.name
	case *selectionNode:
		name = n.name
		switch x := ev.eval(n.x, f); x.kind {
		case AdValue:
		case Undefined:
			return missing.add(ev, string(printStyle{}.expr(nil, n)))
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
	for _, a := range ev.activeAttrs {
		if a.i == i && a.ad == in.ad {
			return false
		}
	}
	ev.activeAttrs = append(ev.activeAttrs, activeAttr{in.ad, i})
	ok := ev.collectUnresolved(in.ad.exprs[i].n, in, missing)
	ev.activeAttrs = ev.activeAttrs[:len(ev.activeAttrs)-1]
	return ok
}

func (s *nameSet) add(ev *evaluator, name string) bool {
	*s = append(*s, name)
	return ev.takeText(len(name) + 16)
}

// inContext evaluates n inside an ad. In a match, names that neither the ad nor its
// enclosing ad has are looked up in the other ad.
func (c builtinCall) inContext(ad Value, n exprNode) Value {
	f := ad.comp.scope(c.evaluator)
	if f.parent != nil && f.parent.parent == nil {
		f = &nameScope{ad: f.ad, parent: f.parent, other: f.other, reachesOther: true}
	}
	return c.evaluator.eval(n, f)
}

// contextExpr returns the expression of the attribute that the first argument names, or
// else the argument itself.
func (c builtinCall) contextExpr() exprNode {
	if isReference(c.args[0].n) {
		if in, i := c.evaluator.resolve(c.args[0].n, c.scope, true); in != nil {
			return in.ad.exprs[i].n
		}
	}
	return c.args[0].n
}

func fnEvalInEachContext(c builtinCall) Value {
	n, list := c.contextExpr(), c.arg(1)
	if list.kind == Undefined {
		return list
	}
	if list.kind != List {
		return argumentError(1, list)
	}
	var values []Value
	c.elements(list, func(v Value) bool {
		switch v.kind {
		case AdValue:
			v = c.inContext(v, n)
		case Undefined:
		default:
			v = elementError(1, v).inFunction("evalInEachContext")
		}
		if !c.evaluator.takeSize(v) {
			return false
		}
		values = append(values, v)
		return true
	})
	return ListValue(values...)
}

// fnCountMatches counts the ads of a list in which an expression is true.
func fnCountMatches(c builtinCall) Value {
	n, list := c.contextExpr(), c.arg(1)
	if list.kind == Undefined {
		return IntValue(0)
	}
	if list.kind != List {
		return argumentError(1, list)
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
