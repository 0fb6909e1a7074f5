package classad

// lowering compiles flattened expressions for one segment into programs.
type lowering struct {
	q       *Query
	seg     *segment
	steps   []func(m *machine)
	vectors int
	masks   int
	memos   int
	loaded  map[[2]int]operand
}

// program compiles a flat expression as a condition. ok is false if it cannot be compiled.
func (l *lowering) program(n node) (p program, ok bool) {
	l.steps, l.vectors, l.masks, l.memos = nil, 0, fixedMasks, 0
	l.loaded = map[[2]int]operand{}
	x, ok := l.truth(n)
	if !ok {
		return program{}, false
	}
	return program{l.steps, l.inRegisters(x)}, true
}

// value compiles a flat expression as a number.
func (l *lowering) value(n node) (p program, ok bool) {
	l.steps, l.vectors, l.masks, l.memos = nil, 0, fixedMasks, 0
	l.loaded = map[[2]int]operand{}
	x, ok := l.lower(n)
	if !ok {
		return program{}, false
	}
	if x.kind == String {
		x = literalOperand(UndefinedValue())
	}
	return program{l.steps, l.inRegisters(x)}, true
}

func literalOperand(v Value) operand { return operand{kind: v.kind, lit: true, v: v} }

func (l *lowering) step(f func(m *machine)) { l.steps = append(l.steps, f) }

func (l *lowering) vector() int {
	l.vectors++
	return l.vectors - 1
}

func (l *lowering) mask() int {
	l.masks++
	return l.masks - 1
}

// either is a mask of the lanes in x or y.
func (l *lowering) either(x, y int) int {
	switch {
	case x == zeros || x == y:
		return y
	case y == zeros:
		return x
	}
	r := l.mask()
	l.step(func(m *machine) {
		a, b, out := &m.m[x], &m.m[y], &m.m[r]
		for i := range out {
			out[i] = a[i] | b[i]
		}
	})
	return r
}

// without is a mask of the lanes in x and not in y.
func (l *lowering) without(x, y int) int {
	if x == zeros || y == zeros {
		return x
	}
	r := l.mask()
	l.step(func(m *machine) {
		a, b, out := &m.m[x], &m.m[y], &m.m[r]
		for i := range out {
			out[i] = a[i] &^ b[i]
		}
	})
	return r
}

// both is a mask of the lanes in x and in y.
func (l *lowering) both(x, y int) int {
	switch {
	case x == zeros || y == zeros:
		return zeros
	case x == ones || x == y:
		return y
	case y == ones:
		return x
	}
	r := l.mask()
	l.step(func(m *machine) {
		a, b, out := &m.m[x], &m.m[y], &m.m[r]
		for i := range out {
			out[i] = a[i] & b[i]
		}
	})
	return r
}

// oddly is the result of an operator whose operands x and y are never of types that fit: ERROR, or UNDEFINED where an operand is.
func (l *lowering) oddly(x, y operand) operand {
	bad := l.either(x.bad, y.bad)
	undef := l.without(l.either(x.undef, y.undef), bad)
	return operand{kind: Boolean, at: zeros, undef: undef, bad: l.without(ones, undef)}
}

// gaps are the masks of the result of an operator that is ERROR or UNDEFINED where an operand is.
func (l *lowering) gaps(x, y operand) (undef, bad int) {
	bad = l.either(x.bad, y.bad)
	return l.without(l.either(x.undef, y.undef), bad), bad
}

// inRegisters gives a constant registers of its own.
func (l *lowering) inRegisters(x operand) operand {
	if !x.lit {
		return x
	}
	switch x.v.kind {
	case Undefined:
		return operand{kind: Boolean, at: zeros, undef: ones, bad: zeros}
	case Boolean:
		if x.v.num != 0 {
			return operand{kind: Boolean, at: ones}
		}
		return operand{kind: Boolean, at: zeros}
	case Integer, Real, String:
		w := x.v.num
		if x.v.kind == String {
			w = uint64(l.q.table.texts.text(x.v.str))
		}
		r := l.vector()
		l.step(func(m *machine) {
			out := m.own(r)
			for i := range out {
				out[i] = w
			}
		})
		return operand{kind: x.v.kind, at: r}
	}
	return operand{kind: Boolean, at: zeros, undef: zeros, bad: ones}
}

// lower compiles a flat expression. ok is false if that cannot be done.
func (l *lowering) lower(n node) (x operand, ok bool) {
	switch n := n.(type) {
	case *literal:
		switch n.v.kind {
		case AbsTime, RelTime:
			return operand{}, false
		}
		return literalOperand(n.v), true
	case *cellRef:
		return l.load(n)
	case *unary:
		return l.unary(n)
	case *binary:
		switch n.op {
		case opAnd, opOr:
			return l.logic(n)
		case opIs, opIsnt:
			return l.identical(n)
		}
		x, okx := l.lower(n.x)
		y, oky := l.lower(n.y)
		if !okx || !oky {
			return operand{}, false
		}
		switch {
		case n.op >= opEqual && n.op <= opGreaterEqual:
			return l.compare(n.op, x, y)
		case n.op >= opAdd && n.op <= opModulo:
			return l.arithmetic(n.op, x, y)
		}
	case *elvis:
		return l.elvis(n)
	case *ternary:
		return l.choice(n.cond, n.x, n.y)
	case *callNode:
		return l.call(n)
	}
	return operand{}, false
}

