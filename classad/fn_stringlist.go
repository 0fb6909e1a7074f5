package classad

import "strings"

// stringListBuiltin are the functions of strings that hold a list, separated by blanks and commas unless an argument says otherwise.
func stringListBuiltin(name string) builtin {
	switch name {
	case "stringlistsize":
		return builtin{1, 2, fnStringListSize}
	case "stringlistsum":
		return builtin{1, 2, func(c call) Value { return c.reduce(IntValue(0), sumOf) }}
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

// stringList cuts a string at the characters of argument i. Blanks around the pieces go, and so do empty pieces.
func (c call) stringList(s string, i int) ([]string, bool) {
	seps, ok := c.separators(i, " ,")
	if !ok || !c.ev.spend(len(s)) {
		return nil, false
	}
	if seps == "" {
		return []string{s}, true
	}
	var pieces []string
	for _, piece := range fields(s, seps) {
		if piece = strings.TrimSpace(piece); piece != "" {
			pieces = append(pieces, piece)
		}
	}
	return pieces, true
}

func fnStringListSize(c call) Value {
	s, ok := c.arg(0).Str()
	if !ok {
		return ErrorValue()
	}
	pieces, ok := c.stringList(s, 1)
	if !ok {
		return ErrorValue()
	}
	return IntValue(int64(len(pieces)))
}

// reduce folds the numbers of a string list into one; an empty list gives empty.
func (c call) reduce(empty Value, fold func([]Value) Value) Value {
	s, ok := c.arg(0).Str()
	if !ok {
		return ErrorValue()
	}
	pieces, ok := c.stringList(s, 1)
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
	switch {
	case x.kind == Error || list.kind == Error:
		return ErrorValue()
	case x.kind == Undefined || list.kind == Undefined:
		return UndefinedValue()
	case x.kind != String || list.kind != String:
		return ErrorValue()
	}
	pieces, ok := c.stringList(list.str, 2)
	if !ok {
		return ErrorValue()
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
	case x.kind == Error || y.kind == Error:
		return ErrorValue()
	case x.kind == Undefined || y.kind == Undefined:
		return UndefinedValue()
	case x.kind != String || y.kind != String:
		return ErrorValue()
	}
	xs, ok := c.stringList(x.str, 2)
	ys, ok2 := c.stringList(y.str, 2)
	if !ok || !ok2 {
		return ErrorValue()
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

func fnStringListRegexpMember(c call) Value {
	p, list := c.arg(0), c.arg(1)
	switch {
	case p.kind == Error || list.kind == Error:
		return ErrorValue()
	case p.kind == Undefined || list.kind == Undefined:
		return UndefinedValue()
	case p.kind != String || list.kind != String:
		return ErrorValue()
	}
	pieces, ok := c.stringList(list.str, 2)
	re, err := c.pattern(p.str, 3)
	if !ok || err != nil {
		return ErrorValue()
	}
	for _, piece := range pieces {
		if re.MatchString(piece) {
			return BoolValue(true)
		}
	}
	return BoolValue(false)
}
