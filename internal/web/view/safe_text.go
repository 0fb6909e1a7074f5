package view

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// ColourSequence is an escape sequence that sets colours and the like (ECMA-48, SGR). All
// others could change what a reader takes for the page: titles, links, the clipboard.
const ColourSequence = `\x1b\[[0-9;]{0,32}m`

var leadingColour = regexp.MustCompile("^" + ColourSequence)

// SafeText returns the output of a program with only the escape sequences of colours.
// Other control characters are shown as text, and bytes that are no UTF-8 as U+FFFD.
func SafeText(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		if colour := leadingColour.FindString(text[i:]); colour != "" {
			b.WriteString(colour)
			i += len(colour)
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		i += n
		switch {
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case r == '\r':
			if i < len(text) && text[i] == '\n' {
				continue
			}
			b.WriteByte('\n') // a progress line that is written over
		case r < ' ':
			b.WriteRune('\u2400' + r) // its picture
		case r == 0x7f:
			b.WriteRune('\u2421')
		case r >= 0x80 && r < 0xa0, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			fmt.Fprintf(&b, "\\u%04x", r) // C1 controls, and those that change the direction of text
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
