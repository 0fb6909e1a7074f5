package pack

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
	"github.com/roost-batch/roost/internal/spell"
)

// table reads rows by the names of their columns. The first error stays.
type table struct {
	file  string
	csv   *csv.Reader
	tail  tail
	at    map[string]int // column by name
	row   []string
	rows  int
	names map[string]int // line by name
	err   error
}

// tail remembers the last byte that was read.
type tail struct {
	io.Reader
	last byte
}

func (t *tail) Read(p []byte) (n int, err error) {
	if n, err = t.Reader.Read(p); n > 0 {
		t.last = p[n-1]
	}
	return n, err
}

func newTable(file string, r io.Reader, must, may []string) (*table, error) {
	t := &table{file: file, tail: tail{Reader: r}, at: map[string]int{}, names: map[string]int{}}
	t.csv = csv.NewReader(&t.tail)
	t.csv.ReuseRecord = true
	head, err := t.csv.Read()
	switch {
	case err == io.EOF:
		return nil, fmt.Errorf("%s: line 1: %w: the file is empty; the first line names the columns %s", file, roost.Invalid, strings.Join(must, ", "))
	case err != nil:
		return nil, t.broken(err)
	}
	return t, t.readHead(head, must, may)
}

// readHead reads which column is where.
func (t *table) readHead(head, must, may []string) error {
	known := slices.Concat(must, may)
	for i, name := range head {
		if i == 0 {
			name = strings.TrimPrefix(name, "\ufeff")
		}
		_, twice := t.at[name]
		t.at[name] = i
		near := spell.Nearest(name, known)
		switch {
		case twice:
			t.fail(name, "there are two such columns")
		case slices.Contains(known, name):
		case near != "":
			t.fail(name, "there is no such column; did you mean %s?", near)
		default:
			t.fail(name, "there is no such column; there are %s", strings.Join(known, ", "))
		}
	}
	for _, name := range must {
		if !t.has(name) && t.err == nil {
			t.err = fmt.Errorf("%s: line 1: %w: the column %s is missing: the first line has to name %s", t.file, roost.Invalid, name, strings.Join(must, ", "))
		}
	}
	return t.err
}

func (t *table) has(column string) bool { _, ok := t.at[column]; return ok }

// next reads a row; false at the end, or after an error.
func (t *table) next() bool {
	if t.err != nil {
		return false
	}
	row, err := t.csv.Read()
	switch {
	case err == io.EOF:
		return false
	case err != nil:
		t.err = t.broken(err)
		return false
	}
	if t.row, t.rows = row, t.rows+1; t.rows > maxRows {
		t.fail("", "there are more than %d rows", maxRows)
		return false
	}
	return true
}

// broken is an error of the CSV reader in our words.
func (t *table) broken(err error) error {
	var bad *csv.ParseError
	if !errors.As(err, &bad) {
		return fmt.Errorf("%s: line %d: %w", t.file, t.rows+2, err)
	}
	line, column := bad.Line, fmt.Sprintf("column %d: ", bad.Column)
	why := bad.Err.Error()
	if errors.Is(err, csv.ErrFieldCount) {
		row, _ := t.csv.FieldPos(0)
		line, column, why = row, "", "it has another number of columns than the first line, which has "+strconv.Itoa(t.csv.FieldsPerRecord)
	}
	return fmt.Errorf("%s: line %d: %s%w: %s", t.file, line, column, roost.Invalid, why)
}

// fail notes what is wrong in a column of the row, "" for none.
func (t *table) fail(column, format string, args ...any) {
	if t.err != nil {
		return
	}
	i := t.at[column]
	line, col := t.csv.FieldPos(i)
	what := ""
	if column != "" {
		what = fmt.Sprintf(" (%s)", column)
	}
	t.err = fmt.Errorf("%s: line %d: column %d%s: %w: %s", t.file, line, col, what, roost.Invalid, fmt.Sprintf(format, args...))
}

// end is the first error. A file whose last line has no end may have been cut off anywhere, as far as anybody can tell.
func (t *table) end() error {
	switch {
	case t.err != nil:
		return t.err
	case t.rows == 0:
		return fmt.Errorf("%s: line 2: %w: there is nothing below the first line", t.file, roost.Invalid)
	case t.tail.last != '\n':
		line, _ := t.csv.FieldPos(0)
		return fmt.Errorf("%s: line %d: %w: the file is cut off: its last line has no end; if it is all there, end it with a newline", t.file, line, roost.Invalid)
	}
	return nil
}

// text is what the row has in a column, "" if there is no such column.
func (t *table) text(column string) string {
	if i, ok := t.at[column]; ok {
		return t.row[i]
	}
	return ""
}

// number is a whole number from least to most.
func (t *table) number(column string, least, most int64) int64 {
	text := t.text(column)
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case text == "":
		t.fail(column, "it is empty, and a whole number is wanted")
	case err != nil && !errors.Is(err, strconv.ErrRange):
		t.fail(column, "%q is not a whole number", text)
	case err != nil || n < least || n > most:
		t.fail(column, "%s is absurd: it is from %d to %d", text, least, most)
	}
	return n
}

// word is something with which requirements and messages can be made: no blanks, quotes or control characters.
func (t *table) word(column string) string {
	text := t.text(column)
	if text == "" {
		t.fail(column, "it is empty")
	} else if strings.ContainsFunc(text, odd) {
		t.fail(column, "%q has characters that no name has", text)
	}
	return strings.Clone(text)
}

func odd(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.:/+[]", r)
}

// name is a word that no other row has.
func (t *table) name(column string) string {
	name := t.word(column)
	line, _ := t.csv.FieldPos(t.at[column])
	if before, twice := t.names[name]; twice {
		t.fail(column, "%s is the name of line %d, too", name, before)
	}
	t.names[name] = line
	return name
}

// words are words with | between them; none if it is empty.
func (t *table) words(column string) (list []string) {
	text := t.text(column)
	if text == "" {
		return nil
	}
	for w := range strings.SplitSeq(text, "|") {
		if w == "" || strings.ContainsFunc(w, odd) {
			t.fail(column, "%q is not a list of models with | between them", text)
		}
		if !slices.Contains(list, w) {
			list = append(list, strings.Clone(w))
		}
	}
	slices.Sort(list)
	return list
}

// choice is one of some words, or "".
func (t *table) choice(column string, words []string) string {
	text := t.text(column)
	if text == "" {
		return ""
	}
	if i := slices.Index(words, text); i >= 0 {
		return words[i]
	}
	t.fail(column, "%q is none of %s", text, strings.Join(words, ", "))
	return ""
}
