package classad

import "math"

// arithmetic is x op y for + - * / and %.
func (l *lowering) arithmetic(op operator, x, y operand) (operand, bool) {
	x, y = l.inRegisters(x), l.inRegisters(y)
	if !x.isNumber() || !y.isNumber() {
		return l.oddly(x, y), true
	}
	if x.kind == Real || y.kind == Real {
		return l.realArithmetic(op, l.reals(x), l.reals(y)), true
	}
	x, y = l.integers(x), l.integers(y)
	undef, bad := l.gaps(x, y)
	r := l.vector()
	switch op {
	case opDivide, opModulo:
		return l.integerDivision(op, x, y, r, undef, bad), true
	}
	l.step(func(m *machine) {
		a, b, out := m.v[x.at], m.v[y.at], m.own(r)
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
	return operand{kind: Integer, at: r, undef: undef, bad: bad}, true
}

// integerDivision is ERROR where the divisor is 0.
func (l *lowering) integerDivision(op operator, x, y operand, r, undef, bad int) operand {
	byZero := l.mask()
	l.step(func(m *machine) {
		a, b, out := m.v[x.at], m.v[y.at], m.own(r)
		var zero mask
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
		m.m[byZero] = zero
	})
	return operand{kind: Integer, at: r, undef: undef, bad: l.either(bad, l.without(byZero, undef))}
}

// realArithmetic is ERROR where the result is +Inf, and always for %; see reals.
func (l *lowering) realArithmetic(op operator, x, y operand) operand {
	if x.lit {
		x = l.inRegisters(x)
	}
	if y.lit {
		y = l.inRegisters(y)
	}
	if op == opModulo {
		return l.oddly(x, y)
	}
	undef, bad := l.gaps(x, y)
	r, infinite := l.vector(), l.mask()
	l.step(func(m *machine) {
		a, b, out := m.v[x.at], m.v[y.at], m.own(r)
		var inf mask
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
		m.m[infinite] = inf
	})
	return operand{kind: Real, at: r, undef: undef, bad: l.either(bad, l.without(infinite, undef))}
}

// elvis is x ?: y.
func (l *lowering) elvis(n *elvis) (operand, bool) {
	x, okx := l.lower(n.x)
	y, oky := l.lower(n.y)
	if !okx || !oky {
		return operand{}, false
	}
	x = l.inRegisters(x)
	if x.undef == zeros {
		return x, true
	}
	return l.blend(x.undef, y, x, zeros, zeros)
}

// choice is cond ? x : y, and ifThenElse(cond, x, y).
func (l *lowering) choice(cond, nx, ny node) (operand, bool) {
	c, okc := l.truth(cond)
	x, okx := l.lower(nx)
	y, oky := l.lower(ny)
	if !okc || !okx || !oky {
		return operand{}, false
	}
	c = l.inRegisters(c)
	return l.blend(c.at, x, y, c.undef, c.bad)
}

// blend takes x where a lane is in which, and y elsewhere, but for the lanes of undef and bad. Both have to be of one type.
func (l *lowering) blend(which int, x, y operand, undef, bad int) (operand, bool) {
	x, y = l.typed(x, y.kind), l.typed(y, x.kind)
	if x.kind != y.kind {
		return operand{}, false
	}
	r := operand{kind: x.kind}
	gaps := l.either(undef, bad)
	pick := func(a, b int) int {
		return l.without(l.either(l.both(a, which), l.without(b, which)), gaps)
	}
	r.undef = l.either(undef, pick(x.undef, y.undef))
	r.bad = l.either(bad, pick(x.bad, y.bad))
	if r.kind == Boolean {
		r.at = pick(x.at, y.at)
		return r, true
	}
	at := l.vector()
	l.step(func(m *machine) {
		a, b, w, out := m.v[x.at], m.v[y.at], &m.m[which], m.own(at)
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

// typed is x in registers. Where it is UNDEFINED or ERROR throughout, it is of the kind that is asked for.
func (l *lowering) typed(x operand, kind ValueKind) operand {
	x = l.inRegisters(x)
	if (x.undef == ones || x.bad == ones) && (kind == Integer || kind == Real || kind == String) {
		at := l.vector()
		l.step(func(m *machine) { m.own(at) })
		x.kind, x.at = kind, at
	}
	return x
}

// call compiles the functions that requirements are full of. Others are remembered by their arguments, or left to the evaluator.
func (l *lowering) call(n *callNode) (operand, bool) {
	args := len(n.args)
	if args < n.fn.least || args > n.fn.most {
		return literalOperand(ErrorValue()), true
	}
	switch lowerASCII(n.name) {
	case "time":
		r := l.vector()
		l.step(func(m *machine) {
			out := m.own(r)
			for i := range out {
				out[i] = uint64(m.now)
			}
		})
		return operand{kind: Integer, at: r}, true
	case "ifthenelse":
		return l.choice(n.args[0].n, n.args[1].n, n.args[2].n)
	case "isundefined":
		return l.question(n, func(x operand) int { return x.undef })
	case "iserror":
		return l.question(n, func(x operand) int { return x.bad })
	case "isstring":
		return l.question(n, l.ofKind(String))
	case "isinteger":
		return l.question(n, l.ofKind(Integer))
	case "isreal":
		return l.question(n, l.ofKind(Real))
	case "isboolean":
		return l.question(n, l.ofKind(Boolean))
	case "real":
		x, ok := l.lower(n.args[0].n)
		if !ok || x.lit || !x.isNumber() {
			return operand{}, false
		}
		return l.reals(x), true
	}
	return operand{}, false
}

// question is a function of one argument that is never UNDEFINED.
func (l *lowering) question(n *callNode, answer func(x operand) int) (operand, bool) {
	x, ok := l.lower(n.args[0].n)
	if !ok {
		return operand{}, false
	}
	return operand{kind: Boolean, at: answer(l.inRegisters(x))}, true
}

func (l *lowering) ofKind(kind ValueKind) func(x operand) int {
	return func(x operand) int {
		if x.kind != kind {
			return zeros
		}
		return l.without(ones, l.either(x.undef, x.bad))
	}
}
