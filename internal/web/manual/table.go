package manual

import (
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
)

// writeTable converts the lines between TS and TE, as tbl(1) reads them. They are lines
// of formats and rows whose cells are separated by tabs. T{ and T} enclose a cell of
// several lines.
func (w *pageWriter) writeTable(lines []string) error {
	formats, rest, err := tableFormats(lines)
	if err != nil {
		return err
	}
	w.closeParagraph()
	w.body.WriteString("<table>\n")
	for len(rest) > 0 {
		row, used, err := tableRow(rest)
		if err != nil {
			return err
		}
		rest = rest[used:]
		w.body.WriteString("<tr>")
		for i, cell := range row {
			class := ""
			if f := formats[0]; i < len(f) && (f[i][0] == 'r' || f[i][0] == 'n') {
				class = ` class="number"`
			}
			fmt.Fprintf(w.body, "<td%s>", class)
			if err := w.writeCell(cell); err != nil {
				return err
			}
			w.body.WriteString("</td>")
		}
		w.body.WriteString("</tr>\n")
		if len(formats) > 1 {
			formats = formats[1:]
		}
	}
	w.body.WriteString("</table>\n")
	return nil
}

// tableFormats reads the lines of formats. Each is for one row, and the last one, which
// ends with a full stop, for all rows that follow.
func tableFormats(lines []string) (formats [][]string, rest []string, err error) {
	for i, line := range lines {
		formats = append(formats, strings.Fields(strings.TrimSuffix(line, ".")))
		if strings.HasSuffix(line, ".") {
			return formats, lines[i+1:], nil
		}
	}
	return nil, nil, fmt.Errorf("%w: a table without a line of formats", roost.Invalid)
}

// tableRow reads the cells of one row, and returns how many lines it has.
func tableRow(lines []string) (row []string, used int, err error) {
	line := lines[0]
	used = 1
	for {
		cell, rest, more := strings.Cut(line, "\t")
		if cell == "T{" && !more {
			end := used
			for end < len(lines) && !strings.HasPrefix(lines[end], "T}") {
				end++
			}
			if end == len(lines) {
				return nil, 0, fmt.Errorf("%w: T{ without T}", roost.Invalid)
			}
			row = append(row, strings.Join(lines[used:end], "\n"))
			line, used = lines[end][len("T}"):], end+1
			if line == "" {
				return row, used, nil
			}
			line = strings.TrimPrefix(line, "\t")
			continue
		}
		row = append(row, cell)
		if !more {
			return row, used, nil
		}
		line = rest
	}
}

// writeCell writes a cell, which may have macros of fonts.
func (w *pageWriter) writeCell(cell string) error {
	for i, line := range strings.Split(cell, "\n") {
		if i > 0 {
			w.body.WriteByte('\n')
		}
		if line == ".br" {
			w.body.WriteString("<br>")
			continue
		}
		spans, err := lineSpans(line)
		if err != nil {
			return err
		}
		w.found.WriteString(plainText(spans) + " ")
		w.manual.writeSpans(w.body, spans)
	}
	return nil
}
