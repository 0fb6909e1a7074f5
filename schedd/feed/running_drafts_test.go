package feed

import (
	"slices"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/schedd/queue"
)

// TestRunningDrafts lists what runs and waits as random things happen to a queue. It
// compares that with the states of the tasks.
func TestRunningDrafts(t *testing.T) {
	running, suspended, waiting := 0, 0, 0
	for seed := range uint64(10) {
		q := queue.New(testHost)
		s := newRandomJobs(seed, q)
		w := &JobWalk{deriver: NewDeriver(testSource, testHost), host: testHost}
		for range 300 {
			for _, e := range s.step(t) {
				q.Apply(e)
			}
			seq := 1 + s.Uint64N(q.LastSeq()+1)
			drafts := w.RunningDrafts(q, seq, RunningOptions{Now: s.now, WithIdle: true})
			st, there := q.Status(seq)
			live, idle := 0, 0
			for state, n := range st.Counts {
				switch state := roost.TaskState(state); {
				case state.IsActive():
					live += n
				case !state.IsFinal():
					idle += n
				}
			}
			if want := live + min(idle, 1); !there || want == 0 {
				if len(drafts) != 0 {
					t.Fatalf("job %d has %d entries and nothing to list", seq, len(drafts))
				}
				continue
			} else if len(drafts) != 1+want || drafts[0].Job == nil {
				t.Fatalf("job %d with the states %v: got %d entries", seq, st.Counts, len(drafts))
			}
			for _, d := range drafts[1:] {
				switch a := d.Attempt; {
				case a.Attempt == 0:
					waiting++
				case a.Started == 0:
				case a.Wall != int64(millis(s.now.UnixNano())-a.Started):
					t.Fatalf("attempt %v runs since %d ms at %v: %d ms", a.AttemptKey, a.Started, s.now, a.Wall)
				default:
					checkSegments(t, a)
					running++
					if slices.ContainsFunc(a.Segments, func(s accounting.Segment) bool { return s.Suspended }) {
						suspended++
					}
				}
			}
			if len(w.RunningDrafts(q, seq, RunningOptions{})) > 1+live {
				t.Fatalf("job %d: what waits is listed without being asked for", seq)
			}
		}
	}
	if running < 100 || suspended < 10 || waiting < 100 {
		t.Errorf("only %d attempts ran, %d of them suspended, and %d jobs waited", running, suspended, waiting)
	}
}
