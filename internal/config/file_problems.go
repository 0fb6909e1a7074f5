package config

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/suggest"
)

// problemList lists the mistakes in one node file, in order of lines. Its text is ready
// to print.
type problemList struct {
	file     string
	lines    [][]byte
	errors   []fileProblem
	warnings []fileProblem // unusual settings that may be intended
}

type fileProblem struct {
	position hcl.Range
	cause    string
	hint     string // may be empty
}

// maxShown bounds the mistakes that are printed: the first few often cause the others.
const maxShown = 10

func newProblems(file string, text []byte) *problemList {
	return &problemList{file: file, lines: bytes.Split(text, []byte("\n"))}
}

func (p *problemList) addProblem(at hcl.Range, cure, cause string, args ...any) {
	p.errors = append(p.errors, fileProblem{at, fmt.Sprintf(cause, args...), cure})
}

func (p *problemList) addWarning(at hcl.Range, cure, cause string, args ...any) {
	p.warnings = append(p.warnings, fileProblem{at, fmt.Sprintf(cause, args...), cure})
}

// warningTexts returns the warnings, each formatted like a mistake.
func (p *problemList) warningTexts() []string {
	var all []string
	for _, d := range p.warnings[:min(len(p.warnings), maxShown)] {
		var b strings.Builder
		p.showProblem(&b, d)
		all = append(all, b.String())
	}
	return all
}

// addDiagnostics adds the errors of the HCL parser.
func (p *problemList) addDiagnostics(diags hcl.Diagnostics) {
	for _, d := range diags {
		at := hcl.Range{Start: hcl.InitialPos, End: hcl.InitialPos}
		if d.Subject != nil {
			at = *d.Subject
		}
		p.addProblem(at, d.Detail, "%s", strings.ToLower(d.Summary[:1])+d.Summary[1:])
	}
}

// asError returns nil if there are no mistakes.
func (p *problemList) asError() error {
	if len(p.errors) == 0 {
		return nil
	}
	slices.SortStableFunc(p.errors, func(a, b fileProblem) int { return a.position.Start.Byte - b.position.Start.Byte })
	return p
}

func (p *problemList) Unwrap() error { return roost.BadConfig }

func (p *problemList) Error() string {
	var b strings.Builder
	for i, f := range p.errors {
		if i == maxShown {
			fmt.Fprintf(&b, "\n%s: and %d more mistakes", p.file, len(p.errors)-maxShown)
			break
		}
		if i > 0 {
			b.WriteString("\n\n")
		}
		p.showProblem(&b, f)
	}
	return b.String()
}

// showProblem prints one mistake in the form of compilers: position, cause, the line, a
// caret under it, and advice.
func (p *problemList) showProblem(b *strings.Builder, f fileProblem) {
	start, end := f.position.Start, f.position.End
	fmt.Fprintf(b, "%s:%d:%d: %s", p.file, start.Line, start.Column, f.cause)
	if n := start.Line - 1; n >= 0 && n < len(p.lines) {
		line := strings.ToValidUTF8(strings.TrimRight(string(p.lines[n]), "\r"), "?")
		line, column := clipLine(strings.ReplaceAll(line, "\t", " "), start.Column)
		width := 1
		if end.Line == start.Line {
			width = max(end.Column-start.Column, 1)
		}
		width = max(min(width, utf8.RuneCountInString(line)-column+1), 1)
		margin := fmt.Sprintf("%5d", start.Line)
		fmt.Fprintf(b, "\n%s | %s\n%s | %s%s", margin, line, strings.Repeat(" ", len(margin)),
			strings.Repeat(" ", column-1), strings.Repeat("^", width))
	}
	if f.hint != "" {
		fmt.Fprintf(b, "\n      %s", f.hint)
	}
}

// clipLine cuts a long line to a window around column, and returns the column in the
// window.
func clipLine(line string, column int) (string, int) {
	const width = 100
	runes := []rune(line)
	if len(runes) <= width {
		return line, max(column, 1)
	}
	from := min(max(column-width/2, 0), len(runes)-1)
	return string(runes[from:min(from+width, len(runes))]), max(column-from, 1)
}

// suggestWord returns advice that names the known word closest to the given one, or lists
// them all.
func suggestWord(given string, all []string) string {
	var known []string // without duplicates: a name may be a setting and a block
	for _, k := range all {
		if !slices.Contains(known, k) {
			known = append(known, k)
		}
	}
	best, far := "", len(given)/2+1
	for _, k := range known {
		if d := suggest.Distance(strings.ToLower(given), strings.ToLower(k)); d < far {
			best, far = k, d
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return "known here: " + strings.Join(known, ", ")
}
