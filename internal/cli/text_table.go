package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// textTable prints rows in columns. On a terminal it fits the window: columns that can be
// spared go, and those that may be cut give way, the last first; ids and states never do.
type textTable struct {
	columns []tableColumn
	rows    [][]tableCell
}

type tableColumn struct {
	head         string
	rightAligned bool // aligned to the right
	minWidth     int  // it may be cut down to so many characters; 0: never
	dropPriority int  // in a window that is too narrow even so, the columns with the highest go; 0: never
}

type tableCell struct{ text, colour string }

func (t *textTable) addRow(cells ...tableCell) { t.rows = append(t.rows, cells) }

// dropEmptyColumns removes columns that say nothing: those whose cells are all empty or
// "-".
func (t *textTable) dropEmptyColumns(heads ...string) {
	for i := len(t.columns) - 1; i >= 0; i-- {
		used := slices.ContainsFunc(t.rows, func(r []tableCell) bool { return r[i].text != "" && r[i].text != "-" })
		if !used && slices.Contains(heads, t.columns[i].head) {
			t.removeColumn(i)
		}
	}
}

func (t *textTable) removeColumn(i int) {
	t.columns = slices.Delete(t.columns, i, i+1)
	for r := range t.rows {
		t.rows[r] = slices.Delete(t.rows[r], i, i+1)
	}
}

// dropSpareColumns removes columns that can be spared until the rest fits.
func (t *textTable) dropSpareColumns(window int) {
	for window > 0 {
		total, most := columnGap*(len(t.columns)-1), -1
		for i, c := range t.columns {
			if width := t.columnWidth(i); c.minWidth > 0 {
				total += min(width, max(c.minWidth, textWidth(c.head)))
			} else {
				total += width
			}
			if c.dropPriority > 0 && (most < 0 || c.dropPriority > t.columns[most].dropPriority) {
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
func (t *textTable) columnWidth(i int) int {
	width := textWidth(t.columns[i].head)
	for _, r := range t.rows {
		width = max(width, textWidth(r[i].text))
	}
	return width
}

const columnGap = 2

func (t *textTable) print(w io.Writer, s outputScreen) {
	t.dropSpareColumns(s.width)
	widths := t.fitWidths(s.width)
	var b strings.Builder
	head := make([]tableCell, len(t.columns))
	for i, c := range t.columns {
		head[i] = tableCell{c.head, bold}
	}
	t.line(&b, head, widths, s)
	for _, row := range t.rows {
		t.line(&b, row, widths, s)
	}
	io.WriteString(w, b.String())
}

// fitWidths chooses the widths of the columns for a window of that many characters; 0 is
// a window without end.
func (t *textTable) fitWidths(window int) []int {
	widths := make([]int, len(t.columns))
	total := columnGap * (len(widths) - 1)
	for i := range t.columns {
		widths[i] = t.columnWidth(i)
		total += widths[i]
	}
	for i := len(widths) - 1; i >= 0 && window > 0 && total > window; i-- {
		if least := max(t.columns[i].minWidth, textWidth(t.columns[i].head)); t.columns[i].minWidth > 0 &&
			widths[i] > least {
			cut := min(total-window, widths[i]-least)
			widths[i] -= cut
			total -= cut
		}
	}
	return widths
}

func (t *textTable) line(to *strings.Builder, row []tableCell, widths []int, s outputScreen) {
	var b strings.Builder
	for i, c := range row {
		text := truncateText(c.text, widths[i])
		pad := strings.Repeat(" ", widths[i]-textWidth(text))
		if t.columns[i].rightAligned {
			b.WriteString(pad + s.colourText(c.colour, text))
		} else {
			b.WriteString(s.colourText(c.colour, text) + pad)
		}
		b.WriteString(strings.Repeat(" ", columnGap))
	}
	to.WriteString(strings.TrimRight(b.String(), " ") + "\n")
}

func textWidth(text string) int { return utf8.RuneCountInString(text) }

// truncateText cuts text to so many characters and shows that it did.
func truncateText(text string, width int) string {
	if textWidth(text) <= width {
		return text
	}
	if width < 1 {
		return ""
	}
	return string([]rune(text)[:width-1]) + "…"
}

// printList prints texts under a heading, if there are any.
func (c *invocation) printList(heading string, texts []string) {
	if len(texts) == 0 {
		return
	}
	fmt.Fprintf(c.stdout, "\n  %s\n", heading)
	for _, text := range texts {
		fmt.Fprintln(c.stdout, c.printParagraph("    - ", "      ", text))
	}
}

// printParagraph fits a text into the terminal's window behind first, and its further
// lines behind next; elsewhere it is one line.
func (c *invocation) printParagraph(first, next, text string) string {
	text = printableText(text)
	if c.out.terminal && c.out.width > 0 {
		text = wrapText(text, max(c.out.width-textWidth(next)-1, 20))
	}
	return first + strings.ReplaceAll(text, "\n", "\n"+next)
}
