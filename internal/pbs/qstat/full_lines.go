package qstat

import (
	"io"
	"strings"
)

// FullPrinter prints everything about objects, one after the other. Nothing is kept of
// what was printed, however many there are. Close ends the text.
type FullPrinter interface {
	Print(o *Object) error
	Close() error
}

// linePrinter is the format of qstat -f: an attribute a line, and an empty line behind
// each object.
type linePrinter struct {
	w        io.Writer
	unfolded bool // nothing is folded
	buffer   []byte
}

// NewLines returns what prints an attribute a line. Lines are folded unless it is wide.
func NewLines(w io.Writer, wide bool) FullPrinter { return &linePrinter{w: w, unfolded: wide} }

func (l *linePrinter) Print(o *Object) error {
	l.buffer = append(append(append(append(l.buffer[:0], o.Kind.heading()...), ": "...), o.Name...), '\n')
	for i := range o.Attributes {
		a := &o.Attributes[i]
		start := len(l.buffer)
		l.buffer = append(append(l.buffer, "    "...), a.Name...)
		if a.Resource != "" {
			l.buffer = append(append(l.buffer, '.'), a.Resource...)
		}
		l.buffer = append(l.buffer, " = "...)
		if l.unfolded {
			l.buffer = appendVisible(l.buffer, a.Text())
		} else {
			l.buffer = foldValue(l.buffer, len(l.buffer)-start, a.Text())
		}
		l.buffer = append(l.buffer, '\n')
	}
	l.buffer = append(l.buffer, '\n')
	_, err := l.w.Write(l.buffer)
	return err
}

func (l *linePrinter) Close() error { return nil }

// The column at which lines of qstat -f end, and the one at which what is folded begins,
// as OpenPBS counts: a tab is 8.
const (
	lastColumn  = 78
	tabColumn   = 8
	afterColumn = 9
)

// foldValue adds a value behind the column of what stands before it. It is broken behind
// commas, and a piece that is too long for a line by itself at its last column, as
// OpenPBS does: what follows stands behind a newline and a tab, which clients take out
// again.
func foldValue(b []byte, column int, value string) []byte {
	for first := true; ; first = false {
		piece, rest, more := strings.Cut(value, ",")
		if len(piece)+column < lastColumn {
			b, column = appendVisible(b, piece), column+len(piece)
		} else {
			if !first {
				b, column = append(b, "\n\t"...), afterColumn
			}
			for i := 0; i < len(piece); {
				n := 1
				for i+n < len(piece) && piece[i+n]&0xc0 == 0x80 {
					n++ // a character is not torn apart
				}
				b = appendVisible(b, piece[i:i+n])
				if i, column = i+n, column+n; column > lastColumn {
					b, column = append(b, "\n\t"...), tabColumn
				}
			}
		}
		if !more {
			return b
		}
		b, value = append(b, ','), rest
	}
}

// delimitedPrinter is the format of qstat -f -F dsv: an object a line.
type delimitedPrinter struct {
	w         io.Writer
	delimiter string
	buffer    []byte
}

// NewDelimited returns what prints an object a line, with that between the attributes.
func NewDelimited(w io.Writer, delimiter string) FullPrinter {
	return &delimitedPrinter{w: w, delimiter: delimiter}
}

func (d *delimitedPrinter) Print(o *Object) error {
	d.buffer = append(append(append(d.buffer[:0], o.Kind.heading()...), ": "...), o.Name...)
	for i := range o.Attributes {
		a := &o.Attributes[i]
		d.buffer = append(append(d.buffer, d.delimiter...), a.Name...)
		if a.Resource != "" {
			d.buffer = append(append(d.buffer, '.'), a.Resource...)
		}
		text := a.Text()
		if d.delimiter != "" {
			text = strings.ReplaceAll(text, d.delimiter, `\`+d.delimiter)
		}
		d.buffer = appendVisible(append(d.buffer, '='), text)
	}
	d.buffer = append(d.buffer, '\n')
	_, err := d.w.Write(d.buffer)
	return err
}

func (d *delimitedPrinter) Close() error { return nil }
