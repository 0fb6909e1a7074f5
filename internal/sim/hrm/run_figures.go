package hrm

import (
	"slices"
	"time"
)

// RunFigures are the figures of a run. The delay of a job is the time from its submission
// to the start of its last container.
type RunFigures struct {
	MeanDelay, P95Delay, MaxDelay time.Duration // delays of jobs
	FirstStart                    time.Duration // mean time from a job's submission to its first container's start
	LastEnd                       time.Duration // mean time from a job's submission to its end
	// of the unfinished jobs the part that is not placed, as a mean over time: how busy
	// the scheduler is (§6.1.3)
	Busy                float64
	Proposed, Conflicts int // numbers of containers
}

// Figures computes the figures of a run.
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

// ConflictRatio returns the part of the proposals that conflicted; 0 if there were none.
func (f *RunFigures) ConflictRatio() float64 {
	if f.Proposed == 0 {
		return 0
	}
	return float64(f.Conflicts) / float64(f.Proposed)
}
