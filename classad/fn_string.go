package classad

import "strings"

// stringBuiltin returns a function on strings.
func stringBuiltin(name string) builtinFunc {
	switch name {
	case "strcat":
		return builtinFunc{0, anyNumber, fnStrcat}
	case "join":
		return builtinFunc{0, anyNumber, fnJoin}
	case "toupper":
		return builtinFunc{1, 1, func(c builtinCall) Value { return c.mapString(upperASCII) }}
	case "tolower":
		return builtinFunc{1, 1, func(c builtinCall) Value { return c.mapString(lowerASCII) }}
	case "substr":
		return builtinFunc{2, 3, fnSubstr}
	case "strcmp":
		return builtinFunc{2, 2, func(c builtinCall) Value { return c.compareStrings(strings.Compare) }}
	case "stricmp":
		return builtinFunc{2, 2, func(c builtinCall) Value { return c.compareStrings(foldCompare) }}
	case "split":
		return builtinFunc{1, 2, fnSplit}
	case "splitusername":
		return builtinFunc{1, 1, func(c builtinCall) Value { return c.splitAt(true) }}
	case "splitslotname":
		return builtinFunc{1, 1, func(c builtinCall) Value { return c.splitAt(false) }}
	}
	return builtinFunc{}
}

func fnStrcat(c builtinCall) Value {
	var b strings.Builder
	for i := range c.args {
		switch v := c.arg(i); v.kind {
		case Error, Undefined:
			return v
		default:
			s := plainText(v)
			if !c.evaluator.takeText(len(s)) {
				return ErrorValue()
			}
			b.WriteString(s)
		}
	}
	return StringValue(b.String())
}

// fnJoin puts a separator between its arguments, or between the elements of its one list.
// UNDEFINED elements are ignored. Leading empty texts are joined without a separator.
func fnJoin(c builtinCall) Value {
	if len(c.args) == 0 {
		return StringValue("")
	}
	j := textJoiner{c: c}
	last := c.arg(len(c.args) - 1)
	switch {
	case len(c.args) == 1 && last.kind == List:
		c.elements(last, j.add)
	case len(c.args) == 1:
		j.separate(last)
	case len(c.args) == 2:
		if j.separate(c.arg(0)); last.kind != List {
			j.add(last)
		} else if j.failed.kind != Error {
			c.elements(last, j.add)
		}
	default:
		j.separate(c.arg(0))
		for i := 1; i < len(c.args)-1 && j.failed.kind != Error; i++ {
			j.add(c.arg(i))
		}
		j.add(last)
	}
	switch {
	case j.failed.kind == Error:
		return j.failed
	case j.undefined && !j.defined:
		return UndefinedValue()
	}
	return StringValue(string(j.text))
}

// textJoiner builds the result of fnJoin.
type textJoiner struct {
	c                  builtinCall
	sep                string
	text               []byte
	undefined, defined bool
	failed             Value // the first ERROR, if any
}

func (j *textJoiner) separate(v Value) {
	switch v.kind {
	case Error:
		j.failed = v
	case Undefined:
		j.undefined = true
	default:
		j.sep = plainText(v)
	}
}

func (j *textJoiner) add(v Value) bool {
	switch {
	case j.failed.kind == Error:
	case v.kind == Error:
		j.failed = v
	case v.kind == Undefined:
		j.undefined = true
	default:
		if len(j.text) > 0 {
			j.text = append(j.text, j.sep...)
		}
		start := len(j.text)
		j.text = append(j.text, plainText(v)...)
		j.defined = true
		if !j.c.evaluator.takeText(len(j.text) - start + len(j.sep) + 16) {
			j.failed = ErrorValue()
		}
	}
	return j.failed.kind != Error
}

func (c builtinCall) mapString(f func(string) string) Value {
	v := c.arg(0)
	if v.kind == Undefined || v.kind == Error {
		return v
	}
	return c.text(f(plainText(v)))
}

func upperASCII(s string) string {
	b := []byte(s)
	for i, ch := range b {
		if 'a' <= ch && ch <= 'z' {
			b[i] = ch - 'a' + 'A'
		}
	}
	return string(b)
}

func lowerASCII(s string) string {
	b := []byte(s)
	for i, ch := range b {
		b[i] = lower(ch)
	}
	return string(b)
}

// fnSubstr returns a part of a string. Negative numbers count from the end.
func fnSubstr(c builtinCall) Value {
	s, off, size := c.arg(0), c.arg(1), IntValue(0)
	if len(c.args) == 3 {
		size = c.arg(2)
	}
	switch {
	case s.kind == Undefined || off.kind == Undefined || size.kind == Undefined:
		return UndefinedValue()
	case s.kind != String:
		return argumentError(0, s)
	case off.kind != Integer:
		return argumentError(1, off)
	case size.kind != Integer:
		return argumentError(2, size)
	}
	all := int64(len(s.str))
	from := off.int()
	if from < 0 {
		from = max(all+from, 0)
	}
	from = min(from, all)
	to := all
	if len(c.args) == 3 {
		switch n := size.int(); {
		case n < 0:
			to = max(all+n, from)
		case n < all-from:
			to = from + n
		}
	}
	return StringValue(s.str[from:to])
}

func (c builtinCall) compareStrings(compare func(a, b string) int) Value {
	x, y := c.arg(0), c.arg(1)
	switch {
	case x.kind == Undefined || y.kind == Undefined:
		return UndefinedValue()
	case x.kind == Error:
		return x
	case y.kind == Error:
		return y
	}
	return sign(compare(c.stringArg(x), c.stringArg(y)))
}

func sign(n int) Value {
	switch {
	case n < 0:
		return IntValue(-1)
	case n > 0:
		return IntValue(1)
	}
	return IntValue(0)
}

// fnSplit splits a string at any of some characters, by default blanks and commas. Two
// adjacent equal separators that are not blanks enclose an empty piece; other empty
// pieces are dropped.
func fnSplit(c builtinCall) Value {
	s := c.arg(0)
	seps, bad := c.stringArgOr(1, ", \t")
	switch {
	case s.kind != String:
		return argumentError(0, s)
	case bad.kind == Error:
		return bad
	case !c.evaluator.takeText(splitCost(s.str, seps)):
		return ErrorValue()
	}
	in := newByteSet(seps)
	var pieces []string
	start, last := 0, byte(0)
	for i := range len(s.str) {
		ch := s.str[i]
		if !in.has(ch) {
			continue
		}
		if i > start {
			pieces = append(pieces, s.str[start:i])
		} else if ch == last {
			pieces = append(pieces, "")
		}
		if !isBlank(ch) {
			last = ch
		}
		start = i + 1
	}
	if start < len(s.str) {
		pieces = append(pieces, s.str[start:])
	}
	return c.list(pieces...)
}

// byteSet is a set of bytes.
type byteSet [256 / 64]uint64

func newByteSet(s string) (set byteSet) {
	for i := range len(s) {
		set[s[i]>>6] |= 1 << (s[i] & 63)
	}
	return set
}

func (s *byteSet) has(c byte) bool { return s[c>>6]>>(c&63)&1 != 0 }

func isBlank(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// splitCost returns the cost of splitting s.
func splitCost(s, seps string) int { return len(s) + len(seps) }

// splitAt splits at the first @. Text without an @ is the user part, or the host part of
// a slot name.
func (c builtinCall) splitAt(user bool) Value {
	v := c.arg(0)
	if v.kind != String {
		return argumentError(0, v)
	}
	before, after, found := strings.Cut(v.str, "@")
	if !found && !user {
		before, after = "", v.str
	}
	return c.list(before, after)
}
