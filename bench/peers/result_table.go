package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// printTable prints a line for each figure and a column for each system. A cell has the
// median, followed by its ratio to Roost's.
func (r *comparisonReport) printTable(w io.Writer) error {
	rows := [][]string{{""}}
	for _, s := range r.Systems {
		rows[0] = append(rows[0], strings.TrimSpace(systemTitle(s)+" "+r.Version[s]))
	}
	var notes []string
	for _, l := range r.Lines {
		row := []string{l.Title}
		for _, s := range r.Systems {
			text := l.cellText(s)
			if c := l.Cells[s]; len(c.Values) == 0 && c.Error != "" {
				notes = append(notes, fmt.Sprintf("%s, %s: %s", systemTitle(s), l.Title, firstLine(c.Error)))
				text += fmt.Sprintf(" [%d]", len(notes))
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, text := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(text))
		}
	}
	var text strings.Builder
	for _, row := range rows {
		var out string
		for i, cell := range row {
			out += cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2)
		}
		text.WriteString(strings.TrimRight(out, " ") + "\n")
	}
	fmt.Fprintf(&text, "\n%s. %s. Medians; in brackets the ratio to Roost's.\n", r.Machine,
		r.Date.Format("2006-01-02 15:04"))
	for i, note := range notes {
		fmt.Fprintf(&text, "[%d] %s\n", i+1, note)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// cellText formats the result of one system.
func (l figureLine) cellText(system string) string {
	c, ok := l.Cells[system]
	switch {
	case !ok:
		return "-"
	case len(c.Values) == 0:
		return "n/a"
	case system == "roost" || c.Ratio == 0:
		return l.Unit.valueText(c.Median)
	default:
		return fmt.Sprintf("%s (%s)", l.Unit.valueText(c.Median), ratioText(c.Ratio))
	}
}

// ratioText formats a ratio with two significant digits.
func ratioText(v float64) string {
	switch {
	case v >= 9.95:
		return fmt.Sprintf("%.0f", v)
	case v >= 0.995:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2g", v)
	}
}

// writeJSON writes everything.
func (r *comparisonReport) writeJSON(w io.Writer) error {
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(r)
}

// writeCSV writes a line for each figure of each system.
func (r *comparisonReport) writeCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	out.Write([]string{"date", "figure", "title", "unit", "system", "version", "samples", "median", "least", "most",
		"ratio_to_roost", "error"})
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
	for _, l := range r.Lines {
		for _, s := range r.Systems {
			c := l.Cells[s]
			row := []string{r.Date.Format("2006-01-02T15:04:05Z07:00"), l.Figure, l.Title, string(l.Unit), s,
				r.Version[s], strconv.Itoa(len(c.Values)), "", "", "", "", firstLine(c.Error)}
			if len(c.Values) > 0 {
				row[7], row[8], row[9] = number(c.Median), number(slices.Min(c.Values)), number(slices.Max(c.Values))
			}
			if c.Ratio > 0 {
				row[10] = number(c.Ratio)
			}
			out.Write(row)
		}
	}
	out.Flush()
	return out.Error()
}
