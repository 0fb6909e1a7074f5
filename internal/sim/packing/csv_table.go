package packing

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/suggest"
)

// csvTable reads rows by the names of their columns. It stores the first error.
type csvTable struct {
	file     string
	csv      *csv.Reader
	lastByte lastByteReader
	columns  map[string]int // column number by name
	row      []string
	rows     int
	names    map[string]int // line number by unique word
	err      error
}

// lastByteReader records the last byte that was read.
type lastByteReader struct {
	io.Reader
	last byte
}

func (t *lastByteReader) Read(p []byte) (n int, err error) {
	if n, err = t.Reader.Read(p); n > 0 {
		t.last = p[n-1]
	}
	return n, err
}

func newTable(file string, r io.Reader, must, may []string) (*csvTable, error) {
	t := &csvTable{file: file, lastByte: lastByteReader{Reader: r}, columns: map[string]int{}, names: map[string]int{}}
	t.csv = csv.NewReader(&t.lastByte)
	t.csv.ReuseRecord = true
	head, err := t.csv.Read()
	switch {
	case err == io.EOF:
		return nil, fmt.Errorf("%s: line 1: %w: the file is empty; the first line names the columns %s", file,
			roost.Invalid, strings.Join(must, ", "))
	case err != nil:
		return nil, t.csvError(err)
	}
	return t, t.readHeader(head, must, may)
}

// readHeader reads the header and finds the columns.
func (t *csvTable) readHeader(head, must, may []string) error {
	known := slices.Concat(must, may)
	for i, name := range head {
		if i == 0 {
			name = strings.TrimPrefix(name, "\ufeff")
		}
		_, twice := t.columns[name]
		t.columns[name] = i
		near := suggest.Nearest(name, known)
		switch {
		case twice:
			t.failColumn(name, "there are two such columns")
		case slices.Contains(known, name):
		case near != "":
			t.failColumn(name, "there is no such column; did you mean %s?", near)
		default:
			t.failColumn(name, "there is no such column; there are %s", strings.Join(known, ", "))
		}
	}
	for _, name := range must {
		if !t.hasColumn(name) && t.err == nil {
			t.err = fmt.Errorf("%s: line 1: %w: the column %s is missing: the first line has to name %s", t.file,
				roost.Invalid, name, strings.Join(must, ", "))
		}
	}
	return t.err
}

func (t *csvTable) hasColumn(column string) bool { _, ok := t.columns[column]; return ok }

// nextRow reads a row. It returns false at the end and after an error.
func (t *csvTable) nextRow() bool {
	if t.err != nil {
		return false
	}
	row, err := t.csv.Read()
	switch {
	case err == io.EOF:
		return false
	case err != nil:
		t.err = t.csvError(err)
		return false
	}
	if t.row, t.rows = row, t.rows+1; t.rows > maxListRows {
		t.failColumn("", "there are more than %d rows", maxListRows)
		return false
	}
	return true
}

// csvError rewrites an error of the CSV reader with file, line and column.
func (t *csvTable) csvError(err error) error {
	var bad *csv.ParseError
	if !errors.As(err, &bad) {
		return fmt.Errorf("%s: line %d: %w", t.file, t.rows+2, err)
	}
	line, column := bad.Line, fmt.Sprintf("column %d: ", bad.Column)
	why := bad.Err.Error()
	if errors.Is(err, csv.ErrFieldCount) {
		row, _ := t.csv.FieldPos(0)
		line, column, why = row, "", "it has another number of columns than the first line, which has "+
			strconv.Itoa(t.csv.FieldsPerRecord)
	}
	return fmt.Errorf("%s: line %d: %s%w: %s", t.file, line, column, roost.Invalid, why)
}

// failColumn records an error in a column of the current row; column "" means the whole
// row.
func (t *csvTable) failColumn(column, format string, args ...any) {
	if t.err != nil {
		return
	}
	i := t.columns[column]
	line, col := t.csv.FieldPos(i)
	what := ""
	if column != "" {
		what = fmt.Sprintf(" (%s)", column)
	}
	t.err = fmt.Errorf("%s: line %d: column %d%s: %w: %s", t.file, line, col, what, roost.Invalid,
		fmt.Sprintf(format, args...))
}

// firstError returns the first error. A file whose last line has no newline is an error,
// since it may be truncated.
func (t *csvTable) firstError() error {
	switch {
	case t.err != nil:
		return t.err
	case t.rows == 0:
		return fmt.Errorf("%s: line 2: %w: there is nothing below the first line", t.file, roost.Invalid)
	case t.lastByte.last != '\n':
		line, _ := t.csv.FieldPos(0)
		return fmt.Errorf("%s: line %d: %w: the file is cut off: its last line has no end; if it is all there, "+
			"end it with a newline", t.file, line, roost.Invalid)
	}
	return nil
}

// text returns the row's text in a column, "" if there is no such column.
func (t *csvTable) text(column string) string {
	if i, ok := t.columns[column]; ok {
		return t.row[i]
	}
	return ""
}

// number reads a whole number from least to most.
func (t *csvTable) number(column string, least, most int64) int64 {
	text := t.text(column)
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case text == "":
		t.failColumn(column, "it is empty, and a whole number is wanted")
	case err != nil && !errors.Is(err, strconv.ErrRange):
		t.failColumn(column, "%q is not a whole number", text)
	case err != nil || n < least || n > most:
		t.failColumn(column, "%s is absurd: it is from %d to %d", text, least, most)
	}
	return n
}

// word reads a name that is safe in requirements and messages: no blanks, quotes or
// control characters.
func (t *csvTable) word(column string) string {
	text := t.text(column)
	if text == "" {
		t.failColumn(column, "it is empty")
	} else if strings.ContainsFunc(text, isOddCharacter) {
		t.failColumn(column, "%q has characters that no name has", text)
	}
	return strings.Clone(text)
}

func isOddCharacter(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.:/+[]", r)
}

// uniqueWord reads a word that no other row may have.
func (t *csvTable) uniqueWord(column string) string {
	name := t.word(column)
	line, _ := t.csv.FieldPos(t.columns[column])
	if before, twice := t.names[name]; twice {
		t.failColumn(column, "%s is the name of line %d, too", name, before)
	}
	t.names[name] = line
	return name
}

// words reads words that are separated by |; none if the text is empty.
func (t *csvTable) words(column string) (list []string) {
	text := t.text(column)
	if text == "" {
		return nil
	}
	for w := range strings.SplitSeq(text, "|") {
		if w == "" || strings.ContainsFunc(w, isOddCharacter) {
			t.failColumn(column, "%q is not a list of models with | between them", text)
		}
		if !slices.Contains(list, w) {
			list = append(list, strings.Clone(w))
		}
	}
	slices.Sort(list)
	return list
}

// choice reads one of the given words, or "".
func (t *csvTable) choice(column string, words []string) string {
	text := t.text(column)
	if text == "" {
		return ""
	}
	if i := slices.Index(words, text); i >= 0 {
		return words[i]
	}
	t.failColumn(column, "%q is none of %s", text, strings.Join(words, ", "))
	return ""
}
