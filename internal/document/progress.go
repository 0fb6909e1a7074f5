package document

import (
	"time"

	"github.com/roost-batch/roost"
)

// Progress is how far a job of several tasks is.
type Progress struct {
	Ended uint32 `json:"ended"` // tasks
	Tasks uint32 `json:"tasks"`
	// when all have ended, if they go on to end as fast as so far; empty: nobody knows
	End string `json:"end,omitempty"`
}

// minProgress is how many tasks have to have ended before the rate says something.
const minProgress = 2

// ProgressOf estimates when a job ends by how fast its tasks have ended since the first
// one started. It returns nil for a job that has ended, for one of a single task, and for
// a service, whose tasks are not meant to end.
func ProgressOf(j *Job, now time.Time) *Progress {
	if j.Tasks < 2 || j.Ended != "" || j.Service != nil {
		return nil
	}
	count := func(states ...roost.TaskState) (n uint32) {
		for _, s := range states {
			n += j.Counts[s.String()]
		}
		return n
	}
	p := &Progress{Ended: count(roost.Completed, roost.Removed), Tasks: j.Tasks}
	began, err := time.Parse(time.RFC3339, j.Started)
	passed := now.Sub(began)
	stays := count(roost.Held, roost.Blocked, roost.Suspended) > 0
	runs := count(roost.Starting, roost.Running, roost.Exiting) > 0
	done := j.Counts[roost.Completed.String()] // a removal says nothing of how fast tasks run
	if err != nil || passed <= 0 || done < minProgress || stays || !runs || p.Ended >= p.Tasks {
		return p
	}
	left := float64(passed) / float64(done) * float64(p.Tasks-p.Ended)
	if left < float64(maxProgress) {
		p.End = now.Add(time.Duration(left)).UTC().Format(time.RFC3339)
	}
	return p
}

// maxProgress is how far ahead an end is estimated.
const maxProgress = 5 * 365 * 24 * time.Hour
