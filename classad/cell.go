package classad

// cell reads attribute c of an ad into x. Where col, the column where the row stands now, has an expression that still fits, it is not
// evaluated again.
func (t *Table) cell(x *cell, c int, ad *Ad, col *column) {
	a := &t.attrs[c]
	*x = cell{params: x.params[:0]}
	i := ad.index(a.hash, a.name)
	if i < 0 {
		return
	}
	x.there = true
	switch n := bare(ad.exprs[i].n).(type) {
	case nil:
	case *literal:
		t.setValue(x, n.v)
	case *adNode:
		t.setOther(x, adIn(t.nowhere.inside(n.ad)))
	default:
		t.setExpr(x, n, ad, i, col)
	}
}

// setExpr is for an expression: its value, if it needs nothing but the ad, else the expression itself.
func (t *Table) setExpr(x *cell, n node, ad *Ad, i int, col *column) {
	if col != nil && col.class == ofExpr {
		if params, ok := col.form.fits(n, x.params); ok {
			x.class, x.form, x.params = ofExpr, col.form, params
			return
		}
	}
	if v, ok := t.own(ad, i); ok && isPlain(v) {
		switch v.kind {
		case List:
			v = Value{kind: List, comp: &composite{elems: v.comp.elems, in: t.nowhere}}
		case AdValue:
			v = adIn(t.nowhere.inside(v.comp.ad))
		}
		if v.comp != nil {
			t.setOther(x, v)
			return
		}
		t.setValue(x, v)
		return
	}
	x.class = ofExpr
	x.form = t.template(x, n)
}

// isPlain says whether a value means the same wherever it is used. Names in a list are looked up where the list is used; those in a nested
// ad where that stands.
func isPlain(v Value) bool { return v.kind != List || allPlain(v.comp.elems) }

func allPlain(elems []Expr) bool {
	for _, e := range elems {
		switch n := bare(e.n).(type) {
		case *literal, *adNode, nil:
		case *fixed:
			if !isPlain(n.v) {
				return false
			}
		case *listNode:
			if !allPlain(n.elems) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// own is the value of an attribute, if it needs nothing but the ad.
func (t *Table) own(ad *Ad, i int) (v Value, ok bool) {
	ev := &t.probe
	ev.reset(ad, nil, nil, cellSteps)
	v = ev.attribute(&ev.left, i)
	return v, !ev.strays && ev.steps >= 0
}

// template is the template that n fits, with its literals left in x. It is made if there is none; beyond the bound it is nil.
func (t *Table) template(x *cell, n node) *template {
	for _, form := range t.templates {
		if params, ok := form.fits(n, x.params[:0]); ok {
			x.params = params
			return form
		}
	}
	if len(t.templates) >= maxTemplates {
		return nil
	}
	form := &template{id: len(t.templates)}
	x.params = x.params[:0]
	form.n = lift(n, &x.params)
	for _, v := range x.params {
		form.kinds = append(form.kinds, classOf(v.kind))
	}
	my, _, unscoped := References(Expr{n})
	for _, name := range my {
		t.column(name)
	}
	for _, name := range unscoped {
		c, ok := t.column(name)
		if !ok {
			return nil
		}
		form.names = append(form.names, c)
	}
	t.templates = append(t.templates, form)
	return form
}

// setValue is for a value other than a list or an ad.
func (t *Table) setValue(x *cell, v Value) {
	x.class = classOf(v.kind)
	switch x.class {
	case ofNothing:
		x.bad = v.kind == Error
	case ofTexts:
		x.bits = uint64(t.texts.text(v.str))
	case ofOthers:
		t.setOther(x, v)
	default:
		x.bits = v.num
	}
}

// setOther is for a list, an ad or a time.
func (t *Table) setOther(x *cell, v Value) {
	x.class = ofOthers
	t.text = style{exact: true}.value(t.text[:0], v)
	if len(t.text) > maxOther {
		x.class, t.text = ofExpr, nil // without a template: the row is evaluated by itself
		return
	}
	x.bits = uint64(t.others.other(t.text, v))
}

// reset makes the evaluator ready for another evaluation.
func (ev *evaluator) reset(my, target *Ad, env *Env, steps int) {
	ev.env, ev.steps, ev.text, ev.nest, ev.strays, ev.bound = env, steps, maxText, 0, false, noCause
	ev.active = ev.first[:0]
	if my == nil {
		my = &ev.empty
	}
	ev.left, ev.right = frame{ad: my}, frame{}
	if target != nil {
		ev.right = frame{ad: target, other: &ev.left}
		ev.left.other = &ev.right
	}
}
