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
	}
	return ErrorValue()
}

// member looks for a value in a list, by == or by =?=.
func (c call) member(op operator) Value {
	x, list := c.arg(0), c.arg(1)
	if list.kind == Undefined || op == opEqual && x.kind == Undefined {
		return UndefinedValue()
	}
	if list.kind != List || x.kind == List || x.kind == AdValue || op == opEqual && x.kind == Error {
		return ErrorValue()
	}
	found := false
	c.elements(list, func(v Value) bool {
		found = apply(op, v, x).IsTrue()
		return !found
	})
	return BoolValue(found)
}

// total adds a list up, and divides by its length for the mean.
func (c call) total(mean bool) Value {
	list := c.arg(0)
	if list.kind == Undefined {
		return list
	}
	if list.kind != List {
		return ErrorValue()
	}
	sum := IntValue(0)
	c.elements(list, func(v Value) bool {
		sum = apply(opAdd, sum, v)
		return sum.kind != Error
	})
	if n := len(list.comp.elems); mean && n > 0 {
		return apply(opDivide, sum, RealValue(float64(n)))
	}
	return sum
}

// extreme is the least or greatest element of a list; of none it is UNDEFINED.
func (c call) extreme(op operator) Value {
	list := c.arg(0)
	if list.kind == Undefined {
		return list
	}
	if list.kind != List {
		return ErrorValue()
	}
	best, first := UndefinedValue(), true
	c.elements(list, func(v Value) bool {
		switch {
		case v.kind == Undefined || v.kind == Error:
			best = v
			return false
		case first:
			if _, ok := v.Number(); !ok {
				best = ErrorValue()
				return false
			}
			best, first = v, false
		default:
			better := apply(op, v, best)
			if better.kind == Error {
				best = better
				return false
			}
			if better.IsTrue() {
				best = v
			}
		}
		return true
	})
	return best
}

// compareAll compares each element of a list with a value by an operator that is given as a string.
func (c call) compareAll(all bool) Value {
	sign, list, x := c.arg(0), c.arg(1), c.arg(2)
	if sign.kind == Undefined {
		return sign
	}
	op := comparison(sign.str)
	if op != opNone && list.kind == Undefined {
		return list
	}
	if op == opNone || list.kind != List {
		return ErrorValue()
	}
	result := BoolValue(all)
	c.elements(list, func(v Value) bool {
		if result = apply(op, v, x); result.kind == Undefined {
			result = BoolValue(false)
		}
		b, ok := result.Bool()
		return ok && b == all
	})
	return result
}

func comparison(text string) operator {
	switch op := operatorOf(text); op {
	case opEqual, opNotEqual, opIs, opIsnt, opLess, opLessEqual, opGreater, opGreaterEqual:
		return op
	}
	switch {
	case foldEqual(text, "is"):
		return opIs
	case foldEqual(text, "isnt"):
		return opIsnt
	}
	return opNone
}
