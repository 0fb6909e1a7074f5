// Package reporttable has the columns of reports from the accounts. The commands print
// them as tables and CSV, and the HTTP API answers with the same cells as CSV.
package reporttable

import (
	"fmt"
	"strconv"
	"time"

	"github.com/roost-batch/roost/internal/accounting"
)

// Column is a column of a report whose lines have the type T.
type Column[T any] struct {
	Head         string
	RightAligned bool
	Value        func(line *T) string
}

// Heads returns the headings of columns.
func Heads[T any](columns []Column[T]) (heads []string) {
	for _, col := range columns {
		heads = append(heads, col.Head)
	}
	return heads
}

// Cells returns the texts of a line. No text is quoted.
func Cells[T any](columns []Column[T], line *T) (cells []string) {
	for _, col := range columns {
		cells = append(cells, col.Value(line))
	}
	return cells
}

// hours writes milliseconds as hours.
func hours(ms int64) string { return strconv.FormatFloat(float64(ms)/3.6e6, 'f', 2, 64) }

// Percent writes a part of a whole in percent; empty: the whole is nothing.
func Percent(part, whole int64) string {
	if whole == 0 {
		return ""
	}
	return strconv.FormatFloat(100*float64(part)/float64(whole), 'f', 1, 64)
}

func count(n int64) string { return strconv.FormatInt(n, 10) }

// utc writes a time for programs and people alike.
func utc(m accounting.Millis) string {
	if m == 0 {
		return ""
	}
	return m.Time().Format("2006-01-02T15:04:05")
}

// seconds writes milliseconds as seconds.
func seconds(ms int64) string { return strconv.FormatFloat(float64(ms)/1000, 'f', 3, 64) }

// clock writes milliseconds as [days-]HH:MM:SS.
func clock(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	days, rest := d/(24*time.Hour), d%(24*time.Hour)
	text := fmt.Sprintf("%02d:%02d:%02d", rest/time.Hour, rest%time.Hour/time.Minute, rest%time.Minute/time.Second)
	if days > 0 {
		return fmt.Sprintf("%d-%s", days, text)
	}
	return text
}
