package submit

import (
	"testing"
	"time"
)

const wideJob = `job "wide" {
  command = ["echo", "--seed=${task.index}"]
  count   = 100000
  stdout  = "out.${task.index}"
}
`

// TestAlikeTasksAreCheap checks that identical tasks are never handled one by one. A
// hundred thousand take at most 20 ms, with room for a slow machine.
func TestAlikeTasksAreCheap(t *testing.T) {
	start := time.Now()
	jobs, diags := ParseFile([]byte(wideJob), testOptions("wide.hcl"))
	if took := time.Since(start); diags.HasErrors() || len(jobs) != 1 || len(jobs[0].Columns) != 0 ||
		took > 200*time.Millisecond {
		t.Fatalf("%d jobs in %v: %v", len(jobs), took, diags)
	}
}

func BenchmarkAlikeTasks(b *testing.B) {
	for b.Loop() {
		if _, diags := ParseFile([]byte(wideJob), testOptions("wide.hcl")); diags.HasErrors() {
			b.Fatal(diags)
		}
	}
}
