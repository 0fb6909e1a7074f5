package cli

import (
	"testing"

	"github.com/roost-batch/roost/internal/cli/clitest"
	"github.com/roost-batch/roost/internal/wire"
)

// TestClassadWords holds that shells complete what may follow.
func TestClassadWords(t *testing.T) {
	for last, want := range map[string]string{"m": "match\tsay whether two ads match, and why not\n",
		"--ta": "--target\teval: the ad of FILE is the other side, TARGET\n"} {
		a, stdout, _ := newFullApp(t, t.TempDir())
		if a.Run(t.Context(), []string{"roost", "words", "--", "classad", last}); stdout.String() != want {
			t.Errorf("%s: got %q, want %q", last, stdout, want)
		}
	}
}

// TestJobWords checks that a shell completes the ids of jobs of all queues. The id of a
// job of another queue needs the name of its queue.
func TestJobWords(t *testing.T) {
	f := &clitest.FakeSchedd{Jobs: []*wire.JobStatus{
		{Id: "12.physics", Name: "hub", Owner: "ann", State: "running", Tasks: 1,
			Counts: clitest.TaskCounts("running", 1)},
		{Id: "7[].pool", Name: "sweep", Owner: "ann", State: "idle", Tasks: 1,
			Counts: clitest.TaskCounts("idle", 1)},
	}}
	for last, want := range map[string]string{
		"":   "last\tyour newest job\n12.physics\thub, running\n7\tsweep, idle\n",
		"12": "12.physics\thub, running\n",
	} {
		a, stdout, _ := newFullApp(t, f.Serve(t))
		if a.Run(t.Context(), []string{"roost", "words", "--", "show", last}); stdout.String() != want {
			t.Errorf("%q: got %q, want %q", last, stdout, want)
		}
	}
}
