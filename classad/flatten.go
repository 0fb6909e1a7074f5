package classad

// cellRef is an attribute of the row, in a flattened expression: the column of that number, or a param of its template.
type cellRef struct {
	col   int
	param int // -1 for the column itself
	now   *cursor
}

// cursor is the row whose cells an evaluation of a flattened expression sees.
type cursor struct {
	t   *Table
	seg *segment
	at  int
}

func (n *cellRef) column(s *segment) *column {
	if n.param >= 0 {
		return &s.cols[n.col].params[n.param]
	}
	return &s.cols[n.col]
}

func (n *cellRef) eval(*evaluator, *frame) Value {
	return n.column(n.now.seg).value(n.now.t, n.now.at)
}

// maxFlat bounds the nodes of a flattened expression: attributes that mention others twice can make it grow without end.
const maxFlat = 4096

// flattener rewrites an expression for one segment: the job's attributes and the row's templates are put in place of their names, what is
// then constant is computed, and what remains of names is cellRefs. It gives up where a name means something only at evaluation.
type flattener struct {
	t     *Table
	seg   *segment
	job   *Ad // may be nil
	now   *cursor
	ev    evaluator
	stack []within // the attributes that are being put in place
	left  int      // nodes
}

// within is one attribute on the way; the row's by column, the job's by place.
type within struct {
	at Side
	i  int
}

// flat is n, which stands on a side, flattened.
func (f *flattener) flat(n node, at Side) (node, bool) {
	if f.left--; f.left < 0 {
		return nil, false
	}
	switch n := n.(type) {
	case nil:
		return undefinedNode, true
	case *literal:
		return n, true
	case *paren:
		return f.flat(n.x, at)
	case *param:
		top := f.stack[len(f.stack)-1]
		return &cellRef{top.i, n.k, f.now}, true
	case *attrRef:
		return f.name(n.name, n.hash, n.scope, at)
	case *rootRef:
		return f.member(n.name, n.hash, at)
	case *selection:
		switch n.scope {
		case scopeMy, scopeRoot:
			return f.scoped(n, at)
		case scopeTarget:
			return f.scoped(n, 1-at)
		case scopeNone:
			if x, ok := f.flat(n.x, at); ok {
				return f.fold(&selection{x: x, name: n.name, hash: n.hash}, x)
			}
		}
		return f.constant(n, at)
	case *index:
		x, okx := f.flat(n.x, at)
		i, oki := f.flat(n.i, at)
		if !okx || !oki {
			return f.constant(n, at)
		}
		return f.fold(&index{x, i}, x, i)
	case *unary:
		x, ok := f.flat(n.x, at)
		if !ok {
			return nil, false
		}
		return f.fold(&unary{n.op, x}, x)
	case *binary:
		return f.binary(n, at)
	case *elvis:
		return f.elvis(n, at)
	case *ternary:
		return f.ternary(n, at)
	case *callNode:
		return f.call(n, at)
	case *listNode:
		for _, e := range n.elems {
			if _, ok := e.n.(*literal); !ok {
				return f.constant(n, at)
			}
		}
		return n, true
	}
	return f.constant(n, at)
}

var undefinedNode node = &literal{}

// name is a name without a scope.
func (f *flattener) name(name string, hash uint32, scope scopeName, at Side) (node, bool) {
	if n, ok, found := f.attribute(name, hash, at); found {
		return n, ok
	}
	if scope == scopeTime {
		return &callNode{name: "time", fn: findBuiltin("time")}, true
	}
	if scope != scopeNone {
		return nil, false
	}
	n, ok, found := f.attribute(name, hash, 1-at)
	if !found {
		return undefinedNode, true
	}
	return n, ok
}

// scoped is MY.x or TARGET.x, where at is the side that is meant.
func (f *flattener) scoped(n *selection, at Side) (node, bool) {
	if scopeOf(n.name) != scopeNone {
		return nil, false
	}
	return f.member(n.name, n.hash, at)
}

func (f *flattener) member(name string, hash uint32, at Side) (node, bool) {
	if n, ok, found := f.attribute(name, hash, at); found {
		return n, ok
	}
	return undefinedNode, true
}

