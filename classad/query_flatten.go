package classad

// cellRef is an attribute of the row in a flattened expression: a column, or a param of
// the column's template.
type cellRef struct {
	col   int
	param int // -1 for the column itself
	now   *rowCursor
}

// rowCursor is the row whose cells the evaluation of a flattened expression reads.
type rowCursor struct {
	table   *Table
	segment *tableSegment
	at      int
}

func (n *cellRef) column(s *tableSegment) *segmentColumn {
	if n.param >= 0 {
		return &s.cols[n.col].params[n.param]
	}
	return &s.cols[n.col]
}

func (n *cellRef) eval(*evaluator, *nameScope) Value {
	return n.column(n.now.segment).value(n.now.table, n.now.at)
}

// maxFlatNodes bounds the nodes of a flattened expression: attributes that mention others
// twice can make it grow exponentially.
const maxFlatNodes = 4096

// exprFlattener rewrites an expression for one segment. It replaces names by the job's
// attributes and the row's templates, computes constant parts, and replaces the remaining
// names by cellRefs. It gives up where only an evaluation can know what a name means.
type exprFlattener struct {
	table     *Table
	segment   *tableSegment
	job       *Ad // may be nil
	now       *rowCursor
	evaluator evaluator
	stack     []inlinedAttr // the attributes that are being inlined
	nodesLeft int           // nodes that the result may still get
}

// inlinedAttr is one attribute that is being inlined: the row's by column, the job's by
// index.
type inlinedAttr struct {
	side  MatchSide
	index int
}

// flatten returns the flat form of n, which belongs to a side.
func (f *exprFlattener) flatten(n exprNode, at MatchSide) (exprNode, bool) {
	if f.nodesLeft--; f.nodesLeft < 0 {
		return nil, false
	}
	switch n := n.(type) {
	case nil:
		return undefinedNode, true
	case *literalNode:
		return n, true
	case *parenNode:
		return f.flatten(n.x, at)
	case *templateParam:
		top := f.stack[len(f.stack)-1]
		return &cellRef{top.index, n.index, f.now}, true
	case *attrRef:
		return f.name(n.name, n.hash, n.scope, at)
	case *rootRef:
		return f.member(n.name, n.hash, at)
	case *selectionNode:
		switch n.scope {
		case scopeMy, scopeRoot:
			return f.scoped(n, at)
		case scopeTarget:
			return f.scoped(n, 1-at)
		case scopeNone:
			if x, ok := f.flatten(n.x, at); ok {
				return f.fold(&selectionNode{x: x, name: n.name, hash: n.hash}, x)
			}
		}
		return f.constant(n, at)
	case *subscriptNode:
		x, okx := f.flatten(n.x, at)
		i, oki := f.flatten(n.i, at)
		if !okx || !oki {
			return f.constant(n, at)
		}
		return f.fold(&subscriptNode{x, i}, x, i)
	case *unaryNode:
		x, ok := f.flatten(n.x, at)
		if !ok {
			return nil, false
		}
		return f.fold(&unaryNode{n.op, x}, x)
	case *binaryNode:
		return f.binary(n, at)
	case *elvisNode:
		return f.elvis(n, at)
	case *ternaryNode:
		return f.ternary(n, at)
	case *callNode:
		return f.call(n, at)
	case *listNode:
		for _, e := range n.elems {
			if _, ok := e.n.(*literalNode); !ok {
				return f.constant(n, at)
			}
		}
		return n, true
	}
	return f.constant(n, at)
}

var undefinedNode exprNode = &literalNode{}

