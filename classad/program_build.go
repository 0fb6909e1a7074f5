package classad

// programBuilder compiles flattened expressions for one segment into programs.
type programBuilder struct {
	query   *Query
	segment *tableSegment
	steps   []func(m *vectorVM)
	vectors int
	masks   int
	caches  int
	loaded  map[[2]int]compiledOperand
}

// program compiles a flat expression as a condition. ok is false if that is not possible.
func (l *programBuilder) program(n exprNode) (p vectorProgram, ok bool) {
	l.steps, l.vectors, l.masks, l.caches = nil, 0, fixedMasks, 0
	l.loaded = map[[2]int]compiledOperand{}
	x, ok := l.truth(n)
	if !ok {
		return vectorProgram{}, false
	}
	return vectorProgram{l.steps, l.loadConstant(x)}, true
}

// value compiles a flat expression as a number.
func (l *programBuilder) value(n exprNode) (p vectorProgram, ok bool) {
	l.steps, l.vectors, l.masks, l.caches = nil, 0, fixedMasks, 0
	l.loaded = map[[2]int]compiledOperand{}
	x, ok := l.build(n)
	if !ok {
		return vectorProgram{}, false
	}
	if x.kind == String {
		x = literalOperand(UndefinedValue())
	}
	return vectorProgram{l.steps, l.loadConstant(x)}, true
}

func literalOperand(v Value) compiledOperand {
	return compiledOperand{kind: v.kind, isLiteral: true, value: v}
}

func (l *programBuilder) step(f func(m *vectorVM)) { l.steps = append(l.steps, f) }

func (l *programBuilder) vector() int {
	l.vectors++
	return l.vectors - 1
}

func (l *programBuilder) mask() int {
	l.masks++
	return l.masks - 1
}

// unionMask returns a mask of the lanes in x or y.
func (l *programBuilder) unionMask(x, y int) int {
	switch {
	case x == zeros || x == y:
		return y
	case y == zeros:
		return x
	}
	r := l.mask()
	l.step(func(m *vectorVM) {
		a, b, out := &m.masks[x], &m.masks[y], &m.masks[r]
		for i := range out {
			out[i] = a[i] | b[i]
		}
	})
	return r
}

// differenceMask returns a mask of the lanes in x and not in y.
func (l *programBuilder) differenceMask(x, y int) int {
	if x == zeros || y == zeros {
		return x
	}
	r := l.mask()
	l.step(func(m *vectorVM) {
		a, b, out := &m.masks[x], &m.masks[y], &m.masks[r]
		for i := range out {
			out[i] = a[i] &^ b[i]
		}
	})
	return r
}

// intersectionMask returns a mask of the lanes in x and in y.
func (l *programBuilder) intersectionMask(x, y int) int {
	switch {
	case x == zeros || y == zeros:
		return zeros
	case x == ones || x == y:
		return y
	case y == ones:
		return x
	}
	r := l.mask()
	l.step(func(m *vectorVM) {
		a, b, out := &m.masks[x], &m.masks[y], &m.masks[r]
		for i := range out {
			out[i] = a[i] & b[i]
		}
	})
	return r
}

// mismatchResult returns the result of an operator whose operand types never fit. It is
// ERROR, or UNDEFINED where an operand is.
func (l *programBuilder) mismatchResult(x, y compiledOperand) compiledOperand {
	bad := l.unionMask(x.errors, y.errors)
	undef := l.differenceMask(l.unionMask(x.undefined, y.undefined), bad)
	return compiledOperand{kind: Boolean, at: zeros, undefined: undef, errors: l.differenceMask(ones, undef)}
}

// gapMasks returns the masks of the result of an operator that is ERROR or UNDEFINED
// where an operand is.
func (l *programBuilder) gapMasks(x, y compiledOperand) (undef, bad int) {
	bad = l.unionMask(x.errors, y.errors)
	return l.differenceMask(l.unionMask(x.undefined, y.undefined), bad), bad
}

