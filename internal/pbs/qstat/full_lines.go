package qstat

import (
	"io"
	"strings"
)

// FullPrinter prints all attributes of objects, one object after the other. It does not
// buffer objects. Close ends the document.
type FullPrinter interface {
	Print(o *Object) error
	Close() error
}

// linePrinter is the format of qstat -f: a line for each attribute, and an empty line
// after each object.
type linePrinter struct {
	w        io.Writer
	unfolded bool // lines are not folded
	buffer   []byte
}

// NewLines returns a printer with a line for each attribute. Lines are folded unless wide
// is set.
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

// Columns of qstat -f: where lines end, and where folded ones begin. A tab counts 8, as
// in OpenPBS.
const (
	lastColumn  = 78
	tabColumn   = 8
	afterColumn = 9
)

// foldValue appends a value from a column on. It folds after commas, and folds a piece
// that is longer than a line at the last column, as OpenPBS does. A fold is a newline and
// a tab, which clients remove.
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
					n++ // never within a character
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

// delimitedPrinter is the format of qstat -f -F dsv: a line for each object.
type delimitedPrinter struct {
	w         io.Writer
	delimiter string
	buffer    []byte
}

// NewDelimited returns a printer with a line for each object and the given delimiter.
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
