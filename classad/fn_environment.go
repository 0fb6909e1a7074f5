package classad

import (
	"maps"
	"slices"
	"strings"
)

// environmentBuiltin are the functions of command lines and environments. In HTCondor's
// second syntax they are words separated by blanks, where single quotes keep blanks
// together and stand for one quote when doubled; the first syntax has no quotes.
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

// isWordSeparator says whether c separates words.
func isWordSeparator(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// splitWords cuts a text into words; ok is false where a quote is not closed.
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

// joinWords undoes words. It puts quotes around the blanks and quotes themselves, as
// upstream does.
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
				b = b[:len(b)-1] // goes on with the quoted piece before
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

// syntaxVersion is the optional second argument, 1 or 2 for HTCondor's first or second
// syntax.
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
		return StringValue(strings.TrimLeft(strings.Join(list, " "), " ")) // nothing separates what comes after nothing
	}
	return StringValue(joinWords(list))
}

// envVariables is a set of variables.
type envVariables map[string]string

// set takes a variable from NAME=value. What holds $$ and no = is for the match to fill
// in, and stays as it is.
func (e envVariables) set(item string) bool {
	name, _, ok := strings.Cut(item, "=")
	if name == "" || !ok && !strings.Contains(item, "$$") {
		return false
	}
	e[name] = item
	return true
}

// text is the environment in the second syntax, sorted by the names.
func (e envVariables) text() string {
	list := make([]string, 0, len(e))
	for _, name := range slices.Sorted(maps.Keys(e)) {
		list = append(list, e[name])
	}
	return joinWords(list)
}

// fnEnvV1ToV2 rewrites "A=1;B=2" as "A=1 B=2". A sign in front is the separator to use
// instead of the semicolon.
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

// fnMergeEnvironment joins environments; of two values of a variable the last wins.
// UNDEFINED is left out.
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

// fnUserHome is the default, if that is a string that is not empty. Like upstream, unless
// it is told otherwise, it asks nobody for a user's home: for a user there is none, and
// for what is no user it is ERROR.
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

// fnUserMap would look into a map file of the daemon. There is none: it is the default,
// or UNDEFINED.
func fnUserMap(c builtinCall) Value {
	for i := range 2 {
		if v := c.arg(i); v.kind == Error {
			return v
		}
	}
	return c.arg(3)
}
