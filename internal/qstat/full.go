package qstat

import (
	"io"
	"strings"
)

// Full prints everything about objects, one after the other. Nothing is kept of what was printed, however many there are. Close ends the text.
type Full interface {
	Print(o *Object) error
	Close() error
}

// lines is the format of qstat -f: an attribute a line, and an empty line behind each object.
type lines struct {
	w    io.Writer
	wide bool // nothing is folded
	b    []byte
}

// NewLines returns what prints an attribute a line. Lines are folded unless it is wide.
func NewLines(w io.Writer, wide bool) Full { return &lines{w: w, wide: wide} }

func (l *lines) Print(o *Object) error {
	l.b = append(append(append(append(l.b[:0], o.Kind.head()...), ": "...), o.Name...), '\n')
	for i := range o.Attributes {
		a := &o.Attributes[i]
		start := len(l.b)
		l.b = append(append(l.b, "    "...), a.Name...)
		if a.Resource != "" {
			l.b = append(append(l.b, '.'), a.Resource...)
		}
		l.b = append(l.b, " = "...)
		if l.wide {
			l.b = visible(l.b, a.Text())
		} else {
			l.b = fold(l.b, len(l.b)-start, a.Text())
		}
		l.b = append(l.b, '\n')
	}
	l.b = append(l.b, '\n')
	_, err := l.w.Write(l.b)
	return err
}

func (l *lines) Close() error { return nil }

// The column at which lines of qstat -f end, and the one at which what is folded begins, as OpenPBS counts: a tab is 8.
const (
	lastColumn  = 78
	tabColumn   = 8
	afterColumn = 9
)

// fold adds a value behind the column of what stands before it. It is broken behind commas, and a piece that is too long for a line by itself at its
// last column, as OpenPBS does: what follows stands behind a newline and a tab, which clients take out again.
func fold(b []byte, column int, value string) []byte {
	for first := true; ; first = false {
		piece, rest, more := strings.Cut(value, ",")
		if len(piece)+column < lastColumn {
			b, column = visible(b, piece), column+len(piece)
		} else {
			if !first {
				b, column = append(b, "\n\t"...), afterColumn
			}
			for i := 0; i < len(piece); {
				n := 1
				for i+n < len(piece) && piece[i+n]&0xc0 == 0x80 {
					n++ // a character is not torn apart
				}
				b = visible(b, piece[i:i+n])
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

// delimited is the format of qstat -f -F dsv: an object a line.
type delimited struct {
	w         io.Writer
	delimiter string
	b         []byte
}

// NewDelimited returns what prints an object a line, with that between the attributes.
func NewDelimited(w io.Writer, delimiter string) Full { return &delimited{w: w, delimiter: delimiter} }

func (d *delimited) Print(o *Object) error {
	d.b = append(append(append(d.b[:0], o.Kind.head()...), ": "...), o.Name...)
	for i := range o.Attributes {
		a := &o.Attributes[i]
		d.b = append(append(d.b, d.delimiter...), a.Name...)
		if a.Resource != "" {
			d.b = append(append(d.b, '.'), a.Resource...)
		}
		text := a.Text()
		if d.delimiter != "" {
			text = strings.ReplaceAll(text, d.delimiter, `\`+d.delimiter)
		}
		d.b = visible(append(d.b, '='), text)
	}
	d.b = append(d.b, '\n')
	_, err := d.w.Write(d.b)
	return err
}

func (d *delimited) Close() error { return nil }
