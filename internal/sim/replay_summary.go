package sim

import (
	"cmp"
	"slices"

	"github.com/roost-batch/roost/internal/sim/trace"
)

// ReplaySummary holds the figures of a replay. Times are in seconds.
type ReplaySummary struct {
	Jobs        int
	Wait        ValueSpread
	Slowdown    float64 // mean bounded slowdown with a bound of ten seconds (Feitelson et al., JSSPP 1997, §3)
	Early       int     // jobs that started before the head of the queue
	Outlived    int     // jobs that exceeded their estimate
	Makespan    int64   // from the first submission to the last end
	Utilisation float64 // part of the processors that was in use during the makespan, 0 to 1
	WaitKnown   int     // jobs whose wait is in the log
	WaitEqual   int     // jobs that waited here exactly as long as in the log
}

// ValueSpread is the distribution of a figure over the jobs.
type ValueSpread struct {
	Mean                  float64
	Median, P95, P99, Max int64
}

// slowdownBound is the run time in seconds that shorter jobs count as. Without it, a job
// of one second that waits for ten would dominate the mean.
const slowdownBound = 10

// Summarize computes the figures of a replay on a number of processors.
func Summarize(p *Result, processors int64) ReplaySummary {
	s := ReplaySummary{Jobs: len(p.Jobs)}
	if s.Jobs == 0 {
		return s
	}
	waits := make([]int64, 0, s.Jobs)
	var slowdown, work float64
	first, last := p.Jobs[0].Submit, int64(0)
	for i := range p.Jobs {
		o := &p.Jobs[i]
		w := o.Waited()
		waits = append(waits, w)
		s.Wait.Mean += float64(w)
		slowdown += max(float64(w+o.Length)/float64(max(o.Length, slowdownBound)), 1)
		work += float64(o.Length) * float64(o.Procs)
		last = max(last, o.Start+o.Length)
		if o.Early {
			s.Early++
		}
		if o.Outlived > 0 {
			s.Outlived++
		}
		if o.Wait >= 0 {
			s.WaitKnown++
		}
		if w == o.Wait {
			s.WaitEqual++
		}
	}
	n := float64(s.Jobs)
	s.Wait.Mean /= n
	s.Slowdown, s.Makespan = slowdown/n, last-first
	s.Utilisation = work / (float64(s.Makespan) * float64(processors))
	slices.SortFunc(waits, cmp.Compare)
	at := func(percent int) int64 { return waits[(len(waits)-1)*percent/100] }
	s.Wait.Median, s.Wait.P95, s.Wait.P99, s.Wait.Max = at(50), at(95), at(99), at(100)
	return s
}

// ScheduleLog returns the replay as a log with the given header. Each job's wait, length
// and processors are those of the replay.
func (p *Result) ScheduleLog(headers []trace.HeaderField) *trace.Log {
	log := &trace.Log{Headers: headers, Jobs: make([]trace.Job, len(p.Jobs))}
	for i := range p.Jobs {
		o := &p.Jobs[i]
		log.Jobs[i] = o.Job
		log.Jobs[i].Wait, log.Jobs[i].RunTime, log.Jobs[i].Processors = o.Waited(), o.Length, o.Procs
	}
	return log
}
