package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"io"
	"strings"
	"testing"
	"time"
)

// sampleReport returns a report of two measurements. Grid Engine fails in one, and Slurm
// is left out of the other.
func sampleReport() *comparisonReport {
	r := &comparisonReport{
		Date: time.Date(2026, 11, 22, 18, 0, 0, 0, time.UTC), Machine: "2 cores", Systems: systemNames(),
		Sizes:   quickSizes,
		Version: map[string]string{"roost": "0.1.0", "htcondor": "23.9.6"},
	}
	r.addLines([]string{"latency", "batch"})
	latency, _ := findMeasure("latency")
	batch, _ := findMeasure("batch")
	for _, seconds := range []float64{0.03, 0.02, 0.04} {
		r.addAnswer(latency, 0, "roost",
			measureResult{Values: map[string][]float64{"start": {seconds}, "command": {seconds / 2}}})
	}
	r.addAnswer(latency, 0, "htcondor",
		measureResult{Values: map[string][]float64{"start": {0.06, 3}, "command": {0.021}}})
	r.addAnswer(latency, 0, "gridengine", measureResult{Error: "start: no daemon\nand more of it"})
	r.addAnswer(batch, 0, "roost", measureResult{Values: map[string][]float64{"batch": {200}}})
	r.addAnswer(batch, 0, "htcondor", measureResult{Values: map[string][]float64{"batch": {50}}})
	r.addAnswer(batch, 0, "htcondor", measureResult{Error: "the second time it failed"})
	r.addAnswer(batch, 0, "slurm", measureResult{Values: map[string][]float64{"batch": {25}}})
	r.computeRatios()
	return r
}

func TestTable(t *testing.T) {
	var out bytes.Buffer
	if err := sampleReport().printTable(&out); err != nil {
		t.Fatal(err)
	}
	want := `                                                   Roost 0.1.0  HTCondor 23.9.6  Slurm         Grid Engine
submit to start, idle pool                         30 ms        3.0 s (100)      -             n/a [1]
the command that submits                           15 ms        21 ms (1.4)      -             n/a [2]
jobs finished a second, an array of 100 /bin/true  200/s        50/s (0.25)      25/s (0.12)   -
CPU time for each of them                          n/a          n/a [3]          n/a           -

2 cores. 2026-11-22 18:00. Medians; in brackets the ratio to Roost's.
[1] Grid Engine, submit to start, idle pool: start: no daemon
[2] Grid Engine, the command that submits: start: no daemon
[3] HTCondor, CPU time for each of them: the second time it failed
`
	if collapseBlanks(out.String()) != collapseBlanks(want) {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// collapseBlanks removes the widths of columns from a text.
func collapseBlanks(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}

// TestRatio checks that there is no ratio without Roost's own value. A measurement that
// failed once has the value of the other round, and the error.
func TestRatio(t *testing.T) {
	r := sampleReport()
	if c := r.Lines[2].Cells["htcondor"]; c.Ratio != 0.25 || c.Error == "" || len(c.Values) != 1 {
		t.Errorf("got %+v", c)
	}
	alone := &comparisonReport{Systems: []string{"slurm"}, Sizes: quickSizes}
	alone.addLines([]string{"batch"})
	batch, _ := findMeasure("batch")
	alone.addAnswer(batch, 0, "slurm", measureResult{Values: map[string][]float64{"batch": {25}}})
	alone.computeRatios()
	if c := alone.Lines[0].Cells["slurm"]; c.Ratio != 0 || alone.Lines[0].cellText("slurm") != "25/s" {
		t.Errorf("got %+v, %q", c, alone.Lines[0].cellText("slurm"))
	}
}

// TestCounts checks that a measurement for several numbers of jobs has a separate line
// for each.
func TestCounts(t *testing.T) {
	r := &comparisonReport{Systems: []string{"roost"}, Sizes: workSizes{Queued: []int{10, 200}}}
	r.addLines([]string{"each"})
	each, _ := findMeasure("each")
	r.addAnswer(each, 200, "roost", measureResult{Values: map[string][]float64{"each": {3 << 20}}, Note: "n"})
	r.computeRatios()
	if len(r.Lines) != 2 || r.Lines[0].cellText("roost") != "-" || r.Lines[1].cellText("roost") != "3.0 MiB" ||
		!strings.Contains(r.Lines[1].Title, "200 jobs") {
		t.Errorf("got %+v", r.Lines)
	}
}

func TestUnits(t *testing.T) {
	for _, c := range []struct {
		of   figureUnit
		v    float64
		want string
	}{
		{unitSeconds, 0.0005, "0.50 ms"}, {unitSeconds, 0.0634, "63 ms"}, {unitSeconds, 1.25, "1.2 s"},
		{unitSeconds, 18.1, "18 s"}, {unitSeconds, 0.9996, "1000 ms"},
		{unitBytes, 979 << 10, "979 KiB"}, {unitBytes, 45 << 20, "45 MiB"}, {unitBytes, 1.5 * (1 << 20), "1.5 MiB"},
		{unitBytes, -4096, "-4.0 KiB"},
		{unitPerSecond, 290.4, "290/s"}, {unitPerSecond, 3.71, "3.7/s"}, {unitPerSecond, 0, "0.00/s"},
	} {
		if got := c.of.valueText(c.v); got != c.want {
			t.Errorf("%v %s: got %q, want %q", c.v, c.of, got, c.want)
		}
	}
	for v, want := range map[float64]string{0.032: "0.032", 0.12: "0.12", 1: "1.0", 9.96: "10", 287.4: "287"} {
		if got := ratioText(v); got != want {
			t.Errorf("%v: got %q, want %q", v, got, want)
		}
	}
}

func TestFiles(t *testing.T) {
	r := sampleReport()
	var text bytes.Buffer
	if err := r.writeJSON(&text); err != nil {
		t.Fatal(err)
	}
	var back comparisonReport
	if err := json.Unmarshal(text.Bytes(), &back); err != nil || back.Lines[0].Cells["htcondor"].Values[1] != 3 ||
		back.Version["roost"] != "0.1.0" || !back.Date.Equal(r.Date) {
		t.Errorf("%v: got %+v", err, back)
	}
	text.Reset()
	if err := r.writeCSV(&text); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&text).ReadAll()
	if err != nil || len(rows) != 1+4*4 || rows[1][4] != "roost" || rows[1][7] != "0.03" || rows[2][10] != "100" ||
		rows[4][11] != "start: no daemon" {
		t.Errorf("%v: got %q", err, rows)
	}
	text.Reset()
	if err := r.drawCharts(&text); err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(&text); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	text.Reset()
	if err := (&comparisonReport{}).drawCharts(&text); err != nil || text.Len() > 0 {
		t.Errorf("of nothing: %v, %d bytes", err, text.Len())
	}
}
