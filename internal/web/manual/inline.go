package manual

import (
	"fmt"
	"html"
	"regexp"
	"strings"

	"github.com/roost-batch/roost"
)

// span is a piece of text in one font: 'R' roman, 'B' bold or 'I' italic.
type span struct {
	font byte
	text string
}

// parseSpans splits a line at its font escapes, and decodes all other escapes. It begins
// in the given font.
func parseSpans(line string, font byte) (spans []span, err error) {
	var b strings.Builder
	first := font
	flush := func() {
		if b.Len() > 0 {
			spans = append(spans, span{font, b.String()})
			b.Reset()
		}
	}
	for i := 0; i < len(line); i++ {
		if line[i] != '\\' {
			b.WriteByte(line[i])
			continue
		}
		i++
		if i == len(line) {
			return nil, fmt.Errorf("%w: a backslash ends the line %q", roost.Invalid, line)
		}
		switch c := line[i]; c {
		case 'f':
			if i++; i == len(line) || !strings.ContainsRune("BIRP", rune(line[i])) {
				return nil, fmt.Errorf("%w: unknown font in %q", roost.Invalid, line)
			}
			flush()
			if font = line[i]; font == 'P' {
				font = first
			}
		case '(':
			if i+2 >= len(line) {
				return nil, fmt.Errorf("%w: a character is cut off in %q", roost.Invalid, line)
			}
			r, ok := specialCharacters()[line[i+1:i+3]]
			if !ok {
				return nil, fmt.Errorf("%w: unknown character \\(%s", roost.Invalid, line[i+1:i+3])
			}
			b.WriteRune(r)
			i += 2
		case '"':
			flush()
			return spans, nil // a comment
		default:
			text, ok := plainEscapes()[c]
			if !ok {
				return nil, fmt.Errorf("%w: unknown escape \\%c in %q", roost.Invalid, c, line)
			}
			b.WriteString(text)
		}
	}
	flush()
	return spans, nil
}

// plainEscapes are the escapes of one letter, with what they print. A backslash before
// the hyphen, the percent sign and the rest only concerns typesetting.
func plainEscapes() map[byte]string {
	return map[byte]string{'-': "-", '&': "", 'e': `\`, ' ': "\u00a0", '~': "\u00a0", '%': "", '|': "", '^': "",
		'\'': "'", '`': "`", '.': "."}
}

// specialCharacters are the characters that groff_char(7) names with two letters.
func specialCharacters() map[string]rune {
	return map[string]rune{"bu": '•', "aq": '\'', "dq": '"', "ha": '^', "ti": '~', "rs": '\\', "sc": '§', ">=": '≥',
		"<=": '≤', "em": '—', "en": '–', "*m": 'μ', "*t": 'τ', "mu": '×', "->": '→', "co": '©'}
}

// fontArguments alternates the fonts of a macro such as BR over its arguments.
func fontArguments(macro string, args []string) (spans []span, err error) {
	for i, a := range args {
		s, err := parseSpans(a, macro[i%len(macro)])
		if err != nil {
			return nil, err
		}
		spans = append(spans, s...)
	}
	return spans, nil
}

// joinSpans puts spaces between the arguments of the macros B and I.
func joinSpans(font byte, args []string) ([]span, error) {
	return parseSpans(strings.Join(args, " "), font)
}

// pageReference is a page as other pages name it: qsub(1).
var pageReference = regexp.MustCompile(`([A-Za-z_][\w-]*)\(([1578])\)`)

// writeSpans writes spans as HTML. What names a page of this manual links to it.
func (m *Manual) writeSpans(b *strings.Builder, spans []span) {
	for i := 0; i < len(spans); i++ {
		s := spans[i]
		if i+1 < len(spans) && len(spans[i+1].text) >= 3 && spans[i+1].text[0] == '(' && spans[i+1].text[2] == ')' {
			if page := s.text + "." + spans[i+1].text[1:2]; m.pages[page] != nil {
				fmt.Fprintf(b, `<a href="%s">%s%s</a>`, page, html.EscapeString(s.text), spans[i+1].text[:3])
				spans[i+1].text = spans[i+1].text[3:]
				continue
			}
		}
		text := m.linkReferences(s.text)
		switch s.font {
		case 'B':
			text = "<b>" + text + "</b>"
		case 'I':
			text = "<i>" + text + "</i>"
		}
		b.WriteString(text)
	}
}

// linkReferences escapes a text for HTML and links the pages that it names.
func (m *Manual) linkReferences(text string) string {
	var b strings.Builder
	last := 0
	for _, at := range pageReference.FindAllStringSubmatchIndex(text, -1) {
		page := text[at[2]:at[3]] + "." + text[at[4]:at[5]]
		if m.pages[page] == nil {
			continue
		}
		b.WriteString(html.EscapeString(text[last:at[0]]))
		fmt.Fprintf(&b, `<a href="%s">%s</a>`, page, html.EscapeString(text[at[0]:at[1]]))
		last = at[1]
	}
	b.WriteString(html.EscapeString(text[last:]))
	return b.String()
}

// plainText is the text of spans without their fonts.
func plainText(spans []span) string {
	var b strings.Builder
	for _, s := range spans {
		b.WriteString(s.text)
	}
	return b.String()
}

// splitArguments splits the arguments of a macro. Those in quotation marks may have
// blanks, and two such marks inside are one.
func splitArguments(line string) (args []string) {
	for {
		line = strings.TrimLeft(line, " \t")
		switch {
		case line == "" || strings.HasPrefix(line, `\"`):
			return args
		case line[0] == '"':
			var b strings.Builder
			i := 1
			for ; i < len(line); i++ {
				if line[i] == '"' {
					if i+1 == len(line) || line[i+1] != '"' {
						break
					}
					i++
				}
				b.WriteByte(line[i])
			}
			args, line = append(args, b.String()), line[min(i+1, len(line)):]
		default:
			i := 0
			for i < len(line) && line[i] != ' ' && line[i] != '\t' {
				if line[i] == '\\' && i+1 < len(line) {
					i++
				}
				i++
			}
			args, line = append(args, line[:i]), line[i:]
		}
	}
}
