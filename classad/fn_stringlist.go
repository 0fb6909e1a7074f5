package classad

import "strings"

// stringListBuiltin are the functions of strings that hold a list, separated by blanks and commas unless an argument says otherwise.
func stringListBuiltin(name string) builtin {
	switch name {
	case "stringlistsize":
		return builtin{1, 2, fnStringListSize}
	case "stringlistsum":
		return builtin{1, 2, func(c call) Value { return c.reduce(RealValue(0), sumOf) }}
	case "stringlistavg":
		return builtin{1, 2, func(c call) Value { return c.reduce(RealValue(0), meanOf) }}
	case "stringlistmin":
		return builtin{1, 2, func(c call) Value { return c.reduce(UndefinedValue(), leastOf) }}
	case "stringlistmax":
		return builtin{1, 2, func(c call) Value { return c.reduce(UndefinedValue(), greatestOf) }}
	case "stringlistmember":
		return builtin{2, 3, func(c call) Value { return c.inStringList(sameText) }}
	case "stringlistimember":
		return builtin{2, 3, func(c call) Value { return c.inStringList(foldEqual) }}
	case "stringlistsubsetmatch":
		return builtin{2, 3, func(c call) Value { return c.stringLists(true, sameText) }}
	case "stringlistisubsetmatch":
		return builtin{2, 3, func(c call) Value { return c.stringLists(true, foldEqual) }}
	case "stringlistsintersect":
		return builtin{2, 3, func(c call) Value { return c.stringLists(false, sameText) }}
	case "stringlist_regexpmember":
		return builtin{2, 4, fnStringListRegexpMember}
	}
	return builtin{}
}

func sameText(a, b string) bool { return a == b }

// stringList cuts a string at the characters of argument i. Blanks around the pieces go, and so do empty pieces. UNDEFINED is an empty
// list; ok is false for any other value.
func (c call) stringList(v Value, i int) (pieces []string, ok bool) {
	seps := " ,"
	if i < len(c.args) {
		arg := c.arg(i)
		if arg.kind == String {
			seps = arg.str
		} else if arg.kind != Undefined {
			return nil, false
		}
	}
	if v.kind != String && v.kind != Undefined || !c.ev.spend(cutting(v.str, seps)) {
		return nil, false
	}
	for _, piece := range fields(v.str, seps) {
		if piece = strings.TrimSpace(piece); piece != "" {
			pieces = append(pieces, piece)
		}
	}
	return pieces, true
}

// given is the string list of a function's first two arguments, neither of which may be UNDEFINED.
func (c call) given() (pieces []string, ok bool) {
	v := c.arg(0)
	if v.kind != String || len(c.args) > 1 && c.arg(1).kind != String {
		return nil, false
	}
	return c.stringList(v, 1)
}

func fnStringListSize(c call) Value {
	pieces, ok := c.given()
	if !ok {
		return ErrorValue()
	}
	return IntValue(int64(len(pieces)))
}

// reduce folds the numbers of a string list into one; an empty list gives empty.
func (c call) reduce(empty Value, fold func([]Value) Value) Value {
	pieces, ok := c.given()
	if !ok {
		return ErrorValue()
	}
	if len(pieces) == 0 {
		return empty
	}
	numbers := make([]Value, len(pieces))
	for i, piece := range pieces {
		if numbers[i], ok = leadingNumber(piece); !ok {
			return ErrorValue()
		}
	}
	return fold(numbers)
}

func sumOf(numbers []Value) Value {
	sum := IntValue(0)
	for _, v := range numbers {
		sum = apply(opAdd, sum, v)
	}
	return sum
}

// meanOf is an integer where all numbers are.
func meanOf(numbers []Value) Value {
	return apply(opDivide, sumOf(numbers), IntValue(int64(len(numbers))))
}

func leastOf(numbers []Value) Value    { return extremeOf(opLess, numbers) }
func greatestOf(numbers []Value) Value { return extremeOf(opGreater, numbers) }

// extremeOf is an integer where all numbers are.
func extremeOf(op operator, numbers []Value) Value {
	best, allInts := numbers[0], true
	for _, v := range numbers {
		allInts = allInts && v.kind == Integer
		if apply(op, v, best).IsTrue() {
			best = v
		}
	}
	if allInts {
		return best
	}
	return toReal(best)
}

func (c call) inStringList(same func(a, b string) bool) Value {
	x, list := c.arg(0), c.arg(1)
	pieces, ok := c.stringList(list, 2)
	switch {
	case !ok || x.kind != String && x.kind != Undefined:
		return ErrorValue()
	case x.kind == Undefined && list.kind == Undefined:
		return UndefinedValue()
	}
	return BoolValue(holds(pieces, x.str, same))
}

func holds(pieces []string, x string, same func(a, b string) bool) bool {
	for _, piece := range pieces {
		if same(piece, x) {
			return true
		}
	}
	return false
}

// stringLists says whether all pieces of the first list, or any, are in the second.
func (c call) stringLists(all bool, same func(a, b string) bool) Value {
	x, y := c.arg(0), c.arg(1)
	switch {
	case !all && c.firstOdd().kind != String:
		return c.firstOdd()
	case x.kind == Undefined && y.kind == Undefined:
		return UndefinedValue()
	}
	xs, ok := c.stringList(x, 2)
	ys, ok2 := c.stringList(y, 2)
	if !ok || !ok2 {
		return ErrorValue()
	}
	if all && len(xs) == 0 && strings.TrimSpace(x.str) == "" && len(fields(x.str, c.blanks())) > 0 {
		xs = []string{""} // only blanks that do not separate: one empty piece, which no list holds
	}
	for _, piece := range xs {
		if !c.ev.spend(len(ys)) {
			return ErrorValue()
		}
		if holds(ys, piece, same) != all {
			return BoolValue(!all)
		}
	}
	return BoolValue(all)
}

// blanks are the characters that separate, for a function whose third argument may say so.
func (c call) blanks() string {
	if s, ok := c.arg(2).Str(); ok {
		return s
	}
	return " ,"
}

// firstOdd is ERROR if an argument is, else UNDEFINED if one is, else ERROR if one is not a string; otherwise a string.
func (c call) firstOdd() Value {
	result := StringValue("")
	for i := range c.args {
		switch v := c.arg(i); v.kind {
		case Error:
			return v
		case Undefined:
			result = v
		case String:
		default:
			if result.kind == String {
				result = ErrorValue()
			}
		}
	}
	return result
}

func fnStringListRegexpMember(c call) Value {
	p, list := c.arg(0), c.arg(1)
	if p.kind != String || list.kind != String {
		return ErrorValue()
	}
	pieces, ok := c.stringList(list, 2)
	re, err := c.pattern(p.str, 3)
	switch {
	case !ok || err != nil:
		return ErrorValue()
	case len(pieces) == 0:
		return UndefinedValue()
	}
	for _, piece := range pieces {
		if c.matches(re, piece) {
			return BoolValue(true)
		}
	}
	return BoolValue(false)
}
