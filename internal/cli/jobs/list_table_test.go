package jobs

import (
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/cli/clitest"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
)

// TestTablesFit holds that a window is never exceeded and that ids and states are never
// cut.
func TestTablesFit(t *testing.T) {
	f := clitest.SampleJobs()
	for width := 60; width <= 140; width += 5 {
		a, stdout, _ := newJobsApp(t, f.Serve(t))
		a.OutScreen = frame.Screen{Terminal: true, Width: width}
		if code := a.Run(t.Context(), []string{"roost", "jobs", "--all", "--history"}); code != 0 {
			t.Fatalf("exit status %d", code)
		}
		for _, line := range strings.Split(stdout.String(), "\n") {
			if frame.TextWidth(line) > width {
				t.Errorf("width %d: %d characters: %q", width, frame.TextWidth(line), line)
			}
		}
		for _, j := range f.Jobs {
			if !strings.Contains(stdout.String(), j.GetId()+" ") ||
				!strings.Contains(stdout.String(), document.StateOf(j)) {
				t.Errorf("width %d: %s or its state is cut:\n%s", width, j.GetId(), stdout)
			}
		}
	}
}
