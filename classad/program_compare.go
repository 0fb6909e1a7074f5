package classad

import "math"

// mirroredOperator returns the operator with which y op x has the result that op gives
// for x op y.
func mirroredOperator(op exprOperator) exprOperator {
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

// isNumber reports whether an operand is a number, or a Boolean, which counts as one.
func (x *compiledOperand) isNumber() bool {
	return x.kind == Boolean || x.kind == Integer || x.kind == Real
}

// isValue reports whether an operand is of a type that registers can hold.
func (x *compiledOperand) isValue() bool { return x.isNumber() || x.kind == String }

// compare compiles x op y for the operators that order and for == and !=.
func (l *programBuilder) compare(op exprOperator, x, y compiledOperand) (compiledOperand, bool) {
	if x.isLiteral {
		x, y, op = y, x, mirroredOperator(op)
	}
	if x.isLiteral {
		x = l.loadConstant(x)
	}
	switch {
	case !x.isValue() || !y.isValue() || x.isNumber() != y.isNumber():
		return l.mismatchResult(x, l.loadConstant(y)), true
	case x.kind == String:
		return l.compareTexts(op, x, y)
	}
	if x.kind == Boolean {
		x = l.integers(x)
	}
	if !y.isLiteral && y.kind == Boolean {
		y = l.integers(y)
	}
	if x.kind == Real || y.kind == Real {
		x, y = l.reals(x), l.reals(y)
	}
	undef, bad := l.gapMasks(x, y)
	raw := l.mask()
	negated := op == opNotEqual
	isReal := x.kind == Real
	switch {
	case !y.isLiteral:
		negated = l.compareEach(op, isReal, x.at, y.at, raw)
	case isReal:
		l.compareReals(op, x.at, y.value.real(), raw)
	default:
		negated = l.compareInts(op, x.at, y.value.int(), raw)
	}
	return l.condition(raw, negated, undef, bad), true
}

// condition returns a Boolean from the raw result of a comparison.
func (l *programBuilder) condition(raw int, negated bool, undef, bad int) compiledOperand {
	gaps := l.unionMask(undef, bad)
	if negated {
		return compiledOperand{kind: Boolean, at: l.differenceMask(ones, l.unionMask(raw, gaps)), undefined: undef,
			errors: bad}
	}
	return compiledOperand{kind: Boolean, at: l.differenceMask(raw, gaps), undefined: undef, errors: bad}
}

func (l *programBuilder) compareInts(op exprOperator, x int, c int64, out int) (negated bool) {
	kernel, negated := intKernel(op)
	l.step(func(m *vectorVM) { kernel(m.vectors[x], c, &m.live, &m.masks[out]) })
	return negated
}

// intKernel returns the loop that compares integers with a constant. negated reports that
// the operator is the opposite of the loop's condition.
func intKernel(op exprOperator) (kernel func(x *laneVector, c int64, live, out *laneMask), negated bool) {
	switch op {
	case opEqual, opNotEqual:
		return intsEqual, op == opNotEqual
	case opLess, opGreaterEqual:
		return intsLess, op == opGreaterEqual
	}
	return intsLessEqual, op == opGreater
}

// realKernel returns the loop that compares reals with a constant; for != it is the loop
// of ==.
func realKernel(op exprOperator) func(x *laneVector, c float64, live, out *laneMask) {
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

func (l *programBuilder) compareReals(op exprOperator, x int, c float64, out int) {
	kernel := realKernel(op)
	l.step(func(m *vectorVM) { kernel(m.vectors[x], c, &m.live, &m.masks[out]) })
}

func (l *programBuilder) compareEach(op exprOperator, isReal bool, x, y, out int) (negated bool) {
	if op == opGreater || op == opGreaterEqual {
		x, y, op = y, x, mirroredOperator(op)
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
	l.step(func(m *vectorVM) { kernel(m.vectors[x], m.vectors[y], &m.live, &m.masks[out]) })
	return op == opNotEqual
}

// compareTexts compiles == and != of strings, without regard to case. The evaluator
// compares their order.
func (l *programBuilder) compareTexts(op exprOperator, x, y compiledOperand) (compiledOperand, bool) {
	if op != opEqual && op != opNotEqual {
		return compiledOperand{}, false
	}
	undef, bad := l.gapMasks(x, y)
	raw, folded, d := l.mask(), l.vector(), l.query.table.strings
	if !y.isLiteral {
		other := l.vector()
		l.step(func(m *vectorVM) {
			canonicalIDs(d, m.vectors[x.at], m.ownVector(folded), &m.live)
			canonicalIDs(d, m.vectors[y.at], m.ownVector(other), &m.live)
			eachWordEqual(m.vectors[folded], m.vectors[other], &m.live, &m.masks[raw])
		})
		return l.condition(raw, op == opNotEqual, undef, bad), true
	}
	lead := d.canonicalID[d.text(y.value.str)]
	l.step(func(m *vectorVM) {
		textsEqual(d, m.vectors[x.at], uint64(lead), m.ownVector(folded), &m.live, &m.masks[raw])
	})
	return l.condition(raw, op == opNotEqual, undef, bad), true
}

// textsEqual computes x == c for strings without regard to case. c is the canonical
// number of a string; folded is scratch space.
func textsEqual(d *valueDictionary, x *laneVector, lead uint64, folded *laneVector, live, out *laneMask) {
	if d.variants[lead] == 1 { // no other string is equal to it
		wordsEqual(x, lead, live, out)
		return
	}
	canonicalIDs(d, x, folded, live)
	wordsEqual(folded, lead, live, out)
}

// canonicalIDs writes the canonical number of each string in a live word of x to out.
// Lanes without a string may hold any number.
func canonicalIDs(d *valueDictionary, x, out *laneVector, live *laneMask) {
	for w := range live {
		if live[w] == 0 {
			continue
		}
		for i := w << 6; i < (w+1)<<6; i++ {
			out[i] = 0
			if x[i] < uint64(len(d.canonicalID)) {
				out[i] = uint64(d.canonicalID[x[i]])
			}
		}
	}
}

// identical compiles =?= and =!=, which are never UNDEFINED.
func (l *programBuilder) identical(n *binaryNode) (compiledOperand, bool) {
	x, okx := l.build(n.x)
	y, oky := l.build(n.y)
	if !okx || !oky {
		return compiledOperand{}, false
	}
	x, y = l.loadConstant(x), l.loadConstant(y)
	same := l.unionMask(l.intersectionMask(x.undefined, y.undefined), l.intersectionMask(x.errors, y.errors))
	if x.kind == y.kind {
		equal := l.mask()
		switch x.kind {
		case Boolean:
			l.step(func(m *vectorVM) {
				for i := range lanes / 64 {
					m.masks[equal][i] = ^(m.masks[x.at][i] ^ m.masks[y.at][i])
				}
			})
		case Real:
			l.step(func(m *vectorVM) { eachRealEqual(m.vectors[x.at], m.vectors[y.at], &m.live, &m.masks[equal]) })
		default:
			l.step(func(m *vectorVM) { eachWordEqual(m.vectors[x.at], m.vectors[y.at], &m.live, &m.masks[equal]) })
		}
		gaps := l.unionMask(l.unionMask(x.undefined, x.errors), l.unionMask(y.undefined, y.errors))
		same = l.unionMask(same, l.differenceMask(equal, gaps))
	}
	if n.op == opIsnt {
		same = l.differenceMask(ones, same)
	}
	return compiledOperand{kind: Boolean, at: same}, true
}

// integers converts a Boolean to 0 or 1; Integers and Reals stay.
func (l *programBuilder) integers(x compiledOperand) compiledOperand {
	if x.isLiteral || x.kind != Boolean {
		return x
	}
	r, from := l.vector(), x.at
	l.step(func(m *vectorVM) {
		in, out := &m.masks[from], m.ownVector(r)
		for i := range out {
			out[i] = in[i>>6] >> (i & 63) & 1
		}
	})
	x.kind, x.at = Integer, r
	return x
}

// reals converts a number to a Real.
func (l *programBuilder) reals(x compiledOperand) compiledOperand {
	switch {
	case x.isLiteral:
		f, _ := x.value.Number()
		return literalOperand(RealValue(f))
	case x.kind == Boolean:
		x = l.integers(x)
	case x.kind == Real:
		return x
	}
	r, from := l.vector(), x.at
	l.step(func(m *vectorVM) {
		in, out := m.vectors[from], m.ownVector(r)
		for i, a := range in {
			out[i] = math.Float64bits(float64(int64(a)))
		}
	})
	x.kind, x.at = Real, r
	return x
}
