package accounts

import (
	"encoding/csv"
	"fmt"
	"strings"

	"github.com/roost-batch/roost/internal/accounting/linetext"
	"github.com/roost-batch/roost/internal/accounting/reporttable"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
)

// column is a column of a report.
type column[T any] struct {
	Head         string
	RightAligned bool
	Value        func(line *T) string
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

// fromReport returns columns that the commands share with the HTTP API.
func fromReport[T any](shared []reporttable.Column[T]) (columns []column[T]) {
	for _, col := range shared {
		columns = append(columns, column[T](col))
	}
	return columns
}

func tableOf[T any](columns []column[T], lines []T) *frame.TextTable {
	t := &frame.TextTable{}
	for _, col := range columns {
		t.Columns = append(t.Columns, frame.TableColumn{Head: strings.ToUpper(strings.ReplaceAll(col.Head, "_", " ")),
			RightAligned: col.RightAligned})
	}
	for i := range lines {
		var cells []frame.TableCell
		for _, col := range columns {
			cells = append(cells, frame.TableCell{Text: document.PrintableText(col.Value(&lines[i]))})
		}
		t.AddRow(cells...)
	}
	return t
}

func printCSV[T any](c *frame.Invocation, columns []column[T], lines []T) error {
	w := csv.NewWriter(c.Stdout)
	var row []string
	for _, col := range columns {
		row = append(row, col.Head)
	}
	w.Write(row)
	for i := range lines {
		row = row[:0]
		for _, col := range columns {
			row = append(row, linetext.QuoteFormula(col.Value(&lines[i])))
		}
		w.Write(row)
	}
	w.Flush()
	return w.Error()
}
