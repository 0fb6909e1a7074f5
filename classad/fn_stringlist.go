package classad

import (
	"iter"
	"math"
	"strings"
)

// stringListBuiltin returns a function on strings that contain a list. Elements are
// separated by blanks and commas unless an argument gives other separators.
func stringListBuiltin(name string) builtinFunc {
	switch name {
	case "stringlistsize":
		return builtinFunc{1, 2, fnStringListSize}
	case "stringlistsum":
		return builtinFunc{1, 2, func(c builtinCall) Value { return c.reduce(RealValue(0), 0, plus, false) }}
	case "stringlistavg":
		return builtinFunc{1, 2, func(c builtinCall) Value { return c.reduce(RealValue(0), 0, plus, true) }}
	case "stringlistmin":
		return builtinFunc{1, 2, func(c builtinCall) Value {
			return c.reduce(UndefinedValue(), math.Inf(1), less, false)
		}}
	case "stringlistmax":
		return builtinFunc{1, 2, func(c builtinCall) Value {
			return c.reduce(UndefinedValue(), math.Inf(-1), greater, false)
		}}
	case "stringlistmember":
		return builtinFunc{2, 3, func(c builtinCall) Value { return c.inStringList(sameText) }}
	case "stringlistimember":
		return builtinFunc{2, 3, func(c builtinCall) Value { return c.inStringList(foldEqual) }}
	case "stringlistsubsetmatch":
		return builtinFunc{2, 3, func(c builtinCall) Value { return c.subset(func(s string) string { return s }) }}
	case "stringlistisubsetmatch":
		return builtinFunc{2, 3, func(c builtinCall) Value { return c.subset(lowerASCII) }}
	case "stringlistsintersect":
		return builtinFunc{2, 3, fnStringListsIntersect}
	case "stringlist_regexpmember":
		return builtinFunc{2, 4, fnStringListRegexpMember}
	}
	return builtinFunc{}
}

func sameText(a, b string) bool { return a == b }

// trimmedPieces ranges over the pieces of a string between separators, without
// surrounding blanks. It skips empty pieces.
func trimmedPieces(s, seps string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for piece := range rawPieces(s, seps) {
			if piece = strings.Trim(piece, " \t\n\v\f\r"); piece != "" && !yield(piece) {
				return
			}
		}
	}
}

// rawPieces ranges over the non-empty pieces of a string between separators, with their
// blanks.
func rawPieces(s, seps string) iter.Seq[string] {
	return func(yield func(string) bool) {
		in := newByteSet(seps)
		start := 0
		for i := 0; i <= len(s); i++ {
			if i < len(s) && !in.has(s[i]) {
				continue
			}
			if i > start && !yield(s[start:i]) {
				return
			}
			start = i + 1
		}
	}
}

// stringArgOr returns argument i, which must be a string, or usual if it is missing. bad
// is an ERROR for another type.
func (c builtinCall) stringArgOr(i int, usual string) (s string, bad Value) {
	if i >= len(c.args) {
		return usual, Value{}
	}
	v := c.arg(i)
	if v.kind != String {
		return "", argumentError(i, v)
	}
	return v.str, Value{}
}

// splitFirst returns the pieces of the first argument; the second argument may have
// separators. It returns nil on an error.
func (c builtinCall) splitFirst() (pieces iter.Seq[string], bad Value) {
	v := c.arg(0)
	seps, bad := c.stringArgOr(1, " ,")
	switch {
	case v.kind != String:
		return nil, argumentError(0, v)
	case bad.kind == Error:
		return nil, bad
	case !c.evaluator.takeText(splitCost(v.str, seps)):
		return nil, ErrorValue()
	}
	return trimmedPieces(v.str, seps), Value{}
}

func fnStringListSize(c builtinCall) Value {
	pieces, bad := c.splitFirst()
	if pieces == nil {
		return bad
	}
	n := int64(0)
	for range pieces {
		n++
	}
	return IntValue(n)
}

// reduce folds the numbers of a string list into one number. The result is an integer if
// no piece looks like a real. An empty list gives empty.
func (c builtinCall) reduce(empty Value, result float64, fold func(result, f float64) float64, mean bool) Value {
	pieces, bad := c.splitFirst()
	if pieces == nil {
		return bad
	}
	n, whole := 0, true
	for piece := range pieces {
		f, length := strtod(piece)
		// scanf(3) does not stop before an x
		if length == 0 || length < len(piece) && f == 0 && lower(piece[length]) == 'x' {
			return errorFor(badText, 0)
		}
		whole = whole && strings.Trim(piece, "+-0123456789") == ""
		result = fold(result, f)
		n++
	}
	if mean {
		result /= float64(max(n, 1))
	}
	switch {
	case n == 0:
		return empty
	case whole:
		return wholeValue(result)
	}
	return RealValue(result)
}

