package classad

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// quote appends a string literal or a quoted name of new syntax. UTF-8 stays as it is;
// other bytes are escaped.
func quote(b []byte, s string, mark byte) []byte {
	b = append(b, mark)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == mark || c == '\\':
			b = append(b, '\\', c)
		case c == 0:
			b = append(b, "\ufffd"...) // the language cannot represent a NUL
		case c >= ' ' && c < 0x7f:
			b = append(b, c)
		case c >= utf8.RuneSelf && utf8.FullRuneInString(s[i:]):
			_, size := utf8.DecodeRuneInString(s[i:])
			if size == 1 {
				b = append(b, '\\', '0'+c>>6, '0'+c>>3&7, '0'+c&7)
				continue
			}
			b = append(b, s[i:i+size]...)
			i += size - 1
		case c >= '\a' && c <= '\r':
			b = append(b, '\\', "abtnvfr"[c-'\a'])
		default:
			b = append(b, '\\', '0'+c>>6, '0'+c>>3&7, '0'+c&7)
		}
	}
	return append(b, mark)
}

// quoteOld appends a string literal or a quoted name of old syntax, which escapes only
// the quote. A line break becomes a blank, because a line cannot contain it.
func quoteOld(b []byte, s string, mark byte) []byte {
	b = append(b, mark)
	for i := range len(s) {
		switch c := s[i]; c {
		case mark:
			b = append(b, '\\', c)
		case '\n', '\r':
			b = append(b, ' ')
		case 0:
			b = append(b, "\ufffd"...) // the language cannot represent a NUL
		default:
			b = append(b, c)
		}
	}
	return append(b, mark)
}

// oldString appends a string inside an expression of old syntax. A backslash at its end
// would escape the quote, so the string gets a blank, and substr() removes it.
func oldString(b []byte, s string) []byte {
	if !strings.HasSuffix(s, `\`) {
		return quoteOld(b, s, '"')
	}
	b = append(quoteOld(append(b, "substr("...), s+" ", '"'), ',', '0', ',')
	return append(strconv.AppendInt(b, int64(len(s)), 10), ')')
}
