package flowplan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/submit/dag"
)

// BenchmarkCompile measures nodes with variables of their own: words, a list of words,
// and an amount of memory.
func BenchmarkCompile(b *testing.B) {
	const nodes = 100_000
	var text strings.Builder
	for i := range nodes {
		fmt.Fprintf(&text, "JOB N%d work.sub\n", i)
		fmt.Fprintf(&text, "VARS N%d seed=\"%d\" in=\"data/%d.dat\" more=\"-n %d -m\" mem=\"%dMB\"\n", i,
			i*7, i%1000, i%10, 100+i%50)
	}
	for _, test := range []struct{ name, job string }{
		{"words", "executable = /bin/echo\narguments = $(seed) --in $(in) $(more)\noutput = out/$(JOB).txt"},
		{"computed", "executable = /bin/echo\narguments = $(seed) $Fn(in) $(more)\nrequest_memory = $(mem)"},
	} {
		b.Run(test.name, func(b *testing.B) {
			files := textTree{"x.dag": text.String(), "work.sub": test.job}
			f, diags := dag.Parse(files, []string{"x.dag"}, dag.ParseOptions{SkipFileTests: true})
			if diags.HasErrors() {
				b.Fatal(diags.List)
			}
			b.ReportAllocs()
			for b.Loop() {
				jobs, diags := Compile(f, testOptions(files))
				if diags.HasErrors() || len(jobs.Templates) != 2 {
					b.Fatal(diags.List, len(jobs.Templates))
				}
			}
			b.ReportMetric(float64(nodes*b.N)/b.Elapsed().Seconds(), "nodes/s")
		})
	}
}
