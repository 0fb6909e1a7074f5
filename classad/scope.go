package classad

// eval looks a name up in the ad where it stands, then in the ads that enclose that. In a match, a name in an ad that nothing encloses
// is then looked up in the other ad.
func (n *attrRef) eval(ev *evaluator, f *frame) Value {
	if i := f.ad.index(n.hash, n.name); i >= 0 {
		return ev.attribute(f, i)
	}
	if n.scope != scopeNone {
		return ev.scope(n.scope, f)
	}
	for g := f.up; g != nil; g = g.up {
		if i := g.ad.index(n.hash, n.name); i >= 0 {
			return ev.attribute(g, i)
		}
	}
	ev.strays = true
	if g := f.other; g != nil && (f.up == nil || f.reaches) {
		if i := g.ad.index(n.hash, n.name); i >= 0 {
			return ev.attribute(g, i)
		}
	}
	return Value{}
}

// scope is what one of the language's own names stands for in f.
func (ev *evaluator) scope(name scopeName, f *frame) Value {
	if name == scopeTime {
		return IntValue(ev.now().Unix())
	}
	ev.strays = ev.strays || name != scopeMy
	if g := f.scope(name); g != nil {
		return adIn(g)
	}
	return Value{}
}

// scope is the frame that one of the language's own names stands for in f, or nil.
func (f *frame) scope(name scopeName) *frame {
	switch name {
	case scopeMy:
		return f
	case scopeTarget:
		return f.other
	case scopeParent:
		return f.up
	case scopeRoot:
		return f.root()
	}
	return nil
}

func (n *rootRef) eval(ev *evaluator, f *frame) Value {
	root := f.root()
	if i := root.ad.index(n.hash, n.name); i >= 0 {
		return ev.attribute(root, i)
	}
	ev.strays = true
	return Value{}
}

// eval selects from an ad, or from every element of a list. MY.x and TARGET.x, which are most of all selections, make no value of the
// ad, unless an attribute hides the scope's name.
func (n *selection) eval(ev *evaluator, f *frame) Value {
	if n.scope != scopeNone && n.scope != scopeTime && !f.ad.hides {
		ev.strays = ev.strays || n.scope == scopeTarget
		g := f.scope(n.scope)
		if g == nil {
			return Value{}
		}
		return ev.member(g, n.hash, n.name)
	}
	return ev.selected(ev.eval(n.x, f), n, f)
}

// selected is x.name.
func (ev *evaluator) selected(x Value, n *selection, f *frame) Value {
	switch x.kind {
	case Undefined, Error:
		return x
	case AdValue:
		return ev.member(x.comp.frame(ev), n.hash, n.name)
	case List:
		// A list may hold itself, which evaluating its elements one by one does not notice.
		if ev.nest >= maxNest || !ev.spend(64*len(x.comp.elems)) {
			ev.exceed(tooMuchText)
			return ErrorValue()
		}
		ev.nest++
		defer func() { ev.nest-- }()
		values := make([]Value, len(x.comp.elems))
		for i, e := range x.comp.elems {
			values[i] = ev.selected(ev.element(x, e.n, f), n, f)
			if values[i].comp != nil && !ev.weigh(values[i]) {
				break
			}
		}
		return ListValue(values...)
	}
	return failure(noAttributes, uint8(x.kind))
}

// member is the attribute of f's ad, or of an ad that encloses it, or one of the language's own names.
func (ev *evaluator) member(f *frame, hash uint32, name string) Value {
	for g := f; g != nil; g = g.up {
		if i := g.ad.index(hash, name); i >= 0 {
			return ev.attribute(g, i)
		}
		ev.strays = ev.strays || g.up != nil
		if g == f {
			if s := scopeOf(name); s != scopeNone {
				return ev.scope(s, f)
			}
		}
	}
	return Value{}
}
