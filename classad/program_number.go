package classad

import "math"

// arithmetic compiles x op y for + - * / and %.
func (l *programBuilder) arithmetic(op exprOperator, x, y compiledOperand) (compiledOperand, bool) {
	x, y = l.loadConstant(x), l.loadConstant(y)
	if !x.isNumber() || !y.isNumber() {
		return l.mismatchResult(x, y), true
	}
	if x.kind == Real || y.kind == Real {
		return l.realArithmetic(op, l.reals(x), l.reals(y)), true
	}
	x, y = l.integers(x), l.integers(y)
	undef, bad := l.gapMasks(x, y)
	r := l.vector()
	switch op {
	case opDivide, opModulo:
		return l.integerDivision(op, x, y, r, undef, bad), true
	}
	l.step(func(m *vectorVM) {
		a, b, out := m.vectors[x.at], m.vectors[y.at], m.ownVector(r)
		for i := range out {
			switch op {
			case opAdd:
				out[i] = a[i] + b[i]
			case opSubtract:
				out[i] = a[i] - b[i]
			default:
				out[i] = a[i] * b[i]
			}
		}
	})
	return compiledOperand{kind: Integer, at: r, undefined: undef, errors: bad}, true
}

// integerDivision compiles / and % of integers. The result is ERROR where the divisor is
// 0.
func (l *programBuilder) integerDivision(op exprOperator, x, y compiledOperand, r, undef, bad int) compiledOperand {
	byZero := l.mask()
	l.step(func(m *vectorVM) {
		a, b, out := m.vectors[x.at], m.vectors[y.at], m.ownVector(r)
		var zero laneMask
		for i := range out {
			switch d := int64(b[i]); {
			case d == 0:
				zero.set(i)
			case op == opDivide:
				out[i] = uint64(quotient(int64(a[i]), d))
			default:
				out[i] = uint64(int64(a[i]) % d)
			}
		}
		m.masks[byZero] = zero
	})
	return compiledOperand{kind: Integer, at: r, undefined: undef,
		errors: l.unionMask(bad, l.differenceMask(byZero, undef))}
}

// realArithmetic compiles operators on reals. The result is ERROR where it is +Inf, and
// always for %; see realArithmetic of the evaluator.
func (l *programBuilder) realArithmetic(op exprOperator, x, y compiledOperand) compiledOperand {
	if x.isLiteral {
		x = l.loadConstant(x)
	}
	if y.isLiteral {
		y = l.loadConstant(y)
	}
	if op == opModulo {
		return l.mismatchResult(x, y)
	}
	undef, bad := l.gapMasks(x, y)
	r, infinite := l.vector(), l.mask()
	l.step(func(m *vectorVM) {
		a, b, out := m.vectors[x.at], m.vectors[y.at], m.ownVector(r)
		var inf laneMask
		for i := range out {
			f, g := math.Float64frombits(a[i]), math.Float64frombits(b[i])
			switch op {
			case opAdd:
				f += g
			case opSubtract:
				f -= g
			case opMultiply:
				f *= g
			default:
				f /= g
			}
			if f > math.MaxFloat64 {
				inf.set(i)
			}
			out[i] = math.Float64bits(f)
		}
		m.masks[infinite] = inf
	})
	return compiledOperand{kind: Real, at: r, undefined: undef,
		errors: l.unionMask(bad, l.differenceMask(infinite, undef))}
}

// elvis compiles x ?: y.
func (l *programBuilder) elvis(n *elvisNode) (compiledOperand, bool) {
	x, okx := l.build(n.x)
	y, oky := l.build(n.y)
	if !okx || !oky {
		return compiledOperand{}, false
	}
	x = l.loadConstant(x)
	if x.undefined == zeros {
		return x, true
	}
	return l.blend(x.undefined, y, x, zeros, zeros)
}

// choice compiles cond ? x : y, and ifThenElse(cond, x, y).
func (l *programBuilder) choice(cond, nx, ny exprNode) (compiledOperand, bool) {
	c, okc := l.truth(cond)
	x, okx := l.build(nx)
	y, oky := l.build(ny)
	if !okc || !okx || !oky {
		return compiledOperand{}, false
	}
	c = l.loadConstant(c)
	return l.blend(c.at, x, y, c.undefined, c.errors)
}