// loadConstant puts a constant into registers of its own.
func (l *programBuilder) loadConstant(x compiledOperand) compiledOperand {
	if !x.isLiteral {
		return x
	}
	switch x.value.kind {
	case Undefined:
		return compiledOperand{kind: Boolean, at: zeros, undefined: ones, errors: zeros}
	case Boolean:
		if x.value.num != 0 {
			return compiledOperand{kind: Boolean, at: ones}
		}
		return compiledOperand{kind: Boolean, at: zeros}
	case Integer, Real, String:
		w := x.value.num
		if x.value.kind == String {
			w = uint64(l.query.table.strings.text(x.value.str))
		}
		r := l.vector()
		l.step(func(m *vectorVM) {
			out := m.ownVector(r)
			for i := range out {
				out[i] = w
			}
		})
		return compiledOperand{kind: x.value.kind, at: r}
	}
	return compiledOperand{kind: Boolean, at: zeros, undefined: zeros, errors: ones}
}

// build compiles a flat expression. ok is false if that is not possible.
func (l *programBuilder) build(n exprNode) (x compiledOperand, ok bool) {
	switch n := n.(type) {
	case *literalNode:
		switch n.v.kind {
		case AbsTime, RelTime:
			return compiledOperand{}, false
		}
		return literalOperand(n.v), true
	case *cellRef:
		return l.load(n)
	case *unaryNode:
		return l.unary(n)
	case *binaryNode:
		switch n.op {
		case opAnd, opOr:
			return l.logic(n)
		case opIs, opIsnt:
			return l.identical(n)
		}
		x, okx := l.build(n.x)
		y, oky := l.build(n.y)
		if !okx || !oky {
			return compiledOperand{}, false
		}
		switch {
		case n.op >= opEqual && n.op <= opGreaterEqual:
			return l.compare(n.op, x, y)
		case n.op >= opAdd && n.op <= opModulo:
			return l.arithmetic(n.op, x, y)
		}
	case *elvisNode:
		return l.elvis(n)
	case *ternaryNode:
		return l.choice(n.cond, n.x, n.y)
	case *callNode:
		return l.call(n)
	}
	return compiledOperand{}, false
}

// load reads a column, once in each program.
func (l *programBuilder) load(n *cellRef) (compiledOperand, bool) {
	key := [2]int{n.col, n.param}
	if x, ok := l.loaded[key]; ok {
		return x, true
	}
	c := n.column(l.segment)
	if c.class == classOther || c.class == classExpr {
		return compiledOperand{}, false
	}
	x := compiledOperand{kind: Boolean, at: zeros, undefined: zeros, errors: zeros}
	x.undefined, x.errors = l.mask(), l.mask()
	undef, bad := x.undefined, x.errors
	l.step(func(m *vectorVM) {
		c := n.column(m.segment)
		if c.undefinedCount == 0 {
			m.masks[undef] = laneMask{}
		} else {
			m.loadBits(undef, c.undefined)
		}
		if c.errorCount == 0 {
			m.masks[bad] = laneMask{}
		} else {
			m.loadBits(bad, c.errors)
		}
	})
	switch c.class {
	case classBool:
		at := l.mask()
		x.at = at
		l.step(func(m *vectorVM) { m.loadBits(at, n.column(m.segment).bools) })
	case classInt, classReal, classString:
		at := l.vector()
		x.at = at
		x.kind = [...]ValueKind{classInt: Integer, classReal: Real, classString: String}[c.class]
		l.step(func(m *vectorVM) { m.loadCells(at, n.column(m.segment)) })
	}
	l.loaded[key] = x
	return x, true
}

