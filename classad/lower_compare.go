package classad

import "math"

// mirrored is the operator for which y op x says what x op y does.
func mirrored(op operator) operator {
	switch op {
	case opLess:
		return opGreater
	case opLessEqual:
		return opGreaterEqual
	case opGreater:
		return opLess
	case opGreaterEqual:
		return opLessEqual
	}
	return op
}

// isNumber says whether an operand is a number or a Boolean, which counts as one.
func (x *operand) isNumber() bool { return x.kind == Boolean || x.kind == Integer || x.kind == Real }

// isValue says whether an operand is of a type that registers hold.
func (x *operand) isValue() bool { return x.isNumber() || x.kind == String }

// compare is x op y for the operators that order and the two that compare without regard to case.
func (l *lowering) compare(op operator, x, y operand) (operand, bool) {
	if x.lit {
		x, y, op = y, x, mirrored(op)
	}
	if x.lit {
		x = l.inRegisters(x)
	}
	switch {
	case !x.isValue() || !y.isValue() || x.isNumber() != y.isNumber():
		return l.oddly(x, l.inRegisters(y)), true
	case x.kind == String:
		return l.compareTexts(op, x, y)
	}
	if x.kind == Boolean {
		x = l.integers(x)
	}
	if !y.lit && y.kind == Boolean {
		y = l.integers(y)
	}
	if x.kind == Real || y.kind == Real {
		x, y = l.reals(x), l.reals(y)
	}
	undef, bad := l.gaps(x, y)
	raw := l.mask()
	negated := op == opNotEqual
	isReal := x.kind == Real
	switch {
	case !y.lit:
		negated = l.compareEach(op, isReal, x.at, y.at, raw)
	case isReal:
		l.compareReals(op, x.at, y.v.real(), raw)
	default:
		negated = l.compareInts(op, x.at, y.v.int(), raw)
	}
	return l.condition(raw, negated, undef, bad), true
}

// condition is a Boolean from the raw result of a comparison.
func (l *lowering) condition(raw int, negated bool, undef, bad int) operand {
	gaps := l.either(undef, bad)
	if negated {
		return operand{kind: Boolean, at: l.without(ones, l.either(raw, gaps)), undef: undef, bad: bad}
	}
	return operand{kind: Boolean, at: l.without(raw, gaps), undef: undef, bad: bad}
}

func (l *lowering) compareInts(op operator, x int, c int64, out int) (negated bool) {
	kernel, negated := intKernel(op)
	l.step(func(m *machine) { kernel(m.v[x], c, &m.live, &m.m[out]) })
	return negated
}

// intKernel is the loop that compares integers with a constant, and whether the operator is the opposite of what it finds.
func intKernel(op operator) (kernel func(x *vector, c int64, live, out *mask), negated bool) {
	switch op {
	case opEqual, opNotEqual:
		return intsEqual, op == opNotEqual
	case opLess, opGreaterEqual:
		return intsLess, op == opGreaterEqual
	}
	return intsLessEqual, op == opGreater
}

// realKernel is the loop that compares reals with a constant; that of == for !=.
func realKernel(op operator) func(x *vector, c float64, live, out *mask) {
	switch op {
	case opLess:
		return realsLess
	case opLessEqual:
		return realsLessEqual
	case opGreater:
		return realsGreater
	case opGreaterEqual:
		return realsGreaterEqual
	}
	return realsEqual
}

func (l *lowering) compareReals(op operator, x int, c float64, out int) {
	kernel := realKernel(op)
	l.step(func(m *machine) { kernel(m.v[x], c, &m.live, &m.m[out]) })
}

func (l *lowering) compareEach(op operator, isReal bool, x, y, out int) (negated bool) {
	if op == opGreater || op == opGreaterEqual {
		x, y, op = y, x, mirrored(op)
	}
	kernel := eachWordEqual
	switch {
	case op == opLess && isReal:
		kernel = eachRealLess
	case op == opLess:
		kernel = eachIntLess
	case op == opLessEqual && isReal:
		kernel = eachRealLessEqual
	case op == opLessEqual:
		kernel = eachIntLessEqual
	case isReal:
		kernel = eachRealEqual
	}
	l.step(func(m *machine) { kernel(m.v[x], m.v[y], &m.live, &m.m[out]) })
	return op == opNotEqual
}

