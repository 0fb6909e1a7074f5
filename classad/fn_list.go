package classad

// listBuiltin returns a function on lists.
func listBuiltin(name string) builtinFunc {
	switch name {
	case "size":
		return builtinFunc{1, 1, fnSize}
	case "member":
		return builtinFunc{2, 2, func(c builtinCall) Value { return c.member(opEqual) }}
	case "identicalmember":
		return builtinFunc{2, 2, func(c builtinCall) Value { return c.member(opIs) }}
	case "sum":
		return builtinFunc{1, 1, func(c builtinCall) Value { return c.sumOrMean(false) }}
	case "avg":
		return builtinFunc{1, 1, func(c builtinCall) Value { return c.sumOrMean(true) }}
	case "min":
		return builtinFunc{1, 1, func(c builtinCall) Value { return c.minOrMax(opLess) }}
	case "max":
		return builtinFunc{1, 1, func(c builtinCall) Value { return c.minOrMax(opGreater) }}
	case "anycompare":
		return builtinFunc{3, 3, func(c builtinCall) Value { return c.compareAll(false) }}
	case "allcompare":
		return builtinFunc{3, 3, func(c builtinCall) Value { return c.compareAll(true) }}
	}
	return builtinFunc{}
}

func fnSize(c builtinCall) Value {
	switch v := c.arg(0); v.kind {
	case Undefined:
		return v
	case String:
		return IntValue(int64(len(v.str)))
	case List:
		return IntValue(int64(len(v.comp.elems)))
	case AdValue:
		return IntValue(int64(v.comp.ad.Len()))
	default:
		return argumentError(0, v)
	}
}

// member searches a list for a value, by == or by =?=.
func (c builtinCall) member(op exprOperator) Value {
	x, list := c.arg(0), c.arg(1)
	if list.kind == Undefined || op == opEqual && x.kind == Undefined {
		return UndefinedValue()
	}
	switch {
	case list.kind != List:
		return argumentError(1, list)
	case x.kind == List || x.kind == AdValue || op == opEqual && x.kind == Error:
		return argumentError(0, x)
	}
	found := false
	c.elements(list, func(v Value) bool {
		found = applyOperator(op, v, x).IsTrue()
		return !found
	})
	return BoolValue(found)
}

// sumOrMean returns the sum or the mean of the numbers of a list. UNDEFINED elements are
// ignored.
func (c builtinCall) sumOrMean(mean bool) Value {
	list := c.arg(0)
	if list.kind == Undefined {
		return list
	}
	if list.kind != List {
		return argumentError(0, list)
	}
	sum, n := IntValue(0), 0
	c.elements(list, func(v Value) bool {
		_, number := v.Number()
		switch {
		case v.kind == Undefined:
			return true
		case !number:
			sum = elementError(0, v)
			n = 0
			return false
		case n == 0:
			sum = v
		default:
			sum = applyOperator(opAdd, sum, v)
		}
		n++
		return true
	})
	if mean && n > 0 {
		return applyOperator(opDivide, sum, RealValue(float64(n)))
	}
	return sum
}

// minOrMax returns the least or greatest number of a list, or UNDEFINED if there is none.
// UNDEFINED elements are ignored.
func (c builtinCall) minOrMax(op exprOperator) Value {
	list := c.arg(0)
	if list.kind == Undefined {
		return list
	}
	if list.kind != List {
		return argumentError(0, list)
	}
	best := UndefinedValue()
	c.elements(list, func(v Value) bool {
		_, number := v.Number()
		switch {
		case v.kind == Undefined:
			return true
		case !number:
			best = elementError(0, v)
			return false
		case best.kind == Undefined:
			best = v
		default:
			// A comparison converts both numbers to one type, and upstream continues with
			// the converted one.
			v, best = unifyNumbers(v, best)
			if applyOperator(op, v, best).IsTrue() {
				best = v
			}
		}
		return true
	})
	return best
}

// unifyNumbers converts two numbers to reals if one of them is real, else to integers.
func unifyNumbers(x, y Value) (Value, Value) {
	if x.kind == Real || y.kind == Real {
		return toReal(x), toReal(y)
	}
	return toInt(x), toInt(y)
}

// compareAll compares each element of a list with a value by an operator that is given as
// a string. The result is false as soon as a comparison is UNDEFINED, even if any element
// would suffice.
func (c builtinCall) compareAll(all bool) Value {
	sign, list, x := c.arg(0), c.arg(1), c.arg(2)
	if sign.kind == Undefined {
		return sign
	}
	op := comparisonOperator(sign.str)
	if op != opNone && list.kind == Undefined {
		return list
	}
	switch {
	case sign.kind != String:
		return argumentError(0, sign)
	case op == opNone:
		return errorFor(badText, 0)
	case list.kind != List:
		return argumentError(1, list)
	}
	result := BoolValue(all)
	c.elements(list, func(v Value) bool {
		if result = applyOperator(op, v, x); result.kind == Undefined {
			result = BoolValue(false)
			return false
		}
		b, ok := result.Bool()
		return ok && b == all
	})
	return result
}

func comparisonOperator(text string) exprOperator {
	switch text {
	case "is":
		return opIs
	case "isnt":
		return opIsnt
	case "==", "!=", "<", "<=", ">", ">=":
		return operatorOf(text)
	}
	return opNone
}
