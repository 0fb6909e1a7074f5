package reports

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/slurm/getopt"
)

// fieldTable is what sacctmgr, sshare and sstat print: fields with titles over lines, or
// with a sign between them.
type fieldTable struct {
	columns   []fieldColumn
	noHeader  bool
	separator string // empty: columns
	closed    bool   // a separator behind the last field, too
}

// fieldColumn is a field that can be printed.
type fieldColumn struct {
	title string
	width int
	left  bool // aligned to the left
}

// printOptions are the options about the form of a table.
func printOptions() []getopt.Option {
	return []getopt.Option{{Name: "noheader", Letter: 'n'}, {Name: "parsable", Letter: 'p'},
		{Name: "parsable2", Letter: 'P'}, {Name: "delimiter", Argument: getopt.Required}}
}

// setForm reads these options.
func (t *fieldTable) setForm(given []getopt.Given) {
	t.noHeader = t.noHeader || has(given, "noheader")
	if t.closed = has(given, "parsable"); t.closed || has(given, "parsable2") {
		t.separator = "|"
		if text, ok := getopt.Last(given, "delimiter"); ok && text != "" {
			t.separator = text
		}
	}
}

// choose makes the columns of a format, as in "account%20,user". Names may be shortened.
func (t *fieldTable) choose(format string, known []fieldColumn) (unknown string) {
	for item := range strings.SplitSeq(format, ",") {
		name, size, sized := strings.Cut(strings.TrimSpace(item), "%")
		if name == "" {
			continue
		}
		matches := func(whole bool) func(c fieldColumn) bool {
			return func(c fieldColumn) bool {
				title := strings.ToLower(strings.ReplaceAll(c.title, " ", ""))
				return title == strings.ToLower(name) || !whole && strings.HasPrefix(title, strings.ToLower(name))
			}
		}
		i := slices.IndexFunc(known, matches(true))
		if i < 0 {
			i = slices.IndexFunc(known, matches(false))
		}
		if i < 0 {
			return name
		}
		c := known[i]
		if n, err := strconv.Atoi(size); sized && err == nil {
			c.left = n < 0
			c.width = min(max(n, -n), 4096)
		}
		t.columns = append(t.columns, c)
	}
	return ""
}

// print prints rows of values by title.
func (t *fieldTable) print(w io.Writer, rows []map[string]string) {
	line := func(value func(c fieldColumn) string) {
		var b strings.Builder
		for i, c := range t.columns {
			text := document.PrintableText(value(c))
			if t.separator != "" {
				if b.WriteString(text); i+1 < len(t.columns) || t.closed {
					b.WriteString(t.separator)
				}
				continue
			}
			if n := utf8.RuneCountInString(text); n > c.width {
				text = string([]rune(text)[:max(c.width-1, 0)]) + "+"
			}
			if pad := strings.Repeat(" ", max(c.width-utf8.RuneCountInString(text), 0)); c.left {
				text += pad
			} else {
				text = pad + text
			}
			b.WriteString(text + " ")
		}
		fmt.Fprintln(w, b.String())
	}
	if !t.noHeader {
		line(func(c fieldColumn) string { return c.title })
		if t.separator == "" {
			line(func(c fieldColumn) string { return strings.Repeat("-", c.width) })
		}
	}
	for _, row := range rows {
		line(func(c fieldColumn) string { return row[c.title] })
	}
}
