package dag

import (
	"bufio"
	"io"
)

// TranslatedFile is a file of another language that [FileReader.Open] returns in the form
// of a DAG file. Messages about it show the places and the lines of the original.
type TranslatedFile interface {
	io.ReadCloser
	// Origin returns the place that a line of the DAG file was made from.
	Origin(line int) LineOrigin
	// SourceLine returns a line of the original.
	SourceLine(line int) string
	// Mistakes returns what is wrong with the original. The DAG file then still defines
	// all nodes.
	Mistakes() []Diagnostic
}

// LineOrigin is a place in the original of a TranslatedFile. Numbers begin with 1.
type LineOrigin struct{ Line, Column, Width int }

// addMistakes adds the diagnostics of a translation.
func (p *flowParser) addMistakes(number uint16, t TranslatedFile) {
	for _, d := range t.Mistakes() {
		if d.Line > 0 && d.Source == "" {
			d.Source = t.SourceLine(d.Line)
		}
		d.Source = d.Source[:min(len(d.Source), maxSource)]
		p.diags.add(int(number), d)
	}
}

// lineNumber is the line of the user's file of a line that was read.
func (p *fileParser) lineNumber(line int) int {
	if p.translated != nil {
		return p.translated.Origin(line).Line
	}
	return line
}

// locate sets the place of a diagnostic about the last word.
func (p *fileParser) locate(d *Diagnostic) {
	if t := p.translated; t != nil {
		at := t.Origin(p.readLine)
		d.Line, d.Column, d.Width, d.Source = at.Line, at.Column, max(1, at.Width), t.SourceLine(at.Line)
		d.Source = d.Source[:min(len(d.Source), maxSource)]
		return
	}
	from := max(0, p.lex.start-maxSource/2)
	to := min(len(p.line), from+maxSource)
	d.Line, d.Column = p.lineNo, p.lex.start-from+1
	d.Width, d.Source = max(1, p.lex.end-p.lex.start), string(p.line[from:to])
}

// sourceLines returns the lines of a file one after the other.
func sourceLines(in io.Reader) (next func() ([]byte, error), number func() int) {
	if t, ok := in.(TranslatedFile); ok {
		line := 0
		return func() ([]byte, error) { line++; return []byte(t.SourceLine(line)), nil }, func() int { return line }
	}
	lines := &lineReader{in: bufio.NewReaderSize(in, nestedBuffer)}
	return lines.physical, func() int { return lines.line }
}
