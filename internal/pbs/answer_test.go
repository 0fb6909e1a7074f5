package pbs

import (
	"strings"
	"testing"

	"github.com/roost-batch/roost"
)

func TestAnswer(t *testing.T) {
	for _, c := range []struct {
		kind  roost.Kind
		text  string // as the schedd says it
		words string
		code  int
	}{
		{roost.NotFound, "queue wrok: not found: there is no such queue; there are work", "qsub: Unknown queue: queue wrok: ", 170},
		{roost.Conflict, "queue closed: not possible in this state: it takes no jobs now", "qsub: Queue is not enabled: ", 173},
		{roost.PermissionDenied, "queue urgent: permission denied: ann may not use it", "qsub: Access to queue is denied: ", 174},
		{roost.Exhausted, "queue work: limit reached: a task asks for 8GiB of memory, and 4GiB is the most here", "qsub: Job violates queue and/or server resource limits: ", 188},
		{roost.Exhausted, "limit reached: 5 tasks are queued, these would make 10, and this schedd takes 8", "qsub: Maximum number of jobs already in queue: ", 198},
		{roost.Exhausted, "queue short: limit reached: 3 tasks of ann are in it and not done, these would make 4, and 3 is the most", "qsub: Maximum number of jobs already in queue: ", 198},
		{roost.NotFound, `dependency "afterok:9": not found: there is no job 9`, "qsub: Invalid Job Dependency: ", 206},
		{roost.Conflict, `dependency "afterok:9": not possible in this state: that job has ended otherwise already`, "qsub: Invalid Job Dependency: ", 206},
		{roost.NotFound, "group sci.chme: not found: there is no such group", "qsub: Illegal attribute or resource value: ", 166},
		{roost.Conflict, "queue urgent: not possible in this state: the job asks for band free", "qsub: Illegal attribute or resource value: ", 166},
	} {
		got, ok := Answer(c.kind, c.text)
		if !ok || got.Code != c.code || got.Text != c.words+strings.TrimPrefix(got.Text, c.words) || !strings.HasSuffix(got.Text, c.text) {
			t.Errorf("%s: got %+v, want %s with %d", c.text, got, c.words, c.code)
		}
	}
	if got, ok := Answer(roost.Unavailable, "the schedd does not answer: connection refused"); ok {
		t.Errorf("silence became %+v", got)
	}
}