// compareTexts is == and != of strings, without regard to case. Their order is left to the evaluator.
func (l *lowering) compareTexts(op operator, x, y operand) (operand, bool) {
	if op != opEqual && op != opNotEqual {
		return operand{}, false
	}
	undef, bad := l.gaps(x, y)
	raw, folded, d := l.mask(), l.vector(), l.q.table.texts
	if !y.lit {
		other := l.vector()
		l.step(func(m *machine) {
			leaders(d, m.v[x.at], m.own(folded), &m.live)
			leaders(d, m.v[y.at], m.own(other), &m.live)
			eachWordEqual(m.v[folded], m.v[other], &m.live, &m.m[raw])
		})
		return l.condition(raw, op == opNotEqual, undef, bad), true
	}
	lead := d.leader[d.text(y.v.str)]
	l.step(func(m *machine) { textsEqual(d, m.v[x.at], uint64(lead), m.own(folded), &m.live, &m.m[raw]) })
	return l.condition(raw, op == opNotEqual, undef, bad), true
}

// textsEqual is x == c for strings without regard to case, where c is the leader of a string; folded is for its use.
func textsEqual(d *dictionary, x *vector, lead uint64, folded *vector, live, out *mask) {
	if d.kin[lead] == 1 { // no other string is equal to it
		wordsEqual(x, lead, live, out)
		return
	}
	leaders(d, x, folded, live)
	wordsEqual(folded, lead, live, out)
}

// leaders puts the leader of each string in a live word of x into out. Lanes without a string may hold any number.
func leaders(d *dictionary, x, out *vector, live *mask) {
	for w := range live {
		if live[w] == 0 {
			continue
		}
		for i := w << 6; i < (w+1)<<6; i++ {
			out[i] = 0
			if x[i] < uint64(len(d.leader)) {
				out[i] = uint64(d.leader[x[i]])
			}
		}
	}
}

// identical is =?= and =!=, which are never UNDEFINED.
func (l *lowering) identical(n *binary) (operand, bool) {
	x, okx := l.lower(n.x)
	y, oky := l.lower(n.y)
	if !okx || !oky {
		return operand{}, false
	}
	x, y = l.inRegisters(x), l.inRegisters(y)
	same := l.either(l.both(x.undef, y.undef), l.both(x.bad, y.bad))
	if x.kind == y.kind {
		equal := l.mask()
		switch x.kind {
		case Boolean:
			l.step(func(m *machine) {
				for i := range lanes / 64 {
					m.m[equal][i] = ^(m.m[x.at][i] ^ m.m[y.at][i])
				}
			})
		case Real:
			l.step(func(m *machine) { eachRealEqual(m.v[x.at], m.v[y.at], &m.live, &m.m[equal]) })
		default:
			l.step(func(m *machine) { eachWordEqual(m.v[x.at], m.v[y.at], &m.live, &m.m[equal]) })
		}
		gaps := l.either(l.either(x.undef, x.bad), l.either(y.undef, y.bad))
		same = l.either(same, l.without(equal, gaps))
	}
	if n.op == opIsnt {
		same = l.without(ones, same)
	}
	return operand{kind: Boolean, at: same}, true
}

// integers is a Boolean as 0 and 1; Integers and Reals stay.
func (l *lowering) integers(x operand) operand {
	if x.lit || x.kind != Boolean {
		return x
	}
	r, from := l.vector(), x.at
	l.step(func(m *machine) {
		in, out := &m.m[from], m.own(r)
		for i := range out {
			out[i] = in[i>>6] >> (i & 63) & 1
		}
	})
	x.kind, x.at = Integer, r
	return x
}

// reals is a number as a Real.
func (l *lowering) reals(x operand) operand {
	switch {
	case x.lit:
		f, _ := x.v.Number()
		return literalOperand(RealValue(f))
	case x.kind == Boolean:
		x = l.integers(x)
	case x.kind == Real:
		return x
	}
	r, from := l.vector(), x.at
	l.step(func(m *machine) {
		in, out := m.v[from], m.own(r)
		for i, a := range in {
			out[i] = math.Float64bits(float64(int64(a)))
		}
	})
	x.kind, x.at = Real, r
	return x
}
