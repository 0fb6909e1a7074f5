package accounts

import (
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/linetext"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
)

// column is a column of a report.
type column[T any] struct {
	head  string
	right bool
	value func(line *T) string
}

// printLines prints lines as a table, as CSV, or as a line of JSON each under a name.
func printLines[T any](c *frame.Invocation, name string, columns []column[T], lines []T) error {
	switch {
	case c.WantsJSON():
		for i := range lines {
			line, err := document.SnakeDocument(&lines[i])
			if err != nil {
				return err
			}
			if err := frame.PrintLine(c.Stdout, frame.JSONDocument{name: line}); err != nil {
				return err
			}
		}
		return nil
	case c.Flag("csv"):
		return printCSV(c, columns, lines)
	case len(lines) == 0:
		fmt.Fprintln(c.Stderr, "nothing is recorded for that")
		return nil
	}
	tableOf(columns, lines).Print(c.Stdout, c.OutScreen)
	return nil
}

func tableOf[T any](columns []column[T], lines []T) *frame.TextTable {
	t := &frame.TextTable{}
	for _, col := range columns {
		t.Columns = append(t.Columns, frame.TableColumn{Head: strings.ToUpper(strings.ReplaceAll(col.head, "_", " ")),
			RightAligned: col.right})
	}
	for i := range lines {
		var cells []frame.TableCell
		for _, col := range columns {
			cells = append(cells, frame.TableCell{Text: document.PrintableText(col.value(&lines[i]))})
		}
		t.AddRow(cells...)
	}
	return t
}

func printCSV[T any](c *frame.Invocation, columns []column[T], lines []T) error {
	w := csv.NewWriter(c.Stdout)
	var row []string
	for _, col := range columns {
		row = append(row, col.head)
	}
	w.Write(row)
	for i := range lines {
		row = row[:0]
		for _, col := range columns {
			row = append(row, linetext.QuoteFormula(col.value(&lines[i])))
		}
		w.Write(row)
	}
	w.Flush()
	return w.Error()
}

// hours writes milliseconds as hours.
func hours(ms int64) string { return strconv.FormatFloat(float64(ms)/3.6e6, 'f', 2, 64) }

func percent(part, whole int64) string {
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
