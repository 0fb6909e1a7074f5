package classad

import "strings"

// ProjectAd returns the text of an ad with only those attributes of the text of an ad
// that are wanted, without reading the values: of a large ad of which few are wanted it
// is many times as fast as parsing it. Names are compared without regard to case. What it
// cannot take apart, it parses; of a text that is no ad, ok is false.
func ProjectAd(text string, wanted func(name string) bool) (picked string, ok bool) {
	var b strings.Builder
	b.WriteByte('[')
	rest, open := strings.CutPrefix(strings.TrimSpace(text), "[")
	for first := true; open; {
		rest = strings.TrimLeft(rest, " \t\r\n;")
		if rest == "]" {
			b.WriteByte(']')
			return b.String(), true
		}
		name, value, found := strings.Cut(rest, "=")
		name = strings.TrimSpace(name)
		end := valueEnd(value)
		if !found || end < 0 || strings.Trim(name,
			"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" {
			break
		}
		if wanted(name) {
			if !first {
				b.WriteString("; ")
			}
			first = false
			b.WriteString(name)
			b.WriteString(" = ")
			b.WriteString(strings.TrimSpace(value[:end]))
		}
		rest = value[end:]
	}
	ad, err := Parse(text)
	if err != nil {
		return "", false
	}
	for _, name := range ad.Names() {
		if !wanted(name) {
			ad.Delete(name)
		}
	}
	return ad.String(), true
}

// valueEnd is where the value of an attribute ends: before a semicolon, or the bracket
// that closes the ad. It is -1 for what has to be parsed.
func valueEnd(text string) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"', '\'':
			n := quoteEnd(text[i+1:], text[i])
			if n < 0 {
				return -1
			}
			i += 1 + n
		case '[', '{', '(':
			depth++
		case ']', '}', ')':
			if depth == 0 {
				return i
			}
			depth--
		case ';':
			if depth == 0 {
				return i
			}
		case '/':
			if i+1 < len(text) && (text[i+1] == '/' || text[i+1] == '*') {
				return -1 // a comment
			}
		}
	}
	return -1
}

// quoteEnd is where the quote stands that ends a text; -1 if none does. A backslash takes
// the meaning from what follows. Where nothing comes for a while the rest is searched and
// not looked at one by one, which takes a fifth of the time in an environment, and that
// is most of the ads of jobs.
func quoteEnd(text string, quote byte) int {
	const while = 24
	for at, next := 0, -1; at <= len(text); {
		i := at
		for ; i < len(text) && i < at+while && text[i] != quote && text[i] != '\\'; i++ {
		}
		switch {
		case i == len(text):
			return -1
		case text[i] == quote:
			return i
		case text[i] == '\\':
			at = i + 2
			continue
		}
		if next < i {
			n := strings.IndexByte(text[i:], quote)
			if n < 0 {
				return -1
			}
			next = i + n
		}
		n := strings.IndexByte(text[i:next], '\\')
		if n < 0 {
			return next
		}
		at = i + n + 2
	}
	return -1
}