// truth compiles a flat expression as a condition: a Boolean that is true for numbers
// other than 0.
func (l *programBuilder) truth(n exprNode) (compiledOperand, bool) {
	steps, vectors, masks := len(l.steps), l.vectors, l.masks
	x, ok := l.build(n)
	if !ok {
		l.steps, l.vectors, l.masks = l.steps[:steps], vectors, masks
		for key, x := range l.loaded { // forget the columns loaded in the failed attempt
			if x.undefined >= masks {
				delete(l.loaded, key)
			}
		}
		return l.buildCached(n)
	}
	if x.isLiteral {
		if x.value.kind != Undefined {
			truth, ok := x.value.Truth()
			if x.value = BoolValue(truth); !ok {
				x.value = ErrorValue()
			}
		}
		return literalOperand(x.value), true
	}
	switch x.kind {
	case Boolean:
		return x, true
	case Integer, Real:
		equal := l.mask()
		l.step(func(m *vectorVM) { realsOrIntsZero(m.vectors[x.at], x.kind == Real, &m.live, &m.masks[equal]) })
		not := l.differenceMask(ones, l.unionMask(equal, l.unionMask(x.undefined, x.errors)))
		return compiledOperand{kind: Boolean, at: not, undefined: x.undefined, errors: x.errors}, true
	}
	return compiledOperand{kind: Boolean, at: zeros, undefined: x.undefined,
		errors: l.differenceMask(ones, x.undefined)}, true
}

func realsOrIntsZero(x *laneVector, isReal bool, live, out *laneMask) {
	if isReal {
		realsEqual(x, 0, live, out)
		return
	}
	wordsEqual(x, 0, live, out)
}

func (l *programBuilder) unary(n *unaryNode) (compiledOperand, bool) {
	if n.op == opNot {
		x, ok := l.truth(n.x)
		if !ok {
			return compiledOperand{}, false
		}
		x = l.loadConstant(x)
		return compiledOperand{kind: Boolean, at: l.differenceMask(ones,
			l.unionMask(x.at, l.unionMask(x.undefined, x.errors))), undefined: x.undefined, errors: x.errors}, true
	}
	x, ok := l.build(n.x)
	if !ok || x.isLiteral || x.kind != Integer && x.kind != Real || n.op != opSubtract && n.op != opAdd {
		return compiledOperand{}, false
	}
	if n.op == opAdd {
		return x, true
	}
	r, isReal, from := l.vector(), x.kind == Real, x.at
	l.step(func(m *vectorVM) {
		in, out := m.vectors[from], m.ownVector(r)
		for i, a := range in {
			if isReal {
				out[i] = a ^ 1<<63
			} else {
				out[i] = -a
			}
		}
	})
	x.at = r
	return x, true
}

// logic compiles x && y and x || y. The left side decides alone if it can; see
// evaluator.logic.
func (l *programBuilder) logic(n *binaryNode) (compiledOperand, bool) {
	x, okx := l.truth(n.x)
	y, oky := l.truth(n.y)
	if !okx || !oky {
		return compiledOperand{}, false
	}
	x, y = l.loadConstant(x), l.loadConstant(y)
	r, undef, bad := l.mask(), zeros, zeros
	if x.undefined != zeros || y.undefined != zeros || x.errors != zeros || y.errors != zeros {
		undef, bad = l.mask(), l.mask()
	}
	and := n.op == opAnd
	l.step(func(m *vectorVM) {
		for i := range lanes / 64 {
			xt, xu, xe := m.masks[x.at][i], m.masks[x.undefined][i], m.masks[x.errors][i]
			yt, yu, ye := m.masks[y.at][i], m.masks[y.undefined][i], m.masks[y.errors][i]
			xf, yf := ^(xt | xu | xe), ^(yt | yu | ye)
			if and {
				m.masks[r][i] = xt & yt
				if undef != zeros {
					m.masks[undef][i] = xu&(yt|yu) | xt&yu
					m.masks[bad][i] = xe | (xt|xu)&ye
				}
				continue
			}
			m.masks[r][i] = xt | (xf|xu)&yt
			if undef != zeros {
				m.masks[undef][i] = xu&(yf|yu) | xf&yu
				m.masks[bad][i] = xe | (xf|xu)&ye
			}
		}
	})
	return compiledOperand{kind: Boolean, at: r, undefined: undef, errors: bad}, true
}
