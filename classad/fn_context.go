package classad

import "strings"

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

// fnEval evaluates a string as an expression, here.
func fnEval(c call) Value {
	v := c.arg(0)
	if v.kind == AbsTime || v.kind == RelTime || v.kind == Undefined {
		return ErrorValue()
	}
	if v.kind != String {
		return v
	}
	if !c.ev.spend(16 * len(v.str)) {
		return ErrorValue()
	}
	e, err := ParseExpr(v.str)
	if err != nil {
		return ErrorValue()
	}
	return c.ev.eval(e.n, c.f)
}

// named finds the attribute that the first argument, a plain name, stands for.
func (c call) named() (e Expr, found, isName bool) {
	ref, ok := c.args[0].n.(*attrRef)
	if !ok {
		return Expr{}, false, false
	}
	for g := c.f; g != nil; g = g.up {
		if i := g.ad.index(ref.hash, ref.name); i >= 0 {
			return g.ad.attrs[i].expr, true, true
		}
	}
	return Expr{}, false, true
}

// fnUnparse is the text of an attribute's expression, "" if there is no such attribute.
func fnUnparse(c call) Value {
	e, found, ok := c.named()
	switch {
	case !ok:
		return ErrorValue()
	case !found:
		return StringValue("")
	}
	return c.text(string(style{}.expr(nil, e.n)))
}

// fnUnresolved lists the names in an attribute's expression that the ad does not have, those behind TARGET last; with a pattern it
// says whether one of them matches.
func fnUnresolved(c call) Value {
	e, found, ok := c.named()
	if !ok {
		return ErrorValue()
	}
	if !found {
		return UndefinedValue()
	}
	if !c.ev.spend(len(style{}.expr(nil, e.n))) {
		return ErrorValue()
	}
	_, target, unscoped := References(e)
	var missing []string
	for _, name := range unscoped {
		if _, ok := c.f.ad.Lookup(name); !ok {
			missing = append(missing, name)
		}
	}
	missing = append(missing, target...)
	if len(c.args) == 1 {
		return c.text(strings.Join(missing, ","))
	}
	p, ok := c.arg(1).Str()
	if !ok {
		return ErrorValue()
	}
	re, err := c.pattern(p, 2)
	if err != nil {
		return ErrorValue()
	}
	for _, name := range missing {
		if c.matches(re, name) {
			return BoolValue(true)
		}
	}
	return BoolValue(false)
}

// inContext evaluates the first argument, or the expression of the attribute that it names, inside an ad.
func (c call) inContext(ad Value) Value {
	e, found, _ := c.named()
	if !found {
		e = c.args[0]
	}
	return c.ev.eval(e.n, ad.comp.frame(c.ev))
}

func fnEvalInEachContext(c call) Value {
	list := c.arg(1)
	if list.kind == Undefined {
		return list
	}
	if list.kind != List || !c.ev.spend(64*len(list.comp.elems)) {
		return ErrorValue()
	}
	var values []Value
	c.elements(list, func(v Value) bool {
		switch v.kind {
		case AdValue:
			v = c.inContext(v)
		case Undefined:
		default:
			v = ErrorValue()
		}
		values = append(values, v)
		return true
	})
	return ListValue(values...)
}

// fnCountMatches counts the ads of a list in which an expression is true.
func fnCountMatches(c call) Value {
	list := c.arg(1)
	if list.kind == Undefined {
		return IntValue(0)
	}
	if list.kind != List {
		return ErrorValue()
	}
	n := int64(0)
	c.elements(list, func(v Value) bool {
		if v.kind == AdValue && c.inContext(v).IsTrue() {
			n++
		}
		return true
	})
	return IntValue(n)
}
