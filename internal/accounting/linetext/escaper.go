// Package linetext writes names into formats of plain text lines, such as PBS accounting
// logs and the output of sacct, so that no name can be taken for a separator or a line.
//
// What a format cannot hold becomes a percent sign and two hexadecimal digits for each
// byte, as in URLs. So every name can be read back, with url.PathUnescape.
package linetext

import (
	"unicode"
	"unicode/utf8"
)

// Escaper escapes texts for one format. It always escapes percent signs, bytes that are
// not UTF-8, and characters that do not print, among them all spaces but the ASCII one.
type Escaper struct {
	special [utf8.RuneSelf]bool
}

// NewEscaper returns an Escaper that also escapes the ASCII characters in special.
func NewEscaper(special string) *Escaper {
	e := &Escaper{}
	for c := range e.special {
		e.special[c] = c < ' ' || c == 0x7f || c == '%'
	}
	for i := range len(special) {
		e.special[special[i]] = true
	}
	return e
}

// Append appends text, cut to most bytes of output. The cut splits no character and no
// escape.
func (e *Escaper) Append(b []byte, text string, most int) []byte {
	limit := len(b) + most
	plain := 0 // text[plain:i] needs no escape
	for i := 0; i < len(text); {
		size, escaped := 1, false
		if c := text[i]; c < utf8.RuneSelf {
			escaped = e.special[c]
		} else {
			var r rune
			r, size = utf8.DecodeRuneInString(text[i:])
			escaped = r == utf8.RuneError && size == 1 || !unicode.IsPrint(r)
		}
		width := size
		if escaped {
			b, plain = append(b, text[plain:i]...), i+size
			width = 3 * size
		}
		if len(b)+i-min(plain, i)+width > limit {
			if escaped {
				return b
			}
			return append(b, text[plain:i]...)
		}
		if escaped {
			for _, c := range []byte(text[i : i+size]) {
				b = append(b, '%', hexDigits[c>>4], hexDigits[c&15])
			}
		}
		i += size
	}
	return append(b, text[plain:]...)
}

const hexDigits = "0123456789ABCDEF"
