package frame

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/roost-batch/roost/internal/document"
)

// TextTable prints rows in columns. In a window that is too narrow it first drops columns
// with a DropPriority, then cuts those with a MinWidth, the last first. Ids and states
// are never cut. On a terminal it fits the window: columns that can be spared go, and
// those that may be cut give way, the last first; ids and states never do.
type TextTable struct {
	Columns []TableColumn
	Rows    [][]TableCell
}

// TableColumn is the head of a column, and what may happen to it in a narrow window.
type TableColumn struct {
	Head         string
	RightAligned bool
	MinWidth     int // its cells may be cut to this many characters; 0: never
	DropPriority int // in a narrow window the column with the highest goes first; 0: never
}

// TableCell is the text of a cell and its colour, "" for none.
type TableCell struct{ Text, Colour string }

// AddRow appends a row, which has a cell for each column.
func (t *TextTable) AddRow(cells ...TableCell) { t.Rows = append(t.Rows, cells) }

// DropEmptyColumns removes those of the named columns whose cells are all empty or "-".
func (t *TextTable) DropEmptyColumns(heads ...string) {
	for i := len(t.Columns) - 1; i >= 0; i-- {
		used := slices.ContainsFunc(t.Rows, func(r []TableCell) bool { return r[i].Text != "" && r[i].Text != "-" })
		if !used && slices.Contains(heads, t.Columns[i].Head) {
			t.removeColumn(i)
		}
	}
}

func (t *TextTable) removeColumn(i int) {
	t.Columns = slices.Delete(t.Columns, i, i+1)
	for r := range t.Rows {
		t.Rows[r] = slices.Delete(t.Rows[r], i, i+1)
	}
}

// dropSpareColumns removes columns that can be spared until the rest fits.
func (t *TextTable) dropSpareColumns(window int) {
	for window > 0 {
		total, most := columnGap*(len(t.Columns)-1), -1
		for i, c := range t.Columns {
			if width := t.columnWidth(i); c.MinWidth > 0 {
				total += min(width, max(c.MinWidth, TextWidth(c.Head)))
			} else {
				total += width
			}
			if c.DropPriority > 0 && (most < 0 || c.DropPriority > t.Columns[most].DropPriority) {
				most = i
			}
		}
		if total <= window || most < 0 {
			return
		}
		t.removeColumn(most)
	}
}

// columnWidth is that of the widest cell of a column.
func (t *TextTable) columnWidth(i int) int {
	width := TextWidth(t.Columns[i].Head)
	for _, r := range t.Rows {
		width = max(width, TextWidth(r[i].Text))
	}
	return width
}

const columnGap = 2

// Print writes the table to w, cut to the width of the screen and in its colours.
func (t *TextTable) Print(w io.Writer, s Screen) {
	t.dropSpareColumns(s.Width)
	widths := t.fitWidths(s.Width)
	var b strings.Builder
	head := make([]TableCell, len(t.Columns))
	for i, c := range t.Columns {
		head[i] = TableCell{c.Head, Bold}
	}
	t.line(&b, head, widths, s)
	for _, row := range t.Rows {
		t.line(&b, row, widths, s)
	}
	io.WriteString(w, b.String())
}

// fitWidths chooses the widths of the columns for a window of that many characters; 0 is
// a window without end.
func (t *TextTable) fitWidths(window int) []int {
	widths := make([]int, len(t.Columns))
	total := columnGap * (len(widths) - 1)
	for i := range t.Columns {
		widths[i] = t.columnWidth(i)
		total += widths[i]
	}
	for i := len(widths) - 1; i >= 0 && window > 0 && total > window; i-- {
		if least := max(t.Columns[i].MinWidth, TextWidth(t.Columns[i].Head)); t.Columns[i].MinWidth > 0 &&
			widths[i] > least {
			cut := min(total-window, widths[i]-least)
			widths[i] -= cut
			total -= cut
		}
	}
	return widths
}

func (t *TextTable) line(to *strings.Builder, row []TableCell, widths []int, s Screen) {
	var b strings.Builder
	for i, c := range row {
		text := TruncateText(c.Text, widths[i])
		pad := strings.Repeat(" ", widths[i]-TextWidth(text))
		if t.Columns[i].RightAligned {
			b.WriteString(pad + s.ColourText(c.Colour, text))
		} else {
			b.WriteString(s.ColourText(c.Colour, text) + pad)
		}
		b.WriteString(strings.Repeat(" ", columnGap))
	}
	to.WriteString(strings.TrimRight(b.String(), " ") + "\n")
}

// TextWidth is the number of characters of a text.
func TextWidth(text string) int { return utf8.RuneCountInString(text) }

// TruncateText cuts a text to width characters, of which the last is then "…".
func TruncateText(text string, width int) string {
	if TextWidth(text) <= width {
		return text
	}
	if width < 1 {
		return ""
	}
	return string([]rune(text)[:width-1]) + "…"
}

// PrintList prints texts under a heading, if there are any.
func (c *Invocation) PrintList(heading string, texts []string) {
	if len(texts) == 0 {
		return
	}
	fmt.Fprintf(c.Stdout, "\n  %s\n", heading)
	for _, text := range texts {
		fmt.Fprintln(c.Stdout, c.PrintParagraph("    - ", "      ", text))
	}
}

// PrintParagraph fits a text into the window, with first before it and next before
// further lines. Elsewhere it is one line.
func (c *Invocation) PrintParagraph(first, next, text string) string {
	text = document.PrintableText(text)
	if c.OutScreen.Terminal && c.OutScreen.Width > 0 {
		text = WrapText(text, max(c.OutScreen.Width-TextWidth(next)-1, 20))
	}
	return first + strings.ReplaceAll(text, "\n", "\n"+next)
}
