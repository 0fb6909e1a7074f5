package translate

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/submit"
)

var update = flag.Bool("update", false, "rewrite the expected results in testdata")

// TestGolden holds what becomes of realistic scripts; -update writes it.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, ".hcl") {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			r, err := File(src, Options{Name: filepath.Base(file)})
			if err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprintf("%s# %s: %d jobs, %d carried, %d lost, %d differ\n", r.Text, r.From, r.Jobs, r.Carried, r.Lost, r.Differs)
			want, err := os.ReadFile(file + ".hcl")
			if *update {
				err = os.WriteFile(file+".hcl", []byte(got), 0o644)
				want = []byte(got)
			}
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("run go test -update and look at the change; got:\n%s", got)
			}
			if again, err := File(src, Options{Name: filepath.Base(file)}); err != nil || again.Text != r.Text {
				t.Errorf("the second time it is another text (%v)", err)
			}
			parse(t, r.Text)
		})
	}
}

// parse gives a job file to what reads job files.
func parse(t *testing.T, text string) []submit.Job {
	t.Helper()
	environ := []string{}
	for _, name := range regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`).FindAllString(text, -1) { // whatever getenv may name
		environ = append(environ, name+"=x")
	}
	jobs, diags := submit.ParseFile([]byte(text), submit.Options{Filename: "x.hcl", Dir: "/data/ann", Home: "/home/ann", User: "ann", Environ: environ, Now: time.Unix(1e9, 0).UTC()})
	if diags.HasErrors() {
		t.Fatalf("%v\n%s", diags, text)
	}
	return jobs
}