// blend selects x in the lanes of which, and y in others, except in the lanes of undef
// and bad. Both must have one type.
func (l *programBuilder) blend(which int, x, y compiledOperand, undef, bad int) (compiledOperand, bool) {
	x, y = l.inRegisters(x, y.kind), l.inRegisters(y, x.kind)
	if x.kind != y.kind {
		return compiledOperand{}, false
	}
	r := compiledOperand{kind: x.kind}
	gaps := l.unionMask(undef, bad)
	pick := func(a, b int) int {
		return l.differenceMask(l.unionMask(l.intersectionMask(a, which), l.differenceMask(b, which)), gaps)
	}
	r.undefined = l.unionMask(undef, pick(x.undefined, y.undefined))
	r.errors = l.unionMask(bad, pick(x.errors, y.errors))
	if r.kind == Boolean {
		r.at = pick(x.at, y.at)
		return r, true
	}
	at := l.vector()
	l.step(func(m *vectorVM) {
		a, b, w, out := m.vectors[x.at], m.vectors[y.at], &m.masks[which], m.ownVector(at)
		for i := range out {
			out[i] = b[i]
			if w[i>>6]>>(i&63)&1 != 0 {
				out[i] = a[i]
			}
		}
	})
	r.at = at
	return r, true
}

// inRegisters returns x in registers. Where it is UNDEFINED or ERROR in all lanes, it
// gets the given type.
func (l *programBuilder) inRegisters(x compiledOperand, kind ValueKind) compiledOperand {
	x = l.loadConstant(x)
	if (x.undefined == ones || x.errors == ones) && (kind == Integer || kind == Real || kind == String) {
		at := l.vector()
		l.step(func(m *vectorVM) { m.ownVector(at) })
		x.kind, x.at = kind, at
	}
	return x
}

// call compiles the functions that requirements use most. The results of others are
// cached by their arguments, or left to the evaluator.
func (l *programBuilder) call(n *callNode) (compiledOperand, bool) {
	args := len(n.args)
	if args < n.fn.minArgs || args > n.fn.maxArgs {
		return literalOperand(ErrorValue()), true
	}
	switch lowerASCII(n.name) {
	case "time":
		r := l.vector()
		l.step(func(m *vectorVM) {
			out := m.ownVector(r)
			for i := range out {
				out[i] = uint64(m.now)
			}
		})
		return compiledOperand{kind: Integer, at: r}, true
	case "ifthenelse":
		return l.choice(n.args[0].n, n.args[1].n, n.args[2].n)
	case "isundefined":
		return l.buildTypeTest(n, func(x compiledOperand) int { return x.undefined })
	case "iserror":
		return l.buildTypeTest(n, func(x compiledOperand) int { return x.errors })
	case "isstring":
		return l.buildTypeTest(n, l.isKindMask(String))
	case "isinteger":
		return l.buildTypeTest(n, l.isKindMask(Integer))
	case "isreal":
		return l.buildTypeTest(n, l.isKindMask(Real))
	case "isboolean":
		return l.buildTypeTest(n, l.isKindMask(Boolean))
	case "real":
		x, ok := l.build(n.args[0].n)
		if !ok || x.isLiteral || !x.isNumber() {
			return compiledOperand{}, false
		}
		return l.reals(x), true
	}
	return compiledOperand{}, false
}

// buildTypeTest compiles a function of one argument that is never UNDEFINED.
func (l *programBuilder) buildTypeTest(n *callNode, answer func(x compiledOperand) int) (compiledOperand, bool) {
	x, ok := l.build(n.args[0].n)
	if !ok {
		return compiledOperand{}, false
	}
	return compiledOperand{kind: Boolean, at: answer(l.loadConstant(x))}, true
}

func (l *programBuilder) isKindMask(kind ValueKind) func(x compiledOperand) int {
	return func(x compiledOperand) int {
		if x.kind != kind {
			return zeros
		}
		return l.differenceMask(ones, l.unionMask(x.undefined, x.errors))
	}
}
