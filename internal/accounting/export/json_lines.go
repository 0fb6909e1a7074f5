package export

import (
	"bufio"
	"encoding/json"
	"io"
	"iter"
	"strings"
	"unicode/utf8"
)

// WriteJSONLines writes each record as a JSON object on a line of its own. It returns the
// number of records. A value that is not known is left out.
func (t *Table[T]) WriteJSONLines(w io.Writer, records iter.Seq2[T, error]) (n int64, err error) {
	out := bufio.NewWriterSize(w, 64<<10)
	var line []byte
	for record, err := range records {
		if err != nil {
			return n, err
		}
		line = append(line[:0], `{"v":1`...)
		for i := range t.Columns {
			c := t.Columns[i].value(&record)
			if c.kind == emptyCell {
				continue
			}
			line = append(append(append(line, `,"`...), t.Columns[i].Name...), `":`...)
			switch c.kind {
			case textCell:
				if line, err = appendJSONText(line, c.text); err != nil {
					return n, err
				}
			case timeCell:
				line = append(c.appendPlain(append(line, '"')), '"')
			default:
				line = c.appendPlain(line)
			}
		}
		if _, err := out.Write(append(line, "}\n"...)); err != nil {
			return n, err
		}
		n++
	}
	return n, out.Flush()
}

// appendJSONText appends a text as a JSON string, as encoding/json does. Most texts need
// no escape and are copied. Bytes that are not UTF-8 become U+FFFD.
func appendJSONText(b []byte, text string) ([]byte, error) {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, err := json.Marshal(strings.ToValidUTF8(text, "\ufffd"))
			return append(b, quoted...), err
		}
	}
	return append(append(append(b, '"'), text...), '"'), nil
}