// attribute is what stands for an attribute of one side. It is not found where the side certainly does not have it.
func (f *flattener) attribute(name string, hash uint32, at Side) (n node, ok, found bool) {
	if at == Left {
		return f.jobAttribute(name, hash)
	}
	if scopeOf(name) != scopeNone {
		return nil, false, false // ads that have such a name are not kept in columns
	}
	c, ok := f.t.column(name)
	if !ok || c >= len(f.seg.cols) {
		return nil, false, true // there is no room, or the schema has just grown
	}
	if f.seg.tells.has(c) && !f.seg.there.has(c) {
		return nil, false, false
	}
	col := &f.seg.cols[c]
	switch {
	case col.class == ofExpr:
		n, ok = f.inline(within{Right, c}, col.form.n)
		return n, ok, true
	case col.class == ofNothing && col.bads == 0:
		return undefinedNode, true, true
	}
	return &cellRef{c, -1, f.now}, true, true
}

func (f *flattener) jobAttribute(name string, hash uint32) (n node, ok, found bool) {
	if f.job == nil {
		return nil, false, false
	}
	i := f.job.index(hash, name)
	if i < 0 {
		return nil, false, false
	}
	n, ok = f.inline(within{Left, i}, f.job.exprs[i].n)
	return n, ok, true
}

// inline puts an attribute's expression in place of its name. One that needs itself is UNDEFINED, as it is when it is evaluated.
func (f *flattener) inline(s within, n node) (node, bool) {
	if _, isLiteral := n.(*literal); isLiteral {
		return n, true
	}
	for _, active := range f.stack {
		if active == s {
			return undefinedNode, true
		}
	}
	f.stack = append(f.stack, s)
	flat, ok := f.flat(n, s.at)
	f.stack = f.stack[:len(f.stack)-1]
	return flat, ok
}

// constant is for expressions that are not taken apart: their value, if they need nothing but the job's ad.
func (f *flattener) constant(n node, at Side) (node, bool) {
	if at == Right || f.job == nil {
		return nil, false
	}
	ev := newEvaluator(f.job, nil, &Env{Steps: cellSteps}) // of its own: the value of a list keeps its frame
	for _, s := range f.stack {
		if s.at == Left {
			ev.active = append(ev.active, active{f.job, s.i})
		}
	}
	v := ev.eval(n, &ev.left)
	if ev.strays || ev.steps < 0 || !isPlain(v) {
		return nil, false
	}
	return v.Expr().n, true
}

// fold computes n, whose operands are flat, if they are constant.
func (f *flattener) fold(n node, operands ...node) (node, bool) {
	for _, x := range operands {
		if !isConstant(x) {
			return n, true
		}
	}
	f.ev.reset(nil, nil, nil, cellSteps)
	v := f.ev.eval(n, &f.ev.left)
	if f.ev.strays || f.ev.steps < 0 || !isPlain(v) {
		return n, true
	}
	return v.Expr().n, true
}

// isConstant says whether a flat expression is the same for all rows.
func isConstant(n node) bool {
	switch n := n.(type) {
	case *literal, *fixed, *adNode:
		return true
	case *listNode:
		for _, e := range n.elems {
			if !isConstant(e.n) {
				return false
			}
		}
		return true
	}
	return false
}

// literalValue is the value of a flat expression that is a constant scalar.
func literalValue(n node) (Value, bool) {
	l, ok := n.(*literal)
	if !ok {
		return Value{}, false
	}
	return l.v, true
}

func (f *flattener) binary(n *binary, at Side) (node, bool) {
	x, ok := f.flat(n.x, at)
	if !ok {
		return nil, false
	}
	if n.op == opAnd || n.op == opOr {
		// The left side may decide alone, and then the right one does not matter.
		if v, ok := literalValue(x); ok {
			truth, isTruth := v.Truth()
			switch {
			case isTruth && truth == (n.op == opOr):
				return &literal{BoolValue(truth)}, true
			case !isTruth && v.kind != Undefined:
				return &literal{ErrorValue()}, true
			}
		}
	}
	y, ok := f.flat(n.y, at)
	if !ok {
		return nil, false
	}
	return f.fold(&binary{n.op, x, y}, x, y)
}

