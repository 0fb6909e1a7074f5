package flowplan

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/roost-batch/roost/internal/submit/dag"
)

// flowTree translates the flows in HCL of a tree.
type flowTree struct{ textTree }

func (t flowTree) Open(name string) (io.ReadCloser, error) {
	if filepath.Ext(name) != ".hcl" {
		return t.textTree.Open(name)
	}
	opts := testOptions(t.textTree).Job
	opts.Filename = name
	return TranslateFlow([]byte(t.textTree[name]), opts).Open(), nil
}

// TestSamples checks that the jobs of the sample flows can be compiled.
func TestSamples(t *testing.T) {
	names, _ := filepath.Glob("../../../etc/flows/*")
	files := textTree{"/bin/sh": "#", "/usr/bin/expr": "#"}
	flows := 0
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(name)] = string(text)
	}
	for name := range files {
		if e := filepath.Ext(name); e != ".dag" && e != ".hcl" {
			continue
		}
		flows++
		f, diags := dag.Parse(flowTree{files}, []string{name}, dag.ParseOptions{SkipFileTests: true})
		if diags.HasErrors() {
			t.Fatalf("%s: %v", name, diags.List)
		}
		if jobs, diags := Compile(f, testOptions(files)); diags.HasErrors() || len(jobs.Templates) < 2 {
			t.Errorf("%s: %v", name, diags.List)
		} else {
			for _, d := range diags.List {
				t.Errorf("%s: %v", name, d)
			}
		}
	}
	if flows == 0 {
		t.Fatal("no samples")
	}
}
