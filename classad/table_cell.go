package classad

// readCell reads attribute c of an ad into x. If the expression in col, the row's present
// column, still fits, it is not evaluated again.
func (t *Table) readCell(x *tableCell, c int, ad *Ad, col *segmentColumn) {
	a := &t.attrs[c]
	*x = tableCell{params: x.params[:0]}
	i := ad.labelIndex(a.hash, a.name)
	if i < 0 {
		return
	}
	x.present = true
	switch n := withoutParens(ad.exprs[i].n).(type) {
	case nil:
	case *literalNode:
		t.setValueCell(x, n.v)
	case *adNode:
		t.setOtherCell(x, scopeAd(t.outerScope.nested(n.ad)))
	default:
		t.setExprCell(x, n, ad, i, col)
	}
}

// setExprCell stores an expression: its value if it depends only on the ad, else the
// expression itself.
func (t *Table) setExprCell(x *tableCell, n exprNode, ad *Ad, i int, col *segmentColumn) {
	if col != nil && col.class == classExpr {
		if params, ok := col.template.fits(n, x.params); ok {
			x.class, x.template, x.params = classExpr, col.template, params
			return
		}
	}
	if v, ok := t.constantValue(ad, i); ok && isContextFree(v) {
		switch v.kind {
		case List:
			v = Value{kind: List, comp: &compositeValue{elems: v.comp.elems, in: t.outerScope}}
		case AdValue:
			v = scopeAd(t.outerScope.nested(v.comp.ad))
		}
		if v.comp != nil {
			t.setOtherCell(x, v)
			return
		}
		t.setValueCell(x, v)
		return
	}
	x.class = classExpr
	x.template = t.findTemplate(x, n)
}

// isContextFree reports whether a value means the same in every scope. Names in a list
// are looked up where the list is used; those in a nested ad, where the ad is written.
func isContextFree(v Value) bool { return v.kind != List || allContextFree(v.comp.elems) }

func allContextFree(elems []Expr) bool {
	for _, e := range elems {
		switch n := withoutParens(e.n).(type) {
		case *literalNode, *adNode, nil:
		case *boundValue:
			if !isContextFree(n.v) {
				return false
			}
		case *listNode:
			if !allContextFree(n.elems) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// constantValue returns the value of an attribute, if it depends only on the ad.
func (t *Table) constantValue(ad *Ad, i int) (v Value, ok bool) {
	ev := &t.evaluator
	ev.reset(ad, nil, nil, cellSteps)
	v = ev.attribute(&ev.leftScope, i)
	return v, !ev.impure && ev.stepsLeft >= 0
}

// findTemplate returns the template that n fits, and puts its literals into x. It adds a
// missing template; at the bound it returns nil.
func (t *Table) findTemplate(x *tableCell, n exprNode) *exprTemplate {
	for _, form := range t.templates {
		if params, ok := form.fits(n, x.params[:0]); ok {
			x.params = params
			return form
		}
	}
	if len(t.templates) >= maxTemplates {
		return nil
	}
	form := &exprTemplate{id: len(t.templates)}
	x.params = x.params[:0]
	form.expr = liftLiterals(n, &x.params)
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

// setValueCell stores a value other than a list or an ad.
func (t *Table) setValueCell(x *tableCell, v Value) {
	x.class = classOf(v.kind)
	switch x.class {
	case classNone:
		x.isError = v.kind == Error
	case classString:
		x.bits = uint64(t.strings.text(v.str))
	case classOther:
		t.setOtherCell(x, v)
	default:
		x.bits = v.num
	}
}

// setOtherCell stores a list, an ad or a time.
func (t *Table) setOtherCell(x *tableCell, v Value) {
	x.class = classOther
	t.text = printStyle{exact: true}.value(t.text[:0], v)
	if len(t.text) > maxOther {
		x.class, t.text = classExpr, nil // without a template the row is evaluated alone
		return
	}
	x.bits = uint64(t.otherValues.other(t.text, v))
}

// reset makes the evaluator ready for another evaluation.
func (ev *evaluator) reset(my, target *Ad, env *EvalEnv, steps int) {
	ev.env, ev.stepsLeft, ev.textLeft, ev.depth, ev.impure, ev.bound = env, steps, maxText, 0, false, unknownCause
	ev.activeAttrs = ev.firstActive[:0]
	if my == nil {
		my = &ev.emptyScope
	}
	ev.leftScope, ev.rightScope = nameScope{ad: my}, nameScope{}
	if target != nil {
		ev.rightScope = nameScope{ad: target, other: &ev.leftScope}
		ev.leftScope.other = &ev.rightScope
	}
}
