package submit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFlowFiles compares the DAG files that flows become, and what is wrong with others,
// with testdata/flows; -update writes it.
func TestFlowFiles(t *testing.T) {
	names, _ := filepath.Glob("testdata/flows/*.hcl")
	if len(names) == 0 {
		t.Fatal("no flows")
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			src, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			flow, diags := ReadFlow(src, testOptions(filepath.Base(name)))
			got := Format(diags, src, 100, false) + flow.Text
			if len(flow.Lines) != strings.Count(flow.Text, "\n") {
				t.Errorf("%d lines have %d places", strings.Count(flow.Text, "\n"), len(flow.Lines))
			}
			compareGolden(t, strings.TrimSuffix(name, ".hcl")+".txt", got)
		})
	}
}

// TestFlowOrigins checks that the lines of the DAG file lead to those of the flow.
func TestFlowOrigins(t *testing.T) {
	src, err := os.ReadFile("testdata/flows/all.hcl")
	if err != nil {
		t.Fatal(err)
	}
	flow, diags := ReadFlow(src, testOptions("all.hcl"))
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	lines, checked := strings.Split(string(src), "\n"), 0
	for i, line := range strings.Split(strings.TrimSuffix(flow.Text, "\n"), "\n") {
		word, name := "", ""
		switch fields := strings.Fields(line); fields[0] {
		case "RETRY":
			word, name = "retry", fields[1]
		case "PRIORITY":
			word, name = "priority", fields[1]
		default:
			continue
		}
		checked++
		if from := lines[flow.Lines[i].Start.Line-1]; !strings.Contains(from, word) {
			t.Errorf("%q of node %s comes from %q", line, name, from)
		}
	}
	if checked < 2 {
		t.Errorf("%d lines were checked", checked)
	}
}
