package classad

// eval looks a name up in its own ad, then in the enclosing ads. In a match, a name in an
// ad that is not nested is then looked up in the other ad.
func (n *attrRef) eval(ev *evaluator, f *nameScope) Value {
	if i := f.ad.labelIndex(n.hash, n.name); i >= 0 {
		return ev.attribute(f, i)
	}
	if n.scope != scopeNone {
		return ev.scope(n.scope, f)
	}
	for g := f.parent; g != nil; g = g.parent {
		if i := g.ad.labelIndex(n.hash, n.name); i >= 0 {
			return ev.attribute(g, i)
		}
	}
	ev.impure = true
	if g := f.other; g != nil && (f.parent == nil || f.reachesOther) {
		if i := g.ad.labelIndex(n.hash, n.name); i >= 0 {
			return ev.attribute(g, i)
		}
	}
	return Value{}
}

// scope returns the value of one of the language's own names in f.
func (ev *evaluator) scope(name scopeName, f *nameScope) Value {
	if name == scopeTime {
		return IntValue(ev.now().Unix())
	}
	ev.impure = ev.impure || name != scopeMy
	if g := f.scope(name); g != nil {
		return scopeAd(g)
	}
	return Value{}
}

// scope returns the scope that one of the language's own names stands for in f, or nil.
func (f *nameScope) scope(name scopeName) *nameScope {
	switch name {
	case scopeMy:
		return f
	case scopeTarget:
		return f.other
	case scopeParent:
		return f.parent
	case scopeRoot:
		return f.root()
	}
	return nil
}

func (n *rootRef) eval(ev *evaluator, f *nameScope) Value {
	root := f.root()
	if i := root.ad.labelIndex(n.hash, n.name); i >= 0 {
		return ev.attribute(root, i)
	}
	ev.impure = true
	return Value{}
}

// eval selects an attribute of an ad, or of every element of a list. MY.x and TARGET.x,
// the most frequent selections, do not make a value of the ad, unless an attribute hides
// the scope's name.
func (n *selectionNode) eval(ev *evaluator, f *nameScope) Value {
	if n.scope != scopeNone && n.scope != scopeTime && !f.ad.hasReservedNames {
		ev.impure = ev.impure || n.scope == scopeTarget
		g := f.scope(n.scope)
		if g == nil {
			return Value{}
		}
		return ev.member(g, n.hash, n.name)
	}
	return ev.selected(ev.eval(n.x, f), n, f)
}

// selected returns x.name.
func (ev *evaluator) selected(x Value, n *selectionNode, f *nameScope) Value {
	switch x.kind {
	case Undefined, Error:
		return x
	case AdValue:
		return ev.member(x.comp.scope(ev), n.hash, n.name)
	case List:
		// A list may contain itself, which is not noticed when its elements are evaluated
		// one by one.
		if ev.depth >= maxNest || !ev.takeText(64*len(x.comp.elems)) {
			ev.failAtBound(tooMuchText)
			return ErrorValue()
		}
		ev.depth++
		defer func() { ev.depth-- }()
		values := make([]Value, len(x.comp.elems))
		for i, e := range x.comp.elems {
			values[i] = ev.selected(ev.element(x, e.n, f), n, f)
			if values[i].comp != nil && !ev.takeSize(values[i]) {
				break
			}
		}
		return ListValue(values...)
	}
	return errorFor(noAttributes, uint8(x.kind))
}

// member returns an attribute of f's ad or of an enclosing ad, or one of the language's
// own names.
func (ev *evaluator) member(f *nameScope, hash uint32, name string) Value {
	for g := f; g != nil; g = g.parent {
		if i := g.ad.labelIndex(hash, name); i >= 0 {
			return ev.attribute(g, i)
		}
		ev.impure = ev.impure || g.parent != nil
		if g == f {
			if s := scopeOf(name); s != scopeNone {
				return ev.scope(s, f)
			}
		}
	}
	return Value{}
}