func plus(x, y float64) float64 { return x + y }

// less returns the smaller number. Unlike min of package math, less and greater ignore
// NaN, as upstream does.
func less(x, y float64) float64 {
	if y < x {
		return y
	}
	return x
}

func greater(x, y float64) float64 {
	if y > x {
		return y
	}
	return x
}

// membershipArgs reads the arguments of a membership function. UNDEFINED counts as an
// empty text, except that with two of them answer is UNDEFINED. For other types answer is
// ERROR. Pieces end at any blank or comma unless an argument gives other separators.
func (c builtinCall) membershipArgs() (x, list, seps string, answer Value) {
	v, w := c.arg(0), c.arg(1)
	seps = ", \t\r\n"
	if len(c.args) > 2 {
		switch d := c.arg(2); d.kind {
		case String:
			seps = d.str
		case Undefined:
		default:
			return "", "", "", argumentError(2, d)
		}
	}
	switch {
	case v.kind != String && v.kind != Undefined:
		return "", "", "", argumentError(0, v)
	case w.kind != String && w.kind != Undefined:
		return "", "", "", argumentError(1, w)
	case v.kind == Undefined && w.kind == Undefined:
		return "", "", "", v
	case !c.evaluator.takeText(splitCost(v.str, seps) + splitCost(w.str, seps)):
		return "", "", "", ErrorValue()
	}
	return v.str, w.str, seps, BoolValue(false)
}

func (c builtinCall) inStringList(same func(a, b string) bool) Value {
	x, list, seps, answer := c.membershipArgs()
	if answer.kind != Boolean {
		return answer
	}
	for piece := range trimmedPieces(list, seps) {
		if same(piece, x) {
			return BoolValue(true)
		}
	}
	return answer
}

// subset reports whether every piece of the first list is in the second. A list that is
// not empty but has no pieces is no subset.
func (c builtinCall) subset(fold func(string) string) Value {
	x, list, seps, answer := c.membershipArgs()
	switch {
	case answer.kind != Boolean:
		return answer
	case x == "":
		return BoolValue(true)
	}
	known := map[string]bool{}
	for piece := range trimmedPieces(list, seps) {
		if !c.evaluator.takeText(64) {
			return ErrorValue()
		}
		known[fold(piece)] = true
	}
	for piece := range trimmedPieces(x, seps) {
		if !known[fold(piece)] {
			return BoolValue(false)
		}
		answer = BoolValue(true)
	}
	return answer
}

// fnStringListsIntersect returns whether two lists share a piece. Blanks count as part of
// a piece unless they are separators.
func fnStringListsIntersect(c builtinCall) Value {
	args, odd := c.stringArgs()
	if odd.kind != String {
		return odd
	}
	seps := args[2]
	if seps == "" {
		seps = " ,"
	}
	if !c.evaluator.takeText(splitCost(args[0], seps) + splitCost(args[1], seps)) {
		return ErrorValue()
	}
	known := map[string]bool{}
	for piece := range rawPieces(args[1], seps) {
		if !c.evaluator.takeText(64) {
			return ErrorValue()
		}
		known[piece] = true
	}
	for piece := range rawPieces(args[0], seps) {
		if known[piece] {
			return BoolValue(true)
		}
	}
	return BoolValue(false)
}

// stringArgs returns the arguments, at most four, if all are strings. Otherwise odd is
// ERROR if an argument is ERROR, else UNDEFINED if one is UNDEFINED, else ERROR.
func (c builtinCall) stringArgs() (args [4]string, odd Value) {
	odd = StringValue("")
	for i := range c.args {
		switch v := c.arg(i); {
		case v.kind == Error:
			return args, v
		case v.kind == Undefined:
			odd = v
		case v.kind == String:
			args[i] = v.str
		case odd.kind == String:
			odd = argumentError(i, v)
		}
	}
	return args, odd
}

func fnStringListRegexpMember(c builtinCall) Value {
	args := [4]string{2: " ,"}
	for i := range c.args {
		v := c.arg(i)
		if v.kind != String {
			return argumentError(i, v)
		}
		args[i] = v.str
	}
	list, seps := args[1], args[2]
	re, bad := c.compile(args[0], lowerASCII(args[3]))
	if re == nil {
		return bad
	}
	if !c.evaluator.takeText(splitCost(list, seps)) {
		return ErrorValue()
	}
	result := UndefinedValue()
	for piece := range trimmedPieces(list, seps) {
		if c.matches(re, piece) {
			return BoolValue(true)
		}
		result = BoolValue(false)
	}
	return result
}
