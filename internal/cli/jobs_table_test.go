package cli

import (
	"strings"
	"testing"
)

// TestTablesFit holds that a window is never exceeded and that ids and states are never
// cut.
func TestTablesFit(t *testing.T) {
	f := sampleJobs()
	for width := 60; width <= 140; width += 5 {
		a, stdout, _ := newJobsApp(t, f.serve(t))
		a.out = outputScreen{terminal: true, width: width}
		if code := a.Run(t.Context(), []string{"roost", "jobs", "--all", "--history"}); code != 0 {
			t.Fatalf("exit status %d", code)
		}
		for _, line := range strings.Split(stdout.String(), "\n") {
			if textWidth(line) > width {
				t.Errorf("width %d: %d characters: %q", width, textWidth(line), line)
			}
		}
		for _, j := range f.jobs {
			if !strings.Contains(stdout.String(), j.GetId()+" ") || !strings.Contains(stdout.String(), stateOf(j)) {
				t.Errorf("width %d: %s or its state is cut:\n%s", width, j.GetId(), stdout)
			}
		}
	}
}
