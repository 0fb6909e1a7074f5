package classad

import (
	"maps"
	"slices"
	"strings"
)

// environmentBuiltin returns a function on command lines or environments. In HTCondor's
// second syntax these are words separated by blanks; single quotes group blanks, and a
// doubled quote stands for one. The first syntax has no quotes.
func environmentBuiltin(name string) builtinFunc {
	switch name {
	case "argstolist":
		return builtinFunc{1, 2, fnArgsToList}
	case "listtoargs":
		return builtinFunc{1, 2, fnListToArgs}
	case "envv1tov2":
		return builtinFunc{1, 1, fnEnvV1ToV2}
	case "mergeenvironment":
		return builtinFunc{0, anyNumber, fnMergeEnvironment}
	case "userhome":
		return builtinFunc{1, 2, fnUserHome}
	case "usermap":
		return builtinFunc{2, 4, fnUserMap}
	}
	return builtinFunc{}
}

// isWordSeparator reports whether c separates words.
func isWordSeparator(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// splitWords splits a text into words; ok is false if a quote is not closed.
func splitWords(s string) (list []string, ok bool) {
	var word []byte
	inWord, quoted := false, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\'' && quoted && i+1 < len(s) && s[i+1] == '\'':
			word = append(word, c)
			i++
		case c == '\'':
			inWord, quoted = true, !quoted
		case !quoted && isWordSeparator(c):
			if inWord {
				list, word, inWord = append(list, string(word)), word[:0], false
			}
		default:
			word, inWord = append(word, c), true
		}
	}
	if inWord {
		list = append(list, string(word))
	}
	return list, !quoted
}

// joinWords is the inverse of splitWords. It puts quotes around the blanks and quotes
// themselves, as upstream does.
func joinWords(list []string) string {
	var b []byte
	for i, word := range list {
		if i > 0 {
			b = append(b, ' ')
		}
		if word == "" {
			b = append(b, "''"...)
		}
		for i := range len(word) {
			c := word[i]
			if c != '\'' && !isWordSeparator(c) {
				b = append(b, c)
				continue
			}
			if len(b) > 0 && b[len(b)-1] == '\'' {
				b = b[:len(b)-1] // continue the quoted piece before
			} else {
				b = append(b, '\'')
			}
			if c == '\'' {
				b = append(b, c)
			}
			b = append(b, c, '\'')
		}
	}
	return string(b)
}

// syntaxVersion returns the optional second argument, 1 or 2 for HTCondor's first or
// second syntax.
func (c builtinCall) syntaxVersion() (version int64, bad Value) {
	if len(c.args) < 2 {
		return 2, Value{}
	}
	v := c.arg(1)
	version, ok := v.Int()
	if !ok || version != 1 && version != 2 {
		return 0, argumentError(1, v)
	}
	return version, Value{}
}

func fnArgsToList(c builtinCall) Value {
	version, bad := c.syntaxVersion()
	v := c.arg(0)
	switch {
	case bad.kind == Error:
		return bad
	case v.kind != String:
		return argumentError(0, v)
	case !c.evaluator.takeText(len(v.str)):
		return ErrorValue()
	}
	if version == 1 {
		return c.list(strings.FieldsFunc(v.str, func(r rune) bool { return r < 128 && isWordSeparator(byte(r)) })...)
	}
	list, ok := splitWords(v.str)
	if !ok {
		return errorFor(badText, 0)
	}
	return c.list(list...)
}

func fnListToArgs(c builtinCall) Value {
	version, bad := c.syntaxVersion()
	v := c.arg(0)
	switch {
	case bad.kind == Error:
		return bad
	case v.kind != List:
		return argumentError(0, v)
	}
	var list []string
	c.elements(v, func(elem Value) bool {
		if elem.kind != String || version == 1 && strings.ContainsAny(elem.str, " \t\n\r") {
			bad = elementError(0, elem)
			return false
		}
		list = append(list, elem.str)
		return c.evaluator.takeText(4*len(elem.str) + 19)
	})
	switch {
	case bad.kind == Error:
		return bad
	case version == 1:
		// nothing comes before the first, so nothing separates it
		return StringValue(strings.TrimLeft(strings.Join(list, " "), " "))
	}
	return StringValue(joinWords(list))
}

// envVariables maps names of environment variables to values.
type envVariables map[string]string

// set adds a variable from NAME=value. Text with $$ and no = is replaced during the
// match, and stays as it is.
func (e envVariables) set(item string) bool {
	name, _, ok := strings.Cut(item, "=")
	if name == "" || !ok && !strings.Contains(item, "$$") {
		return false
	}
	e[name] = item
	return true
}

// text returns the environment in the second syntax, sorted by name.
func (e envVariables) text() string {
	list := make([]string, 0, len(e))
	for _, name := range slices.Sorted(maps.Keys(e)) {
		list = append(list, e[name])
	}
	return joinWords(list)
}

// fnEnvV1ToV2 rewrites "A=1;B=2" as "A=1 B=2". A leading sign is the separator instead of
// the semicolon.
func fnEnvV1ToV2(c builtinCall) Value {
	v := c.arg(0)
	if v.kind == Undefined {
		return v
	}
	if v.kind != String || !c.evaluator.takeText(64+8*len(v.str)) {
		return argumentError(0, v)
	}
	s, mark := v.str, byte(';')
	if s != "" && strings.IndexByte("!#$%&*+,-/:;<>?@^`|~\x1f", s[0]) >= 0 {
		s, mark = s[1:], s[0]
	}
	env := envVariables{}
	for item := range rawPieces(s, string([]byte{mark, '\n'})) {
		item = strings.TrimLeft(item, " \t\r")
		if item != "" && !env.set(item) {
			return errorFor(badText, 0)
		}
	}
	return c.text(env.text())
}

// fnMergeEnvironment joins environments; the last value of a variable wins. UNDEFINED
// arguments are ignored.
func fnMergeEnvironment(c builtinCall) Value {
	env := envVariables{}
	for i := range c.args {
		v := c.arg(i)
		if v.kind == Undefined {
			continue
		}
		if v.kind != String || !c.evaluator.takeText(64+8*len(v.str)) {
			return argumentError(i, v)
		}
		items, ok := splitWords(v.str)
		for _, item := range items {
			ok = ok && env.set(item)
		}
		if !ok {
			return errorFor(badText, uint8(i))
		}
	}
	return c.text(env.text())
}

// fnUserHome returns its default argument if that is a string that is not empty. Like
// upstream in its default configuration, it looks up no home directory: for a user the
// result is UNDEFINED, and for an argument that is no user it is ERROR.
func fnUserHome(c builtinCall) Value {
	user, usual := c.arg(0), c.arg(1)
	switch {
	case usual.kind == String && usual.str != "":
		return usual
	case user.kind == String || user.kind == Undefined:
		return UndefinedValue()
	}
	return argumentError(0, user)
}

// fnUserMap returns its default argument, or UNDEFINED. Upstream looks into a map file of
// the daemon; there is none here.
func fnUserMap(c builtinCall) Value {
	for i := range 2 {
		if v := c.arg(i); v.kind == Error {
			return v
		}
	}
	return c.arg(3)
}
