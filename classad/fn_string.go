package classad

import "strings"

// stringBuiltin are the functions of strings.
func stringBuiltin(name string) builtin {
	switch name {
	case "strcat":
		return builtin{0, many, fnStrcat}
	case "join":
		return builtin{0, many, fnJoin}
	case "toupper":
		return builtin{1, 1, func(c call) Value { return c.mapped(upperASCII) }}
	case "tolower":
		return builtin{1, 1, func(c call) Value { return c.mapped(lowerASCII) }}
	case "substr":
		return builtin{2, 3, fnSubstr}
	case "strcmp":
		return builtin{2, 2, func(c call) Value { return c.compared(strings.Compare) }}
	case "stricmp":
		return builtin{2, 2, func(c call) Value { return c.compared(foldCompare) }}
	case "split":
		return builtin{1, 2, fnSplit}
	case "splitusername":
		return builtin{1, 1, func(c call) Value { return c.splitAt(true) }}
	case "splitslotname":
		return builtin{1, 1, func(c call) Value { return c.splitAt(false) }}
	}
	return builtin{}
}

func fnStrcat(c call) Value {
	var b strings.Builder
	for i := range c.args {
		switch v := c.arg(i); v.kind {
		case Error, Undefined:
			return v
		default:
			s := plainText(v)
			if !c.ev.spend(len(s)) {
				return ErrorValue()
			}
			b.WriteString(s)
		}
	}
	return StringValue(b.String())
}

// fnJoin puts a separator between its arguments, or the elements of its one list. UNDEFINED is left out.
func fnJoin(c call) Value {
	if len(c.args) == 0 {
		return StringValue("")
	}
	var parts []string
	failed := false
	add := func(v Value) bool {
		switch {
		case v.kind == Error:
			failed = true
		case v.kind != Undefined:
			s := plainText(v)
			parts = append(parts, s)
			failed = !c.ev.spend(len(s) + 16)
		}
		return !failed
	}
	sep := c.arg(0)
	switch {
	case sep.kind == Error:
		return sep
	case len(c.args) == 1:
		if sep.kind == Undefined {
			return sep
		}
		if sep.kind == List {
			c.elements(sep, add)
		}
		sep = StringValue("")
	case len(c.args) == 2:
		if list := c.arg(1); list.kind == List {
			c.elements(list, add)
		} else {
			add(list)
		}
	default:
		for i := 1; i < len(c.args) && add(c.arg(i)); i++ {
		}
	}
	mark := ""
	if sep.kind != Undefined {
		mark = plainText(sep)
	}
	switch {
	case failed || !c.ev.spend(len(mark)*len(parts)):
		return ErrorValue()
	case len(parts) == 0 && len(c.args) > 1:
		return UndefinedValue()
	}
	return StringValue(strings.Join(parts, mark))
}

func (c call) mapped(f func(string) string) Value {
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

// fnSubstr counts from the end where its numbers are negative.
func fnSubstr(c call) Value {
	s, off, size := c.arg(0), c.arg(1), IntValue(0)
	if len(c.args) == 3 {
		size = c.arg(2)
	}
	switch {
	case s.kind == Undefined || off.kind == Undefined || size.kind == Undefined:
		return UndefinedValue()
	case s.kind != String || off.kind != Integer || size.kind != Integer:
		return ErrorValue()
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

func (c call) compared(compare func(a, b string) int) Value {
	x, y := c.arg(0), c.arg(1)
	switch {
	case x.kind == Undefined || y.kind == Undefined:
		return UndefinedValue()
	case x.kind == Error || y.kind == Error:
		return ErrorValue()
	}
	return sign(compare(c.plain(x), c.plain(y)))
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

// fnSplit cuts a string at any of some characters, blanks and commas unless given, and drops empty pieces.
func fnSplit(c call) Value {
	s := c.arg(0)
	seps, ok := c.separators(1, ", \t")
	if s.kind != String || !ok || !c.ev.spend(cutting(s.str, seps)) {
		return ErrorValue()
	}
	return c.list(fields(s.str, seps)...)
}

// separators is the optional argument i, a string of separating characters.
func (c call) separators(i int, usual string) (string, bool) {
	if i >= len(c.args) {
		return usual, true
	}
	return c.arg(i).Str()
}

// cutting is what it costs to cut s.
func cutting(s, seps string) int { return len(s) + len(s)*len(seps)/16 }

func fields(s, seps string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(seps, r) })
}

// splitAt cuts at the first @; without one the whole is a user's name, or a slot's host.
func (c call) splitAt(user bool) Value {
	s, ok := c.arg(0).Str()
	if !ok {
		return ErrorValue()
	}
	before, after, found := strings.Cut(s, "@")
	if !found && !user {
		before, after = "", s
	}
	return c.list(before, after)
}
