package classad

import "math"

func (n *unaryNode) eval(ev *evaluator, f *nameScope) Value {
	v := ev.eval(n.x, f)
	if v.kind == Undefined || v.kind == Error {
		return v
	}
	switch n.op {
	case opNot:
		if truth, ok := v.Truth(); ok {
			return BoolValue(!truth)
		}
	case opComplement:
		if v.kind == Integer {
			return IntValue(^v.int())
		}
	case opAdd:
		if v.kind == Integer || v.kind == Real || v.kind == RelTime {
			return v
		}
	case opSubtract:
		switch v.kind {
		case Integer:
			return IntValue(-v.int())
		case Real:
			return RealValue(-v.real())
		case RelTime:
			return RelTimeValue(-v.real())
		}
	}
	return errorFor(badOperand, uint8(n.op), uint8(v.kind))
}

func (n *binaryNode) eval(ev *evaluator, f *nameScope) Value {
	x := ev.eval(n.x, f)
	switch n.op {
	case opAnd, opOr:
		return ev.logic(n, x, f)
	}
	y := ev.eval(n.y, f)
	if x.kind == Integer && y.kind == Integer && n.op >= opEqual && n.op <= opGreaterEqual && n.op != opIs &&
		n.op != opIsnt {
		return orderResult(n.op, x.int(), y.int())
	}
	return applyOperator(n.op, ev.chargeText(x), y)
}

// logic evaluates x && y and x || y. The left side decides alone if it can; an ERROR
// there is the result.
func (ev *evaluator) logic(n *binaryNode, x Value, f *nameScope) Value {
	decisive := n.op == opOr
	xTrue, ok := x.Truth()
	switch {
	case !ok && x.kind != Undefined:
		return typeError(n.op, x, BoolValue(true))
	case ok && xTrue == decisive:
		return BoolValue(decisive)
	}
	y := ev.eval(n.y, f)
	yTrue, yok := y.Truth()
	switch {
	case !yok && y.kind != Undefined:
		return typeError(n.op, x, y)
	case yok && yTrue == decisive:
		return BoolValue(decisive)
	case !ok || !yok:
		return Value{}
	}
	return BoolValue(!decisive)
}

// applyOperator applies a binary operator other than && and || to two values.
func applyOperator(op exprOperator, x, y Value) Value {
	switch op {
	case opIs, opIsnt:
		return isIdentical(op, x, y)
	}
	switch {
	case x.kind == Error:
		return x
	case y.kind == Error:
		return y
	case x.kind == Undefined || y.kind == Undefined:
		return Value{}
	}
	switch {
	case op >= opEqual && op <= opGreaterEqual:
		return compareValues(op, x, y)
	case op >= opAdd && op <= opModulo:
		return arithmetic(op, x, y)
	}
	if x.kind != Integer || y.kind != Integer {
		return typeError(op, x, y)
	}
	return bitwise(op, x.int(), y.int())
}

// bitwise applies a bitwise operator. A shift takes its count modulo 64, as processors
// do, with two exceptions: a negative number shifted right by more than 63 is -1, and one
// shifted by less than 0 stays. Upstream shifts a negative number right logically by one
// and then by one less than the count, so that -1 >>> 0 is 0 there and here.
func bitwise(op exprOperator, x, y int64) Value {
	switch op {
	case opBitAnd:
		return IntValue(x & y)
	case opBitOr:
		return IntValue(x | y)
	case opBitXor:
		return IntValue(x ^ y)
	case opShiftLeft:
		return IntValue(x << (uint64(y) & 63))
	case opShiftRight:
		if x < 0 {
			return IntValue(x >> min(max(y, 0), 63))
		}
		return IntValue(x >> (uint64(y) & 63))
	case opShiftRightLogical:
		if x < 0 {
			x, y = int64(uint64(x)>>1), y-1
		}
		return IntValue(x >> (uint64(y) & 63))
	}
	return ErrorValue()
}

// isIdentical applies =?= and =!=, which are never UNDEFINED. They compare type and
// value. Lists and ads cannot be compared.
func isIdentical(op exprOperator, x, y Value) Value {
	if x.kind == y.kind && (x.kind == List || x.kind == AdValue) {
		return typeError(op, x, y)
	}
	same := x.kind == y.kind
	if same {
		switch x.kind {
		case Boolean, Integer, AbsTime:
			same = x.num == y.num
		case Real, RelTime:
			same = x.real() == y.real()
		case String:
			same = x.str == y.str
		}
	}
	return BoolValue(same == (op == opIs))
}

