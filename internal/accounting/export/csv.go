package export

import (
	"bufio"
	"io"
	"iter"
	"strings"

	"github.com/roost-batch/roost/internal/accounting/linetext"
)

// WriteCSV writes records as CSV of RFC 4180, with a head. It returns the number of
// records. A text that a spreadsheet would take for a formula gets an apostrophe at its
// begin, and so does one that begins with an apostrophe.
//
// encoding/csv is not used, since it changes line ends within values.
func (t *Table[T]) WriteCSV(w io.Writer, records iter.Seq2[T, error]) (n int64, err error) {
	out := newCSVWriter(t, w)
	for record, err := range records {
		if err == nil {
			err = out.write(&record)
		}
		if err != nil {
			return n, err
		}
		n++
	}
	return n, out.Flush()
}

// csvWriter writes records of a table as CSV.
type csvWriter[T any] struct {
	*bufio.Writer
	table *Table[T]
	line  []byte
}

// newCSVWriter writes the head of a table.
func newCSVWriter[T any](t *Table[T], w io.Writer) *csvWriter[T] {
	out := &csvWriter[T]{Writer: bufio.NewWriterSize(w, 64<<10), table: t}
	for i, c := range t.Columns {
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString(c.Name)
	}
	out.WriteString("\r\n")
	return out
}

func (w *csvWriter[T]) write(record *T) error {
	line := w.line[:0]
	for i := range w.table.Columns {
		if i > 0 {
			line = append(line, ',')
		}
		if c := w.table.Columns[i].value(record); c.kind == textCell {
			line = appendCSVText(line, c.text)
		} else {
			line = c.appendPlain(line)
		}
	}
	w.line = append(line, "\r\n"...)
	_, err := w.Write(w.line)
	return err
}

// appendCSVText appends a text, quoted if it must be. Bytes that are not UTF-8 become
// U+FFFD.
func appendCSVText(b []byte, text string) []byte {
	text = strings.ToValidUTF8(text, "\ufffd")
	quoted := linetext.QuoteFormula(text)
	if quoted == text && !strings.ContainsAny(text, ",\"\r\n\x00") {
		return append(b, text...)
	}
	b = append(b, '"')
	for i := range len(quoted) {
		if quoted[i] == '"' {
			b = append(b, '"')
		}
		b = append(b, quoted[i])
	}
	return append(b, '"')
}