func (f *flattener) elvis(n *elvis, at Side) (node, bool) {
	x, ok := f.flat(n.x, at)
	if !ok {
		return nil, false
	}
	if v, ok := literalValue(x); ok {
		if v.kind != Undefined {
			return x, true
		}
		return f.flat(n.y, at)
	}
	y, ok := f.flat(n.y, at)
	return &elvis{x, y}, ok
}

func (f *flattener) ternary(n *ternary, at Side) (node, bool) {
	cond, ok := f.flat(n.cond, at)
	if !ok {
		return nil, false
	}
	if v, ok := literalValue(cond); ok {
		truth, isTruth := v.Truth()
		switch {
		case v.kind == Undefined:
			return undefinedNode, true
		case !isTruth:
			return &literal{ErrorValue()}, true
		case truth:
			return f.flat(n.x, at)
		}
		return f.flat(n.y, at)
	}
	x, okx := f.flat(n.x, at)
	y, oky := f.flat(n.y, at)
	return &ternary{cond, x, y}, okx && oky
}

// call flattens the arguments of a function. Functions that look at expressions rather than values are not taken apart.
func (f *flattener) call(n *callNode, at Side) (node, bool) {
	if n.fn.call == nil || len(n.args) < n.fn.least || len(n.args) > n.fn.most {
		return &literal{ErrorValue()}, true
	}
	if contextBuiltin(lowerASCII(n.name)).call != nil {
		return f.inContexts(n, at)
	}
	flat := &callNode{name: n.name, fn: n.fn, args: make([]Expr, len(n.args))}
	operands := make([]node, len(n.args))
	for i, arg := range n.args {
		x, ok := f.flat(arg.n, at)
		if !ok {
			return nil, false
		}
		flat.args[i], operands[i] = Expr{x}, x
	}
	if flat.re = n.re; flat.re == nil {
		flat.re = compiled(flat)
	}
	return f.fold(flat, operands...)
}

// inContexts is for functions that look at expressions rather than values. Those that evaluate one in each ad of a list are kept as they are
// but for the list, which may be the row's: the rest is the job's, and is looked up there when it is evaluated.
func (f *flattener) inContexts(n *callNode, at Side) (node, bool) {
	if flat, ok := f.constant(n, at); ok {
		return flat, true
	}
	if at == Right || len(n.args) != 2 || !foldEqual(n.name, "countMatches") && !foldEqual(n.name, "evalInEachContext") {
		return nil, false
	}
	list, ok := f.flat(n.args[1].n, at)
	if !ok {
		return nil, false
	}
	return &callNode{name: n.name, fn: n.fn, args: []Expr{n.args[0], {list}}}, true
}

// unflatten is a flat expression with names in place of cells, for printing.
func unflatten(n node) node {
	switch n := n.(type) {
	case *cellRef:
		if n.param >= 0 {
			return &literal{n.eval(nil, nil)}
		}
		name := n.now.t.attrs[n.col].name
		return &selection{x: &attrRef{name: "TARGET", hash: hashName("TARGET"), scope: scopeTarget}, name: name, hash: hashName(name), scope: scopeTarget}
	case *unary:
		return &unary{n.op, unflatten(n.x)}
	case *binary:
		return &binary{n.op, unflatten(n.x), unflatten(n.y)}
	case *elvis:
		return &elvis{unflatten(n.x), unflatten(n.y)}
	case *ternary:
		return &ternary{unflatten(n.cond), unflatten(n.x), unflatten(n.y)}
	case *selection:
		return &selection{unflatten(n.x), n.name, n.hash, n.scope}
	case *index:
		return &index{unflatten(n.x), unflatten(n.i)}
	case *callNode:
		c := &callNode{name: n.name, fn: n.fn, re: n.re}
		for _, arg := range n.args {
			c.args = append(c.args, Expr{unflatten(arg.n)})
		}
		return c
	}
	return n
}
