package queue

import (
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// TestNextTaskExcept checks that a skipped task is not returned. Nothing is when all are
// skipped.
func TestNextTaskExcept(t *testing.T) {
	q := New("h")
	ad, err := classad.Parse(`[Cmd = "/bin/true"]`)
	if err != nil {
		t.Fatal(err)
	}
	events, _, _, err := q.SubmitJobs(time.Unix(1, 0), CallerIdentity{User: "ann", UID: 1}, "k",
		[]jobad.SubmitSpec{{Ad: ad, Count: 200}}, SubmitLimits{})
	if err != nil {
		t.Fatal(err)
	}
	q.Apply(events[0])
	for _, c := range []struct {
		skip func(i int) bool
		want int // -1: none
	}{
		{func(int) bool { return false }, 0},
		{func(i int) bool { return i == 0 }, 1},
		{func(i int) bool { return i < 64 }, 64},
		{func(i int) bool { return i != 199 }, 199},
		{func(int) bool { return true }, -1},
	} {
		got, ok := q.NextTaskExcept(1, func(t roost.TaskID) bool { return c.skip(t.Index) })
		if ok != (c.want >= 0) || ok && got.Index != c.want {
			t.Errorf("got %v, %v, want task %d", got, ok, c.want)
		}
	}
}
