package cli

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// table prints rows in columns. On a terminal it fits the window: columns that can be spared go, and those that may be cut give way, the last first;
// ids and states never do.
type table struct {
	columns []column
	rows    [][]cell
}

type column struct {
	head  string
	right bool // aligned to the right
	least int  // it may be cut down to so many characters; 0: never
	spare int  // in a window that is too narrow even so, the columns with the highest go; 0: never
}

type cell struct{ text, colour string }

func (t *table) add(cells ...cell) { t.rows = append(t.rows, cells) }

// drop removes columns that say nothing: those whose cells are all empty or "-".
func (t *table) drop(heads ...string) {
	for i := len(t.columns) - 1; i >= 0; i-- {
		used := slices.ContainsFunc(t.rows, func(r []cell) bool { return r[i].text != "" && r[i].text != "-" })
		if !used && slices.Contains(heads, t.columns[i].head) {
			t.remove(i)
		}
	}
}

func (t *table) remove(i int) {
	t.columns = slices.Delete(t.columns, i, i+1)
	for r := range t.rows {
		t.rows[r] = slices.Delete(t.rows[r], i, i+1)
	}
}

// narrow removes columns that can be spared until the rest fits.
func (t *table) narrow(window int) {
	for window > 0 {
		total, most := gap*(len(t.columns)-1), -1
		for i, c := range t.columns {
			if width := t.width(i); c.least > 0 {
				total += min(width, max(c.least, length(c.head)))
			} else {
				total += width
			}
			if c.spare > 0 && (most < 0 || c.spare > t.columns[most].spare) {
				most = i
			}
		}
		if total <= window || most < 0 {
			return
		}
		t.remove(most)
	}
}

// width is that of the widest cell of a column.
func (t *table) width(i int) int {
	width := length(t.columns[i].head)
	for _, r := range t.rows {
		width = max(width, length(r[i].text))
	}
	return width
}

const gap = 2

func (t *table) print(w io.Writer, s screen) {
	t.narrow(s.width)
	widths := t.fit(s.width)
	var b strings.Builder
	head := make([]cell, len(t.columns))
	for i, c := range t.columns {
		head[i] = cell{c.head, bold}
	}
	t.line(&b, head, widths, s)
	for _, row := range t.rows {
		t.line(&b, row, widths, s)
	}
	io.WriteString(w, b.String())
}

// fit chooses the widths of the columns for a window of that many characters; 0 is a window without end.
func (t *table) fit(window int) []int {
	widths := make([]int, len(t.columns))
	total := gap * (len(widths) - 1)
	for i := range t.columns {
		widths[i] = t.width(i)
		total += widths[i]
	}
	for i := len(widths) - 1; i >= 0 && window > 0 && total > window; i-- {
		if least := max(t.columns[i].least, length(t.columns[i].head)); t.columns[i].least > 0 && widths[i] > least {
			cut := min(total-window, widths[i]-least)
			widths[i] -= cut
			total -= cut
		}
	}
	return widths
}

func (t *table) line(to *strings.Builder, row []cell, widths []int, s screen) {
	var b strings.Builder
	for i, c := range row {
		text := shorten(c.text, widths[i])
		pad := strings.Repeat(" ", widths[i]-length(text))
		if t.columns[i].right {
			b.WriteString(pad + s.paint(c.colour, text))
		} else {
			b.WriteString(s.paint(c.colour, text) + pad)
		}
		b.WriteString(strings.Repeat(" ", gap))
	}
	to.WriteString(strings.TrimRight(b.String(), " ") + "\n")
}

func length(text string) int { return utf8.RuneCountInString(text) }

// shorten cuts text to so many characters and shows that it did.
func shorten(text string, width int) string {
	if length(text) <= width {
		return text
	}
	if width < 1 {
		return ""
	}
	return string([]rune(text)[:width-1]) + "…"
}

// left reports whether a job has no place: its node is that of its last attempt then, and in PBS a job that waits again is nowhere.
func left(s *wire.JobStatus) bool {
	state := s.GetState()
	return state == roost.Idle.String() || state == roost.Held.String() || state == roost.Blocked.String()
}

// list prints texts under a heading, if there are any.
func (c *call) list(heading string, texts []string) {
	if len(texts) == 0 {
		return
	}
	fmt.Fprintf(c.stdout, "\n  %s\n", heading)
	for _, text := range texts {
		fmt.Fprintln(c.stdout, c.paragraph("    - ", "      ", text))
	}
}

// paragraph fits a text into the terminal's window behind first, and its further lines behind next; elsewhere it is one line.
func (c *call) paragraph(first, next, text string) string {
	text = printable(text)
	if c.out.terminal && c.out.width > 0 {
		text = wrap(text, max(c.out.width-length(next)-1, 20))
	}
	return first + strings.ReplaceAll(text, "\n", "\n"+next)
}

// decimal is a number of cores or GPUs.
func decimal(n float64) string { return strconv.FormatFloat(n, 'f', 1, 64) }