// compareValues compares numbers, strings without regard to case, and times.
func compareValues(op exprOperator, x, y Value) Value {
	switch {
	case x.kind == String && y.kind == String:
		if op == opEqual || op == opNotEqual {
			return BoolValue(foldEqual(x.str, y.str) == (op == opEqual))
		}
		return orderResult(op, foldCompare(x.str, y.str), 0)
	case x.kind == RelTime && y.kind == RelTime:
		return orderResult(op, x.real(), y.real())
	case x.kind == AbsTime && y.kind == AbsTime:
		return orderResult(op, x.int(), y.int())
	case toIntegers(x) && toIntegers(y):
		return orderResult(op, x.int(), y.int())
	}
	a, aok := x.Number()
	b, bok := y.Number()
	if !aok || !bok {
		return typeError(op, x, y)
	}
	return orderResult(op, a, b)
}

func toIntegers(v Value) bool { return v.kind == Integer || v.kind == Boolean }

func orderResult[T int | int64 | float64](op exprOperator, a, b T) Value {
	switch op {
	case opEqual:
		return BoolValue(a == b)
	case opNotEqual:
		return BoolValue(a != b)
	case opLess:
		return BoolValue(a < b)
	case opLessEqual:
		return BoolValue(a <= b)
	case opGreater:
		return BoolValue(a > b)
	}
	return BoolValue(a >= b)
}

func arithmetic(op exprOperator, x, y Value) Value {
	if toIntegers(x) && toIntegers(y) {
		return integerArithmetic(op, x.int(), y.int())
	}
	a, aok := x.Number()
	b, bok := y.Number()
	if aok && bok {
		return realArithmetic(op, a, b)
	}
	return timeArithmetic(op, x, y)
}

func integerArithmetic(op exprOperator, a, b int64) Value {
	switch op {
	case opAdd:
		return IntValue(a + b)
	case opSubtract:
		return IntValue(a - b)
	case opMultiply:
		return IntValue(a * b)
	case opDivide:
		if b != 0 {
			return IntValue(quotient(a, b))
		}
	case opModulo:
		if b != 0 {
			return IntValue(a % b)
		}
	}
	return errorFor(dividedByZero)
}

// quotient returns a / b, rounded towards zero; b is not 0. A result that does not fit
// becomes the largest integer.
func quotient(a, b int64) int64 {
	if a == math.MinInt64 && b == -1 {
		return math.MaxInt64
	}
	return a / b
}

// realArithmetic computes in double precision. Upstream lets −Inf and NaN pass but not
// +Inf.
func realArithmetic(op exprOperator, a, b float64) Value {
	var f float64
	switch op {
	case opAdd:
		f = a + b
	case opSubtract:
		f = a - b
	case opMultiply:
		f = a * b
	case opDivide:
		f = a / b
	default:
		return errorFor(badOperands, uint8(op), uint8(Real), uint8(Real))
	}
	if math.IsInf(f, 1) {
		return errorFor(tooLarge)
	}
	return RealValue(f)
}

// timeArithmetic computes with times. Operands are an absolute and a relative time, two
// relative times, or a relative time and a number.
func timeArithmetic(op exprOperator, x, y Value) Value {
	switch {
	case x.kind == AbsTime && y.kind == AbsTime && op == opSubtract:
		return RelTimeValue(float64(x.int() - y.int()))
	case x.kind == AbsTime && y.kind == RelTime && op == opAdd:
		return AbsTimeValue(x.int()+int64(y.real()), int(x.off))
	case x.kind == AbsTime && y.kind == RelTime && op == opSubtract:
		return AbsTimeValue(x.int()-int64(y.real()), int(x.off))
	case x.kind == RelTime && y.kind == AbsTime && op == opAdd:
		return AbsTimeValue(y.int()+int64(x.real()), int(y.off))
	case x.kind == RelTime && y.kind == RelTime && op == opAdd:
		return RelTimeValue(x.real() + y.real())
	case x.kind == RelTime && y.kind == RelTime && op == opSubtract:
		return RelTimeValue(x.real() - y.real())
	}
	if n, ok := y.Number(); ok && x.kind == RelTime && y.kind != Boolean {
		switch {
		case op == opMultiply:
			return finiteSpan(x.real() * n)
		case op == opDivide && n == 0:
			return errorFor(dividedByZero)
		case op == opDivide:
			return finiteSpan(x.real() / n)
		}
	}
	if n, ok := x.Number(); ok && y.kind == RelTime && x.kind != Boolean && op == opMultiply {
		return finiteSpan(n * y.real())
	}
	return typeError(op, x, y)
}

// finiteSpan returns a relative time, or ERROR if seconds is not finite.
func finiteSpan(seconds float64) Value {
	if math.IsInf(seconds, 0) || math.IsNaN(seconds) {
		return errorFor(notANumber)
	}
	return RelTimeValue(seconds)
}
