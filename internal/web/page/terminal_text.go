package page

import (
	"fmt"
	"html/template"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/internal/web/view"
)

var colourSequence = regexp.MustCompile(view.ColourSequence)

// TerminalText shows output of a program as HTML, with its colours. The text is what
// view.SafeText returns: there are no other sequences in it.
func TerminalText(text string) template.HTML {
	var b strings.Builder
	styles := map[int]bool{}
	last := 0
	write := func(part string) {
		if part == "" {
			return
		}
		part = template.HTMLEscapeString(strings.ReplaceAll(part, "\x1b", "␛"))
		if len(styles) == 0 {
			b.WriteString(part)
			return
		}
		b.WriteString(`<span class="`)
		for i, n := range slices.Sorted(maps.Keys(styles)) {
			if i > 0 {
				b.WriteByte(' ')
			}
			fmt.Fprintf(&b, "ansi-%d", n)
		}
		b.WriteString(`">` + part + `</span>`)
	}
	for _, at := range colourSequence.FindAllStringIndex(text, -1) {
		write(text[last:at[0]])
		applyColours(styles, text[at[0]+2:at[1]-1])
		last = at[1]
	}
	write(text[last:])
	return template.HTML(b.String())
}

// applyColours changes styles as the numbers of a sequence say. What a page has no style
// for is skipped.
func applyColours(styles map[int]bool, codes string) {
	for code := range strings.SplitSeq(codes, ";") {
		n, _ := strconv.Atoi(code) // an empty one means 0
		switch {
		case n == 0:
			clear(styles)
		case n == 1 || n == 2:
			styles[n] = true
		case n == 22:
			delete(styles, 1)
			delete(styles, 2)
		case isColour(n) || n == 39:
			maps.DeleteFunc(styles, func(s int, _ bool) bool { return isColour(s) })
			if n != 39 {
				styles[n] = true
			}
		}
	}
}

// isColour reports whether a number of a sequence is a colour of the text.
func isColour(n int) bool { return n >= 30 && n <= 37 || n >= 90 && n <= 97 }
