package classad

// versionBuiltin are the functions that compare version numbers. Values other than strings are compared by their text.
func versionBuiltin(name string) builtin {
	switch name {
	case "versioncmp":
		return builtin{2, 2, func(c call) Value {
			return c.versions(func(order int) Value { return IntValue(int64(order)) })
		}}
	case "versionlt":
		return ofOrder(opLess)
	case "versionle":
		return ofOrder(opLessEqual)
	case "versiongt":
		return ofOrder(opGreater)
	case "versionge":
		return ofOrder(opGreaterEqual)
	case "versioneq":
		return ofOrder(opEqual)
	case "version_in_range":
		return builtin{3, 3, fnVersionInRange}
	}
	return builtin{}
}

func ofOrder(op operator) builtin {
	return builtin{2, 2, func(c call) Value {
		return c.versions(func(order int) Value { return ordered(op, order, 0) })
	}}
}

func (c call) versions(answer func(order int) Value) Value {
	x, y := c.arg(0), c.arg(1)
	switch {
	case x.kind == Undefined || y.kind == Undefined:
		return UndefinedValue()
	case x.kind == Error || y.kind == Error:
		return ErrorValue()
	}
	return answer(compareVersions(c.plain(x), c.plain(y)))
}

func fnVersionInRange(c call) Value {
	v, low, high := c.arg(0), c.arg(1), c.arg(2)
	switch {
	case low.kind == Undefined || high.kind == Undefined:
		return UndefinedValue()
	case v.kind == Undefined || v.kind == Error || low.kind == Error || high.kind == Error:
		return ErrorValue()
	}
	s := c.plain(v)
	return BoolValue(compareVersions(c.plain(low), s) <= 0 && compareVersions(s, c.plain(high)) <= 0)
}

// compareVersions orders texts by their bytes, except that runs of digits are compared as numbers, and as fractions where they start
// with a zero: strverscmp(3) of the GNU C library. The result is the difference of the first bytes that differ, unless it is decided
// by the number of digits, when it is 1 or -1.
func compareVersions(a, b string) int {
	at := func(s string, i int) int {
		if i < len(s) {
			return int(s[i])
		}
		return 0
	}
	digit := func(s string, i int) bool { return i < len(s) && isDigit(s[i]) }
	i, run, zeros := 0, 0, true // run: where the digits before i start; zeros: they are all 0
	for ; at(a, i) == at(b, i); i++ {
		switch {
		case i >= len(a):
			return 0
		case !isDigit(a[i]):
			run, zeros = i+1, true
		case a[i] != '0':
			zeros = false
		}
	}
	switch {
	case digit(a, run) && digit(b, run) && a[run] != '0' && b[run] != '0':
		j := i
		for digit(a, j) && digit(b, j) {
			j++
		}
		if digit(a, j) != digit(b, j) {
			if digit(a, j) {
				return 1
			}
			return -1
		}
	case zeros && run < i && (digit(a, i) || digit(b, i)):
		// Of two runs that start with zeros, the one with a digit here is a longer fraction, and less.
		if !digit(a, i) {
			return 1
		}
		if !digit(b, i) {
			return -1
		}
	}
	return at(a, i) - at(b, i)
}
