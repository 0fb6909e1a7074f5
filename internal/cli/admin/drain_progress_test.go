package admin

import (
	"fmt"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// TestDrainProgress checks what is shown of the tasks that a drain waits for.
func TestDrainProgress(t *testing.T) {
	rows := []*scheddapi.JobStatus{{Id: "7.n1", Owner: "bob"}, {Id: "12[1].n1", Owner: "ann\n", Reason: "it waits"}}
	want := "n7: 2 tasks are left\n  12[1].n1 of ann\\x0a: it waits\n  7.n1 of bob: it runs to its end\n"
	if got := drainProgress("n7", rows); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := drainProgress("n7", rows[:1]); !strings.HasPrefix(got, "n7: 1 task is left\n") {
		t.Errorf("got %q", got)
	}
	for i := range 30 {
		rows = append(rows, &scheddapi.JobStatus{Id: fmt.Sprint(100 + i)})
	}
	if got := drainProgress("n7", rows); !strings.HasSuffix(got, "\n  and 12 more\n") {
		t.Errorf("got %q", got)
	}
}
