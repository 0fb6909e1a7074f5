package config

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/spell"
)

// problems are the mistakes in one node file, in the order of its lines. Its text is meant to be printed as it is.
type problems struct {
	file  string
	lines [][]byte
	found []problem
	doubt []problem // what may be meant
}

type problem struct {
	at    hcl.Range
	cause string
	cure  string // may be empty
}

// maxShown bounds how many mistakes are printed: the first few are the cause of the others more often than not.
const maxShown = 10

func newProblems(file string, text []byte) *problems {
	return &problems{file: file, lines: bytes.Split(text, []byte("\n"))}
}

func (p *problems) add(at hcl.Range, cure, cause string, args ...any) {
	p.found = append(p.found, problem{at, fmt.Sprintf(cause, args...), cure})
}

func (p *problems) warn(at hcl.Range, cure, cause string, args ...any) {
	p.doubt = append(p.doubt, problem{at, fmt.Sprintf(cause, args...), cure})
}

// warnings are what may be meant, each shown like a mistake.
func (p *problems) warnings() []string {
	var all []string
	for _, d := range p.doubt[:min(len(p.doubt), maxShown)] {
		var b strings.Builder
		p.show(&b, d)
		all = append(all, b.String())
	}
	return all
}

// addParser takes over what the parser of HCL has to say.
func (p *problems) addParser(diags hcl.Diagnostics) {
	for _, d := range diags {
		at := hcl.Range{Start: hcl.InitialPos, End: hcl.InitialPos}
		if d.Subject != nil {
			at = *d.Subject
		}
		p.add(at, d.Detail, "%s", strings.ToLower(d.Summary[:1])+d.Summary[1:])
	}
}

// err returns nil if nothing was found.
func (p *problems) err() error {
	if len(p.found) == 0 {
		return nil
	}
	slices.SortStableFunc(p.found, func(a, b problem) int { return a.at.Start.Byte - b.at.Start.Byte })
	return p
}

func (p *problems) Unwrap() error { return roost.BadConfig }

func (p *problems) Error() string {
	var b strings.Builder
	for i, f := range p.found {
		if i == maxShown {
			fmt.Fprintf(&b, "\n%s: and %d more mistakes", p.file, len(p.found)-maxShown)
			break
		}
		if i > 0 {
			b.WriteString("\n\n")
		}
		p.show(&b, f)
	}
	return b.String()
}

// show prints one mistake as compilers do: where, what, the line, a caret under it, and how to put it right.
func (p *problems) show(b *strings.Builder, f problem) {
	start, end := f.at.Start, f.at.End
	fmt.Fprintf(b, "%s:%d:%d: %s", p.file, start.Line, start.Column, f.cause)
	if n := start.Line - 1; n >= 0 && n < len(p.lines) {
		line := strings.ToValidUTF8(strings.TrimRight(string(p.lines[n]), "\r"), "?")
		line, column := clip(strings.ReplaceAll(line, "\t", " "), start.Column)
		width := 1
		if end.Line == start.Line {
			width = max(end.Column-start.Column, 1)
		}
		width = max(min(width, utf8.RuneCountInString(line)-column+1), 1)
		margin := fmt.Sprintf("%5d", start.Line)
		fmt.Fprintf(b, "\n%s | %s\n%s | %s%s", margin, line, strings.Repeat(" ", len(margin)), strings.Repeat(" ", column-1), strings.Repeat("^", width))
	}
	if f.cure != "" {
		fmt.Fprintf(b, "\n      %s", f.cure)
	}
}

// clip cuts a line that no screen would hold to a window around column, and says where the column is in it.
func clip(line string, column int) (string, int) {
	const width = 100
	runes := []rune(line)
	if len(runes) <= width {
		return line, max(column, 1)
	}
	from := min(max(column-width/2, 0), len(runes)-1)
	return string(runes[from:min(from+width, len(runes))]), max(column-from, 1)
}

// suggest returns a cure that names the known word nearest to the one given, or lists them all.
func suggest(given string, all []string) string {
	var known []string // each once: what is a setting may be a block, too
	for _, k := range all {
		if !slices.Contains(known, k) {
			known = append(known, k)
		}
	}
	best, far := "", len(given)/2+1
	for _, k := range known {
		if d := spell.Distance(strings.ToLower(given), strings.ToLower(k)); d < far {
			best, far = k, d
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return "known here: " + strings.Join(known, ", ")
}
