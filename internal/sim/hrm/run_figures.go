package hrm

import (
	"slices"
	"time"
)

// RunFigures are a run in numbers. The delay of a job is the time from its submission
// until the last of its containers has started.
type RunFigures struct {
	MeanDelay, P95Delay, MaxDelay time.Duration // delays
	FirstStart                    time.Duration // until the first of a job's containers has started, on the mean
	LastEnd                       time.Duration // from a job's submission to its end, on the mean
	// of the jobs that have not ended, those that have not been placed, on the mean over
	// time: how busy the scheduler is (§6.1.3)
	Busy                float64
	Proposed, Conflicts int // containers
}

// Figures works them out.
func (r *RunResult) Figures() RunFigures {
	var f RunFigures
	var waited, there time.Duration
	delays := make([]time.Duration, 0, len(r.Jobs))
	for i := range r.Jobs {
		j := &r.Jobs[i]
		delays = append(delays, j.LastStarted-j.Submitted)
		waited += j.LastStarted - j.Submitted
		there += j.Ended - j.Submitted
		f.FirstStart += j.FirstStarted - j.Submitted
		f.Proposed += j.Proposed
		f.Conflicts += j.Conflicts
	}
	n := time.Duration(len(delays))
	slices.Sort(delays)
	f.MeanDelay, f.FirstStart, f.LastEnd = waited/n, f.FirstStart/n, there/n
	f.P95Delay, f.MaxDelay = delays[(len(delays)*95+99)/100-1], delays[len(delays)-1]
	f.Busy = float64(waited) / float64(there)
	return f
}

// ConflictRatio is the part of what was proposed that conflicted; 0 where nothing was.
func (f *RunFigures) ConflictRatio() float64 {
	if f.Proposed == 0 {
		return 0
	}
	return float64(f.Conflicts) / float64(f.Proposed)
}
