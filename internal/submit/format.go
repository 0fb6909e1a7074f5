package submit

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
)

// Format formats diagnostics for people. Each has its place, the line of src, carets
// under the columns, the cause and the remedy. Lines are folded at width (0: not at all).
// The form is Terraform's:
//
//	Error: there is no setting "memmory"
//
//	  on sweep.hcl line 4, in job "train":
//	   4:   memmory = "4GiB"
//	        ^^^^^^^
//	A job has no setting of that name. Did you mean "memory"?
func Format(diags hcl.Diagnostics, src []byte, width int, color bool) string {
	var out strings.Builder
	for i, d := range diags {
		if i > 0 {
			out.WriteByte('\n')
		}
		formatDiagnostic(&out, d, src, width, textColorizer(color))
	}
	return out.String()
}

// textColorizer wraps text in an SGR sequence, or not.
type textColorizer bool

func (p textColorizer) wrap(code, text string) string {
	if !p {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func formatDiagnostic(out *strings.Builder, d *hcl.Diagnostic, src []byte, width int, p textColorizer) {
	severity := p.wrap("1;31", "Error: ")
	if d.Severity == hcl.DiagWarning {
		severity = p.wrap("1;33", "Warning: ")
	}
	out.WriteString(severity + p.wrap("1", printableText(d.Summary)) + "\n\n")
	if d.Subject != nil {
		in := ""
		if n, ok := d.Extra.(*diagnosticExtra); ok && n.job != "" {
			in = fmt.Sprintf(", in job %q", n.job)
		}
		fmt.Fprintf(out, "  on %s line %d%s:\n", printableText(d.Subject.Filename), d.Subject.Start.Line, in)
		formatLine(out, d.Subject, src, width, p)
	}
	for _, line := range strings.Split(d.Detail, "\n") {
		for _, part := range foldLine(printableText(line), width) {
			out.WriteString(part + "\n")
		}
	}
}

// formatLine prints the source line of a range, with carets under it.
func formatLine(out *strings.Builder, at *hcl.Range, src []byte, width int, p textColorizer) {
	start := min(at.Start.Byte, len(src))
	begin := bytes.LastIndexByte(src[:start], '\n') + 1
	text, _, _ := bytes.Cut(src[begin:], []byte{'\n'})
	line := strings.TrimSuffix(string(text), "\r")
	from := min(start-begin, len(line))
	to := min(max(at.End.Byte-begin, from), len(line))
	number := fmt.Sprintf("%4d: ", at.Start.Line)
	room := max(width-len(number), 40)
	if width == 0 {
		room = 1 << 20
	}
	room = min(room, 400)
	lead := printableText(line[:from])
	marked := printableText(line[from:to])
	rest := printableText(line[to:])
	if cellWidth(lead) > room/2 { // a part of a long line
		runes := []rune(lead)
		lead = "…" + string(runes[len(runes)-min(len(runes), room/3):])
	}
	marked = clipText(marked, max(room-cellWidth(lead), 10))
	if rest = clipText(rest, max(room-cellWidth(lead)-cellWidth(marked), 1)); strings.HasSuffix(marked, "…") {
		rest = ""
	}
	out.WriteString(number + lead + p.wrap("4", marked) + rest + "\n")
	carets := max(cellWidth(marked), 1)
	out.WriteString(strings.Repeat(" ", len(number)+cellWidth(lead)) +
		p.wrap("1;31", strings.Repeat("^", carets)) + "\n")
}

// clipText shortens s to a number of cells; a cut shows as "…".
func clipText(s string, room int) string {
	if cellWidth(s) <= room {
		return s
	}
	n := 0
	for i, r := range s {
		if n += runeWidth(r); n >= room {
			return s[:i] + "…"
		}
	}
	return s
}

// printableText replaces characters that move the cursor: a job file may contain escape
// sequences from other people.
func printableText(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x200b && r <= 0x200f || r >= 0x202a && r <= 0x202e ||
			r >= 0x2066 && r <= 0x2069 || r == utf8.RuneError:
			return '\uFFFD'
		}
		return r
	}, s)
}

// cellWidth returns how many columns of a terminal s takes.
func cellWidth(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

// runeWidth returns the width of a rune, roughly by Unicode Annex 11. CJK and emoji take
// two cells, combining marks none.
func runeWidth(r rune) int {
	switch {
	case r >= 0x300 && r <= 0x36f || r == 0xfe0f:
		return 0
	case r >= 0x1100 && r <= 0x115f || r >= 0x2e80 && r <= 0xa4cf || r >= 0xac00 && r <= 0xd7a3 ||
		r >= 0xf900 && r <= 0xfaff ||
		r >= 0xfe30 && r <= 0xfe6f || r >= 0xff00 && r <= 0xff60 || r >= 0x1f300 && r <= 0x1faff ||
		r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}

// foldLine breaks a line at blanks into parts of at most width cells, where possible.
// Indented lines are not folded.
func foldLine(line string, width int) []string {
	if width <= 0 || cellWidth(line) <= width || strings.HasPrefix(line, " ") {
		return []string{line}
	}
	var parts []string
	current := ""
	for _, word := range strings.Fields(line) {
		if current != "" && cellWidth(current)+1+cellWidth(word) > width {
			parts, current = append(parts, current), word
			continue
		}
		if current != "" {
			current += " "
		}
		current += word
	}
	return append(parts, current)
}
