package classad

import "strings"

// environmentBuiltin are the functions of command lines and environments in HTCondor's second syntax: words separated by blanks, where
// single quotes keep blanks together and stand for one quote when doubled.
func environmentBuiltin(name string) builtin {
	switch name {
	case "argstolist":
		return builtin{1, 1, fnArgsToList}
	case "listtoargs":
		return builtin{1, 1, fnListToArgs}
	case "envv1tov2":
		return builtin{1, 1, fnEnvV1ToV2}
	case "mergeenvironment":
		return builtin{0, many, fnMergeEnvironment}
	case "userhome":
		return builtin{1, 2, fnUserHome}
	case "usermap":
		return builtin{2, 4, fnUserMap}
	}
	return builtin{}
}

// words cuts a text into words; ok is false where a quote is not closed.
func words(s string) (list []string, ok bool) {
	var word []byte
	inWord, quoted := false, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\'' && quoted && i+1 < len(s) && s[i+1] == '\'':
			word = append(word, c)
			i++
		case c == '\'':
			inWord, quoted = true, !quoted
		case !quoted && (c == ' ' || c >= '\t' && c <= '\r'):
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

// joinWords undoes words.
func joinWords(list []string) string {
	var b strings.Builder
	for i, word := range list {
		if i > 0 {
			b.WriteByte(' ')
		}
		if word != "" && !strings.ContainsAny(word, " \t\n\v\f\r'") {
			b.WriteString(word)
			continue
		}
		b.WriteString("'" + strings.ReplaceAll(word, "'", "''") + "'")
	}
	return b.String()
}

func fnArgsToList(c call) Value {
	v := c.arg(0)
	if v.kind == Undefined {
		return v
	}
	list, ok := words(v.str)
	if v.kind != String || !ok || !c.ev.spend(len(v.str)) {
		return ErrorValue()
	}
	return c.list(list...)
}

func fnListToArgs(c call) Value {
	v := c.arg(0)
	if v.kind == Undefined {
		return v
	}
	if v.kind != List {
		return ErrorValue()
	}
	var list []string
	ok := true
	c.elements(v, func(elem Value) bool {
		ok = elem.kind == String && c.ev.spend(2*len(elem.str)+3)
		list = append(list, elem.str)
		return ok
	})
	if !ok {
		return ErrorValue()
	}
	return StringValue(joinWords(list))
}

// fnEnvV1ToV2 rewrites "A=1;B=2" as "A=1 B=2".
func fnEnvV1ToV2(c call) Value {
	v := c.arg(0)
	if v.kind == Undefined {
		return v
	}
	if v.kind != String || !c.ev.spend(len(v.str)) {
		return ErrorValue()
	}
	var list []string
	for _, item := range fields(v.str, ";") {
		if !strings.Contains(item, "=") {
			return ErrorValue()
		}
		list = append(list, item)
	}
	return c.text(joinWords(list))
}

// fnMergeEnvironment joins environments; of two values of a variable the last wins. UNDEFINED is left out.
func fnMergeEnvironment(c call) Value {
	var list []string
	place := map[string]int{}
	for i := range c.args {
		v := c.arg(i)
		if v.kind == Undefined {
			continue
		}
		items, ok := words(v.str)
		if v.kind != String || !ok || !c.ev.spend(2*len(v.str)) {
			return ErrorValue()
		}
		for _, item := range items {
			name, _, ok := strings.Cut(item, "=")
			if !ok {
				return ErrorValue()
			}
			if at, known := place[name]; known {
				list[at] = item
				continue
			}
			place[name] = len(list)
			list = append(list, item)
		}
	}
	return c.text(joinWords(list))
}

// fnUserHome would ask the machine for a user's home. This library asks nobody: it is the default, or UNDEFINED.
func fnUserHome(c call) Value {
	if v := c.arg(0); v.kind != String {
		if v.kind == Undefined && len(c.args) == 2 {
			return c.arg(1)
		}
		return ErrorValue()
	}
	return c.arg(1)
}

// fnUserMap would look into a map file of the daemon. There is none: it is the default, or UNDEFINED.
func fnUserMap(c call) Value {
	if c.arg(0).kind == Error || c.arg(1).kind == Error {
		return ErrorValue()
	}
	return c.arg(3)
}
