package classad

// versionBuiltin returns a function that compares version numbers. Values other than
// strings are compared by their text.
func versionBuiltin(name string) builtinFunc {
	switch name {
	case "versioncmp":
		return builtinFunc{2, 2, func(c builtinCall) Value {
			return c.versions(func(order int) Value { return IntValue(int64(order)) })
		}}
	case "versionlt":
		return versionComparison(opLess)
	case "versionle":
		return versionComparison(opLessEqual)
	case "versiongt":
		return versionComparison(opGreater)
	case "versionge":
		return versionComparison(opGreaterEqual)
	case "versioneq":
		return versionComparison(opEqual)
	case "version_in_range":
		return builtinFunc{3, 3, fnVersionInRange}
	}
	return builtinFunc{}
}

func versionComparison(op exprOperator) builtinFunc {
	return builtinFunc{2, 2, func(c builtinCall) Value {
		return c.versions(func(order int) Value { return orderResult(op, order, 0) })
	}}
}

func (c builtinCall) versions(answer func(order int) Value) Value {
	x, y := c.arg(0), c.arg(1)
	switch {
	case x.kind == Undefined || y.kind == Undefined:
		return UndefinedValue()
	case x.kind == Error:
		return x
	case y.kind == Error:
		return y
	}
	return answer(compareVersions(c.stringArg(x), c.stringArg(y)))
}

func fnVersionInRange(c builtinCall) Value {
	v, low, high := c.arg(0), c.arg(1), c.arg(2)
	switch {
	case low.kind == Undefined || high.kind == Undefined:
		return UndefinedValue()
	case v.kind == Undefined || v.kind == Error:
		return argumentError(0, v)
	case low.kind == Error:
		return low
	case high.kind == Error:
		return high
	}
	s := c.stringArg(v)
	return BoolValue(compareVersions(c.stringArg(low), s) <= 0 && compareVersions(s, c.stringArg(high)) <= 0)
}

// compareVersions orders texts as strverscmp(3) does. It compares bytes, but runs of
// digits as numbers, and as fractions if they start with a zero. Like upstream's
// natural_cmp it returns the difference of the first bytes that differ, of the digits of
// two numbers, or of the zeros before them.
func compareVersions(a, b string) int {
	at := func(s string, i int) int {
		if i < len(s) {
			return int(int8(s[i])) // upstream's bytes are signed
		}
		return 0
	}
	digit := func(s string, i int) bool { return i < len(s) && isDigit(s[i]) }
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	if i == len(a) && i == len(b) {
		return 0
	}
	run := i // where the run of digits before i starts
	for run > 0 && isDigit(a[run-1]) {
		run--
	}
	if run == i && !(digit(a, i) && digit(b, i)) {
		return at(a, i) - at(b, i)
	}
	zeros := func(s string) int {
		n := run
		for n < len(s) && s[n] == '0' {
			n++
		}
		if n > run && !digit(s, n) {
			n-- // of a number that is only zeros, the last 0 counts
		}
		return n - run
	}
	digits := func(s string) int {
		n := run
		for digit(s, n) {
			n++
		}
		return n - run
	}
	if za, zb := zeros(a), zeros(b); za != zb {
		return zb - za
	} else if za > 0 {
		return at(a, i) - at(b, i)
	}
	if na, nb := digits(a), digits(b); na != nb {
		return na - nb
	}
	return at(a, i) - at(b, i)
}