// load reads a column, once in a program.
func (l *lowering) load(n *cellRef) (operand, bool) {
	key := [2]int{n.col, n.param}
	if x, ok := l.loaded[key]; ok {
		return x, true
	}
	c := n.column(l.seg)
	if c.class == ofOthers || c.class == ofExpr {
		return operand{}, false
	}
	x := operand{kind: Boolean, at: zeros, undef: zeros, bad: zeros}
	x.undef, x.bad = l.mask(), l.mask()
	undef, bad := x.undef, x.bad
	l.step(func(m *machine) {
		c := n.column(m.seg)
		if c.undefs == 0 {
			m.m[undef] = mask{}
		} else {
			m.loadBits(undef, c.undef)
		}
		if c.bads == 0 {
			m.m[bad] = mask{}
		} else {
			m.loadBits(bad, c.bad)
		}
	})
	switch c.class {
	case ofTruths:
		at := l.mask()
		x.at = at
		l.step(func(m *machine) { m.loadBits(at, n.column(m.seg).truth) })
	case ofIntegers, ofReals, ofTexts:
		at := l.vector()
		x.at = at
		x.kind = [...]ValueKind{ofIntegers: Integer, ofReals: Real, ofTexts: String}[c.class]
		l.step(func(m *machine) { m.loadCells(at, n.column(m.seg)) })
	}
	l.loaded[key] = x
	return x, true
}

// truth compiles a flat expression as a condition: a Boolean, true for numbers that are not 0.
func (l *lowering) truth(n node) (operand, bool) {
	steps, vectors, masks := len(l.steps), l.vectors, l.masks
	x, ok := l.lower(n)
	if !ok {
		l.steps, l.vectors, l.masks = l.steps[:steps], vectors, masks
		for key, x := range l.loaded { // forget what was loaded on the way
			if x.undef >= masks {
				delete(l.loaded, key)
			}
		}
		return l.remember(n)
	}
	if x.lit {
		if x.v.kind != Undefined {
			truth, ok := x.v.Truth()
			if x.v = BoolValue(truth); !ok {
				x.v = ErrorValue()
			}
		}
		return literalOperand(x.v), true
	}
	switch x.kind {
	case Boolean:
		return x, true
	case Integer, Real:
		equal := l.mask()
		l.step(func(m *machine) { realsOrIntsZero(m.v[x.at], x.kind == Real, &m.live, &m.m[equal]) })
		not := l.without(ones, l.either(equal, l.either(x.undef, x.bad)))
		return operand{kind: Boolean, at: not, undef: x.undef, bad: x.bad}, true
	}
	return operand{kind: Boolean, at: zeros, undef: x.undef, bad: l.without(ones, x.undef)}, true
}

func realsOrIntsZero(x *vector, isReal bool, live, out *mask) {
	if isReal {
		realsEqual(x, 0, live, out)
		return
	}
	wordsEqual(x, 0, live, out)
}

func (l *lowering) unary(n *unary) (operand, bool) {
	if n.op == opNot {
		x, ok := l.truth(n.x)
		if !ok {
			return operand{}, false
		}
		x = l.inRegisters(x)
		return operand{kind: Boolean, at: l.without(ones, l.either(x.at, l.either(x.undef, x.bad))), undef: x.undef, bad: x.bad}, true
	}
	x, ok := l.lower(n.x)
	if !ok || x.lit || x.kind != Integer && x.kind != Real || n.op != opSubtract && n.op != opAdd {
		return operand{}, false
	}
	if n.op == opAdd {
		return x, true
	}
	r, isReal, from := l.vector(), x.kind == Real, x.at
	l.step(func(m *machine) {
		in, out := m.v[from], m.own(r)
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

// logic is x && y and x || y, where the left side decides alone if it can; see evaluator.logic.
func (l *lowering) logic(n *binary) (operand, bool) {
	x, okx := l.truth(n.x)
	y, oky := l.truth(n.y)
	if !okx || !oky {
		return operand{}, false
	}
	x, y = l.inRegisters(x), l.inRegisters(y)
	r, undef, bad := l.mask(), zeros, zeros
	if x.undef != zeros || y.undef != zeros || x.bad != zeros || y.bad != zeros {
		undef, bad = l.mask(), l.mask()
	}
	and := n.op == opAnd
	l.step(func(m *machine) {
		for i := range lanes / 64 {
			xt, xu, xe := m.m[x.at][i], m.m[x.undef][i], m.m[x.bad][i]
			yt, yu, ye := m.m[y.at][i], m.m[y.undef][i], m.m[y.bad][i]
			xf, yf := ^(xt | xu | xe), ^(yt | yu | ye)
			if and {
				m.m[r][i] = xt & yt
				if undef != zeros {
					m.m[undef][i] = xu&(yt|yu) | xt&yu
					m.m[bad][i] = xe | (xt|xu)&ye
				}
				continue
			}
			m.m[r][i] = xt | (xf|xu)&yt
			if undef != zeros {
				m.m[undef][i] = xu&(yf|yu) | xf&yu
				m.m[bad][i] = xe | (xf|xu)&ye
			}
		}
	})
	return operand{kind: Boolean, at: r, undef: undef, bad: bad}, true
}
