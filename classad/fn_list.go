package classad

// listBuiltin are the functions of lists.
func listBuiltin(name string) builtin {
	switch name {
	case "size":
		return builtin{1, 1, fnSize}
	case "member":
		return builtin{2, 2, func(c call) Value { return c.member(opEqual) }}
	case "identicalmember":
		return builtin{2, 2, func(c call) Value { return c.member(opIs) }}
	case "sum":
		return builtin{1, 1, func(c call) Value { return c.total(false) }}
	case "avg":
		return builtin{1, 1, func(c call) Value { return c.total(true) }}
	case "min":
		return builtin{1, 1, func(c call) Value { return c.extreme(opLess) }}
	case "max":
		return builtin{1, 1, func(c call) Value { return c.extreme(opGreater) }}
	case "anycompare":
		return builtin{3, 3, func(c call) Value { return c.compareAll(false) }}
	case "allcompare":
		return builtin{3, 3, func(c call) Value { return c.compareAll(true) }}
	}
	return builtin{}
}

func fnSize(c call) Value {
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
		return wrong(0, v)
	}
}

// member looks for a value in a list, by == or by =?=.
func (c call) member(op operator) Value {
	x, list := c.arg(0), c.arg(1)
	if list.kind == Undefined || op == opEqual && x.kind == Undefined {
		return UndefinedValue()
	}
	switch {
	case list.kind != List:
		return wrong(1, list)
	case x.kind == List || x.kind == AdValue || op == opEqual && x.kind == Error:
		return wrong(0, x)
	}
	found := false
	c.elements(list, func(v Value) bool {
		found = apply(op, v, x).IsTrue()
		return !found
	})
	return BoolValue(found)
}

// total adds up the numbers of a list, and divides by how many there are for the mean. UNDEFINED is left out.
func (c call) total(mean bool) Value {
	list := c.arg(0)
	if list.kind == Undefined {
		return list
	}
	if list.kind != List {
		return wrong(0, list)
	}
	sum, n := IntValue(0), 0
	c.elements(list, func(v Value) bool {
		_, number := v.Number()
		switch {
		case v.kind == Undefined:
			return true
		case !number:
			sum = wrongElement(0, v)
			n = 0
			return false
		case n == 0:
			sum = v
		default:
			sum = apply(opAdd, sum, v)
		}
		n++
		return true
	})
	if mean && n > 0 {
		return apply(opDivide, sum, RealValue(float64(n)))
	}
	return sum
}

// extreme is the least or greatest number of a list; of none it is UNDEFINED. UNDEFINED is left out.
func (c call) extreme(op operator) Value {
	list := c.arg(0)
	if list.kind == Undefined {
		return list
	}
	if list.kind != List {
		return wrong(0, list)
	}
	best := UndefinedValue()
	c.elements(list, func(v Value) bool {
		_, number := v.Number()
		switch {
		case v.kind == Undefined:
			return true
		case !number:
			best = wrongElement(0, v)
			return false
		case best.kind == Undefined:
			best = v
		default:
			// Comparing makes numbers of one type of both, and upstream keeps what it has compared.
			v, best = sameNumbers(v, best)
			if apply(op, v, best).IsTrue() {
				best = v
			}
		}
		return true
	})
	return best
}

// sameNumbers makes two reals of two numbers if one of them is real, and else two integers.
func sameNumbers(x, y Value) (Value, Value) {
	if x.kind == Real || y.kind == Real {
		return toReal(x), toReal(y)
	}
	return toInt(x), toInt(y)
}

// compareAll compares each element of a list with a value by an operator that is given as a string. A comparison that is UNDEFINED ends
// it with false, also where any element would do.
func (c call) compareAll(all bool) Value {
	sign, list, x := c.arg(0), c.arg(1), c.arg(2)
	if sign.kind == Undefined {
		return sign
	}
	op := comparison(sign.str)
	if op != opNone && list.kind == Undefined {
		return list
	}
	switch {
	case sign.kind != String:
		return wrong(0, sign)
	case op == opNone:
		return failure(badText, 0)
	case list.kind != List:
		return wrong(1, list)
	}
	result := BoolValue(all)
	c.elements(list, func(v Value) bool {
		if result = apply(op, v, x); result.kind == Undefined {
			result = BoolValue(false)
			return false
		}
		b, ok := result.Bool()
		return ok && b == all
	})
	return result
}

func comparison(text string) operator {
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