// name flattens a name without a scope.
func (f *exprFlattener) name(name string, hash uint32, scope scopeName, at MatchSide) (exprNode, bool) {
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

// scoped flattens MY.x or TARGET.x, where at is the side that the scope means.
func (f *exprFlattener) scoped(n *selectionNode, at MatchSide) (exprNode, bool) {
	if scopeOf(n.name) != scopeNone {
		return nil, false
	}
	return f.member(n.name, n.hash, at)
}

func (f *exprFlattener) member(name string, hash uint32, at MatchSide) (exprNode, bool) {
	if n, ok, found := f.attribute(name, hash, at); found {
		return n, ok
	}
	return undefinedNode, true
}

// attribute returns the flat form of an attribute of one side. found is false if the side
// certainly does not have it.
func (f *exprFlattener) attribute(name string, hash uint32, at MatchSide) (n exprNode, ok, found bool) {
	if at == Left {
		return f.flattenJobAttribute(name, hash)
	}
	if scopeOf(name) != scopeNone {
		return nil, false, false // ads with such a name are not stored in columns
	}
	c, ok := f.table.column(name)
	if !ok || c >= len(f.segment.cols) {
		return nil, false, true // the schema is full, or has just grown
	}
	if f.segment.checkedAttrs.has(c) && !f.segment.presentAttrs.has(c) {
		return nil, false, false
	}
	col := &f.segment.cols[c]
	switch {
	case col.class == classExpr:
		n, ok = f.inline(inlinedAttr{Right, c}, col.template.expr)
		return n, ok, true
	case col.class == classNone && col.errorCount == 0:
		return undefinedNode, true, true
	}
	return &cellRef{c, -1, f.now}, true, true
}

func (f *exprFlattener) flattenJobAttribute(name string, hash uint32) (n exprNode, ok, found bool) {
	if f.job == nil {
		return nil, false, false
	}
	i := f.job.labelIndex(hash, name)
	if i < 0 {
		return nil, false, false
	}
	n, ok = f.inline(inlinedAttr{Left, i}, f.job.exprs[i].n)
	return n, ok, true
}

// inline replaces an attribute's name by its expression. An attribute that depends on
// itself is UNDEFINED, as in an evaluation.
func (f *exprFlattener) inline(s inlinedAttr, n exprNode) (exprNode, bool) {
	if _, isLiteral := n.(*literalNode); isLiteral {
		return n, true
	}
	for _, active := range f.stack {
		if active == s {
			return undefinedNode, true
		}
	}
	f.stack = append(f.stack, s)
	flat, ok := f.flatten(n, s.side)
	f.stack = f.stack[:len(f.stack)-1]
	return flat, ok
}

// constant evaluates an expression that is not flattened further, if it needs nothing but
// the job's ad.
func (f *exprFlattener) constant(n exprNode, at MatchSide) (exprNode, bool) {
	if at == Right || f.job == nil {
		return nil, false
	}
	// an evaluator of its own, because the value of a list refers to its scope
	ev := newEvaluator(f.job, nil, &EvalEnv{Steps: cellSteps})
	for _, s := range f.stack {
		if s.side == Left {
			ev.activeAttrs = append(ev.activeAttrs, activeAttr{f.job, s.index})
		}
	}
	v := ev.eval(n, &ev.leftScope)
	if ev.impure || ev.stepsLeft < 0 || !isContextFree(v) {
		return nil, false
	}
	return v.Expr().n, true
}

// fold computes n, whose operands are flat, if they are constant.
func (f *exprFlattener) fold(n exprNode, operands ...exprNode) (exprNode, bool) {
	for _, x := range operands {
		if !isConstant(x) {
			return n, true
		}
	}
	f.evaluator.reset(nil, nil, nil, cellSteps)
	v := f.evaluator.eval(n, &f.evaluator.leftScope)
	if f.evaluator.impure || f.evaluator.stepsLeft < 0 || !isContextFree(v) {
		return n, true
	}
	return v.Expr().n, true
}

// isConstant reports whether a flat expression has the same value for all rows.
func isConstant(n exprNode) bool {
	switch n := n.(type) {
	case *literalNode, *boundValue, *adNode:
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

// literalValue returns the value of a flat expression that is a constant scalar.
func literalValue(n exprNode) (Value, bool) {
	l, ok := n.(*literalNode)
	if !ok {
		return Value{}, false
	}
	return l.v, true
}

func (f *exprFlattener) binary(n *binaryNode, at MatchSide) (exprNode, bool) {
	x, ok := f.flatten(n.x, at)
	if !ok {
		return nil, false
	}
	if n.op == opAnd || n.op == opOr {
		// If the left side decides alone, the right one does not matter.
		if v, ok := literalValue(x); ok {
			truth, isTruth := v.Truth()
			switch {
			case isTruth && truth == (n.op == opOr):
				return &literalNode{BoolValue(truth)}, true
			case !isTruth && v.kind != Undefined:
				return &literalNode{ErrorValue()}, true
			}
		}
	}
	y, ok := f.flatten(n.y, at)
	if !ok {
		return nil, false
	}
	return f.fold(&binaryNode{n.op, x, y}, x, y)
}

func (f *exprFlattener) elvis(n *elvisNode, at MatchSide) (exprNode, bool) {
	x, ok := f.flatten(n.x, at)
	if !ok {
		return nil, false
	}
	if v, ok := literalValue(x); ok {
		if v.kind != Undefined {
			return x, true
		}
		return f.flatten(n.y, at)
	}
	y, ok := f.flatten(n.y, at)
	return &elvisNode{x, y}, ok
}

func (f *exprFlattener) ternary(n *ternaryNode, at MatchSide) (exprNode, bool) {
	cond, ok := f.flatten(n.cond, at)
	if !ok {
		return nil, false
	}
	if v, ok := literalValue(cond); ok {
		truth, isTruth := v.Truth()
		switch {
		case v.kind == Undefined:
			return undefinedNode, true
		case !isTruth:
			return &literalNode{ErrorValue()}, true
		case truth:
			return f.flatten(n.x, at)
		}
		return f.flatten(n.y, at)
	}
	x, okx := f.flatten(n.x, at)
	y, oky := f.flatten(n.y, at)
	return &ternaryNode{cond, x, y}, okx && oky
}

// call flattens the arguments of a function. Functions on expressions are left as they
// are.
func (f *exprFlattener) call(n *callNode, at MatchSide) (exprNode, bool) {
	if n.fn.call == nil || len(n.args) < n.fn.minArgs || len(n.args) > n.fn.maxArgs {
		return &literalNode{ErrorValue()}, true
	}
	if contextBuiltin(lowerASCII(n.name)).call != nil {
		return f.flattenContextCall(n, at)
	}
	flat := &callNode{name: n.name, fn: n.fn, args: make([]Expr, len(n.args))}
	operands := make([]exprNode, len(n.args))
	for i, arg := range n.args {
		x, ok := f.flatten(arg.n, at)
		if !ok {
			return nil, false
		}
		flat.args[i], operands[i] = Expr{x}, x
	}
	if flat.re = n.re; flat.re == nil {
		flat.re = compiledLiteral(flat)
	}
	return f.fold(flat, operands...)
}

// flattenContextCall handles functions on expressions. Of those that evaluate an
// expression in each ad of a list, only the list is flattened, because it may be the
// row's: the rest is the job's, and its names are looked up during the evaluation.
func (f *exprFlattener) flattenContextCall(n *callNode, at MatchSide) (exprNode, bool) {
	if flat, ok := f.constant(n, at); ok {
		return flat, true
	}
	if at == Right || len(n.args) != 2 || !foldEqual(n.name, "countMatches") &&
		!foldEqual(n.name, "evalInEachContext") {
		return nil, false
	}
	list, ok := f.flatten(n.args[1].n, at)
	if !ok {
		return nil, false
	}
	return &callNode{name: n.name, fn: n.fn, args: []Expr{n.args[0], {list}}}, true
}

// unflatten returns a flat expression with names in place of cells, for printing.
func unflatten(n exprNode) exprNode {
	switch n := n.(type) {
	case *cellRef:
		if n.param >= 0 {
			return &literalNode{n.eval(nil, nil)}
		}
		name := n.now.table.attrs[n.col].name
		return &selectionNode{x: &attrRef{name: "TARGET", hash: hashName("TARGET"), scope: scopeTarget}, name: name,
			hash: hashName(name), scope: scopeTarget}
	case *unaryNode:
		return &unaryNode{n.op, unflatten(n.x)}
	case *binaryNode:
		return &binaryNode{n.op, unflatten(n.x), unflatten(n.y)}
	case *elvisNode:
		return &elvisNode{unflatten(n.x), unflatten(n.y)}
	case *ternaryNode:
		return &ternaryNode{unflatten(n.cond), unflatten(n.x), unflatten(n.y)}
	case *selectionNode:
		return &selectionNode{unflatten(n.x), n.name, n.hash, n.scope}
	case *subscriptNode:
		return &subscriptNode{unflatten(n.x), unflatten(n.i)}
	case *callNode:
		c := &callNode{name: n.name, fn: n.fn, re: n.re}
		for _, arg := range n.args {
			c.args = append(c.args, Expr{unflatten(arg.n)})
		}
		return c
	}
	return n
}
