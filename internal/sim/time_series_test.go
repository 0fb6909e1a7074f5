package sim

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/roost-batch/roost/internal/sim/trace"
)

// TestTimeSeries compares the spans with a count second by second.
func TestTimeSeries(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for round := range 60 {
		log, at := &trace.Log{}, int64(r.IntN(500))
		for i := range 1 + r.IntN(60) {
			at += int64(r.IntN(12))
			run := int64(1 + r.IntN(90))
			log.Jobs = append(log.Jobs, trace.Job{ID: int64(i + 1), Submit: at, RunTime: run,
				Processors: int64(1 + r.IntN(4)), RequestedTime: run, User: int64(r.IntN(5))})
		}
		p, err := Replay(log, ReplayOptions{Processors: 4, Order: EASY})
		if err != nil {
			t.Fatal(err)
		}
		c := NewTimeSeries(p, 1+r.IntN(40), r.IntN(4))
		for i, s := range c.Spans {
			var want TimeSpan
			want.UsedBy = make([]float64, len(c.Users)+1)
			from := c.From + int64(i)*c.Length
			for at := from; at < from+c.Length; at++ {
				waiting := 0
				for k := range p.Jobs {
					o := &p.Jobs[k]
					if o.Submit <= at && at < o.Start {
						waiting++
					}
					if o.Start == at {
						want.Started++
						want.Wait += float64(o.Waited())
						want.LongestWait = max(want.LongestWait, o.Waited())
					}
					if o.Start <= at && at < o.Start+o.Length {
						want.Used += float64(o.Procs) / float64(c.Length)
						by := len(c.Users)
						for n, u := range c.Users {
							if u == o.User {
								by = n
							}
						}
						want.UsedBy[by] += float64(o.Procs) / float64(c.Length)
					}
				}
				want.Waiting += float64(waiting) / float64(c.Length)
				want.MaxWaiting = max(want.MaxWaiting, waiting)
			}
			if want.Started > 0 {
				want.Wait /= float64(want.Started)
			}
			near := func(a, b float64) bool { return math.Abs(a-b) < 1e-6 }
			same := near(s.Used, want.Used) && near(s.Waiting, want.Waiting) && near(s.Wait, want.Wait) &&
				s.Started == want.Started && s.LongestWait == want.LongestWait
			for k := range want.UsedBy {
				same = same && near(s.UsedBy[k], want.UsedBy[k])
			}
			// MaxWaiting may be more than a second shows: a job can come and go within
			// one.
			if !same || s.MaxWaiting < want.MaxWaiting {
				t.Fatalf("round %d, span %d of %d s: got %+v, want %+v", round, i, c.Length, s, want)
			}
		}
	}
	if c := NewTimeSeries(&Result{}, 10, 2); c.Spans != nil {
		t.Errorf("of nothing: %+v", c)
	}
}
