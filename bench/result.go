package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// resultLine is one line of the results.
type resultLine struct {
	Measurement string    `json:"measurement"`
	Quantity    string    `json:"what"`
	Text        string    `json:"text"`
	Values      []float64 `json:"values,omitempty"` // the numbers in the text, in their order; times are in seconds
	Aim         string    `json:"aim,omitempty"`
	Met         *bool     `json:"met,omitempty"`
}

// resultList has all lines, which are printed as they are added.
type resultList struct {
	out  io.Writer
	list []resultLine
}

func (r *resultList) addResult(one resultLine) {
	r.list = append(r.list, one)
	text := one.Text
	if one.Met != nil {
		verdict := "met"
		if !*one.Met {
			verdict = "MISSED"
		}
		aim := one.Aim
		if !strings.HasPrefix(aim, leastPrefix) {
			aim = "at most " + aim
		}
		text += fmt.Sprintf("  (aim: %s, %s)", aim, verdict)
	}
	fmt.Fprintf(r.out, "%-52s %s\n", one.Quantity, text)
}

// addRow adds and prints a result.
func (b *poolBencher) addRow(what, format string, args ...any) {
	b.results.addResult(resultLine{Measurement: b.name, Quantity: what, Text: fmt.Sprintf(format, args...),
		Values: printedNumbers(args)})
}

// addAimedRow adds and prints a value beside its target.
func (b *poolBencher) addAimedRow(what string, met bool, aim, format string, args ...any) {
	b.results.addResult(resultLine{Measurement: b.name, Quantity: what, Text: fmt.Sprintf(format, args...),
		Values: printedNumbers(args), Aim: aim, Met: &met})
}

// leastPrefix begins an aim that is a lower bound.
const leastPrefix = "at least "

// printedNumbers returns those of the values that are printed.
func printedNumbers(args []any) (list []float64) {
	for _, a := range args {
		switch v := a.(type) {
		case time.Duration:
			list = append(list, v.Seconds())
		case float64:
			list = append(list, v)
		case int:
			list = append(list, float64(v))
		case int64:
			list = append(list, float64(v))
		}
	}
	return list
}

// writeResults writes the results as the flags say: as a table into a file, and as JSON
// on standard output.
func (r *resultList) writeResults(file string, asJSON bool) error {
	if file != "" {
		var text strings.Builder
		if err := r.writeTable(&text); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
			return err
		}
	}
	if !asJSON {
		return nil
	}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	return out.Encode(map[string]any{"results": r.list})
}

// writeTable writes a line for each result. The first two values, usually median and
// worst, have columns of their own.
func (r *resultList) writeTable(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write([]string{"measurement", "what", "value", "second_value", "text", "aim", "met"}); err != nil {
		return err
	}
	for _, one := range r.list {
		value := [2]string{}
		for i, v := range one.Values[:min(len(one.Values), 2)] {
			value[i] = strconv.FormatFloat(v, 'g', -1, 64)
		}
		met := ""
		if one.Met != nil {
			met = strconv.FormatBool(*one.Met)
		}
		if err := out.Write([]string{one.Measurement, one.Quantity, value[0], value[1], one.Text, one.Aim,
			met}); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}
