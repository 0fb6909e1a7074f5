package sacct

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// Printer prints rows. Close writes what is left, and must be called. A job without
// attempts is a record without an attempt number.
type Printer interface {
	Print(r *accounting.AttemptRecord) error
	Close() error
}

// rowPrinter is what the printers of lines share.
type rowPrinter struct {
	out     *bufio.Writer
	columns []Column
	writer  rowWriter
	line    []byte
}

func newRowPrinter(w io.Writer, columns []Column, o Options, special string) rowPrinter {
	return rowPrinter{
		out: bufio.NewWriterSize(w, 64<<10), columns: columns,
		writer: newRowWriter(o, special),
	}
}

// SetPart says which part of its job the next row is about.
func (p *rowPrinter) SetPart(part Part) { p.writer.part = part }

// Close writes what is left.
func (p *rowPrinter) Close() error { return p.out.Flush() }

// TablePrinter prints a table with columns of a fixed width. A value that is too long is
// cut, with + in place of its last character.
type TablePrinter struct{ rowPrinter }

// NewTable returns a printer of a table, with its head if wanted.
func NewTable(w io.Writer, columns []Column, o Options, head bool) *TablePrinter {
	p := &TablePrinter{newRowPrinter(w, columns, o, "")}
	if head {
		for _, c := range columns {
			p.writeCell([]byte(c.Name), c.Width, c.Left)
		}
		p.out.WriteByte('\n')
		for _, c := range columns {
			p.writeCell([]byte(strings.Repeat("-", c.Width)), c.Width, false)
		}
		p.out.WriteByte('\n')
	}
	return p
}

// Print prints a row.
func (p *TablePrinter) Print(r *accounting.AttemptRecord) error {
	for i := range p.columns {
		c := &p.columns[i]
		p.line = p.writer.appendField(p.line[:0], &c.Field, r)
		p.writeCell(p.line, c.Width, c.Left)
	}
	return p.out.WriteByte('\n')
}

func (p *TablePrinter) writeCell(text []byte, width int, left bool) {
	n := utf8.RuneCount(text)
	if n > width {
		end := 0
		for range width - 1 {
			_, size := utf8.DecodeRune(text[end:])
			end += size
		}
		text, n = append(text[:end], '+'), width
	}
	if left {
		p.out.Write(text)
	}
	for range width - n {
		p.out.WriteByte(' ')
	}
	if !left {
		p.out.Write(text)
	}
	p.out.WriteByte(' ')
}

// LinePrinter prints values with a delimiter between them, as sacct -P and sacct -p do.
// In all values but the last one the delimiter is escaped.
type LinePrinter struct {
	rowPrinter
	delimiter  string
	trailing   bool      // a delimiter ends the line
	lastWriter rowWriter // of the last value
}

// NewLines returns a printer of lines, with a line of names if wanted.
func NewLines(w io.Writer, columns []Column, o Options, head bool, delimiter string, trailing bool) (*LinePrinter,
	error,
) {
	if delimiter == "" || len(delimiter) > 16 || strings.IndexFunc(delimiter, func(r rune) bool {
		return r >= utf8.RuneSelf || r == '\n' || r >= '0' && r <= '9'
	}) >= 0 {
		return nil, fmt.Errorf("delimiter: %w: %.40q: it has 1 to 16 ASCII characters, no digits and no line ends",
			roost.Invalid, delimiter)
	}
	p := &LinePrinter{newRowPrinter(w, columns, o, delimiter), delimiter, trailing, newRowWriter(o, "")}
	if trailing {
		p.lastWriter = p.writer
	}
	if head {
		for i, c := range columns {
			p.line = append(p.line, c.Name...)
			p.endCell(i)
		}
		p.out.Write(p.line)
	}
	return p, nil
}

// SetPart says which part of its job the next row is about.
func (p *LinePrinter) SetPart(part Part) {
	p.rowPrinter.SetPart(part)
	p.lastWriter.part = part
}

// endCell ends the value of column i.
func (p *LinePrinter) endCell(i int) {
	if i+1 < len(p.columns) || p.trailing {
		p.line = append(p.line, p.delimiter...)
	}
	if i+1 == len(p.columns) {
		p.line = append(p.line, '\n')
	}
}

// Print prints a row.
func (p *LinePrinter) Print(r *accounting.AttemptRecord) error {
	p.line = p.line[:0]
	writer := &p.writer
	for i := range p.columns {
		if i+1 == len(p.columns) {
			writer = &p.lastWriter
		}
		p.line = writer.appendField(p.line, &p.columns[i].Field, r)
		p.endCell(i)
	}
	_, err := p.out.Write(p.line)
	return err
}
