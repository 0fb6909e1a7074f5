package fuzz

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/sim/faults"
	"github.com/roost-batch/roost/internal/sim/pool"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// CaseSchedule is what a job of a case has that has a schedule. It never runs itself; a
// run is made of it each minute.
type CaseSchedule struct {
	Overlap, Missed string
	Deadline        time.Duration
	// above 0: the clock of the node with its queue is set back by so much, and later
	// forward again
	Swing time.Duration
}

// scheduleStream seeds a separate stream for jobs with schedules.
const scheduleStream = 0x63726f6e

// scheduledNumber is the number of a case's job with a schedule.
const scheduledNumber = 3000

// Bounds on jobs with schedules.
const (
	// how long after the faults their users remove them
	scheduleTime = 4 * time.Minute
	// a clock that is set back by less than an hour is waited for
	minSwing     = 62 * time.Minute
	maxSwing     = 3 * time.Hour
	scheduleSpan = time.Minute
)

// drawScheduled draws a job with a schedule, which every fourth case has.
func (c *PoolCase) drawScheduled(r *faults.SeededRand) {
	if !r.OneIn(4) {
		return
	}
	j := c.drawJob(r.Split(), scheduledNumber)
	j.At, j.Tasks, j.ResubmitAfter = r.Duration(c.FaultsEnd/4), 1, 0
	j.Length = r.SkewedDuration(minTask, maxTask)
	j.Schedule = &CaseSchedule{Overlap: jobad.OverlapAllow, Missed: jobad.MissedAll, Deadline: time.Hour}
	if r.OneIn(2) {
		j.Schedule.Overlap = faults.PickOne(r, jobad.OverlapNames())
		j.Schedule.Missed = faults.PickOne(r, jobad.MissedNames())
	}
	if r.OneIn(2) {
		j.Schedule.Swing, j.Schedule.Deadline = r.SkewedDuration(minSwing, maxSwing), 5*time.Minute
	}
	if !r.OneIn(3) {
		j.Actions = nil
	}
	j.Actions = append(j.Actions, UserAction{Delay: c.FaultsEnd + scheduleTime - j.At, Verb: Remove})
	c.Jobs = append(c.Jobs, j)
}

// swingClocks draws that clocks of the nodes with a schedule go back, and forward again.
func (c *PoolCase) swingClocks(r *faults.SeededRand) {
	for i := range c.Jobs {
		j := &c.Jobs[i]
		if j.Schedule == nil || j.Schedule.Swing == 0 {
			continue
		}
		nodes := []string{fmt.Sprint(scheddPrefix, j.Schedd)}
		if j.InCell {
			nodes = nil
			for m := range c.Members {
				nodes = append(nodes, fmt.Sprint(memberPrefix, m))
			}
		}
		at := j.At + time.Minute + r.Duration(c.FaultsEnd/4)
		later := min(at+r.SkewedDuration(time.Second, c.FaultsEnd/4), c.FaultsEnd-time.Second)
		for _, name := range nodes {
			c.Faults = append(c.Faults,
				faults.Fault{At: at, Kind: faults.ClockStep, Node: name, Amount: -j.Schedule.Swing},
				faults.Fault{At: later, Kind: faults.ClockStep, Node: name, Amount: j.Schedule.Swing})
		}
	}
	faults.SortByTime(c.Faults)
}

// addTo completes the job in the form of package pool. steady says that no clock is set.
func (s *CaseSchedule) addTo(j *pool.JobConfig, steady bool) {
	ad := classad.New()
	ad.SetString(roost.AttrCron, "* * * * *")
	ad.SetString(roost.AttrOverlap, s.Overlap)
	ad.SetString(roost.AttrMissed, s.Missed)
	ad.SetReal(roost.AttrDeadline, s.Deadline.Seconds())
	j.Spec.Ad.SetAd(roost.AttrSchedule, ad)
	j.Schedule = &audit.ScheduleTerms{Every: scheduleSpan, Steady: steady,
		Complete: steady && s.Overlap == jobad.OverlapAllow && s.Missed == jobad.MissedAll && s.Deadline >= time.Hour}
}

// clocksAreRight reports whether no clock is set by which a job's queue goes.
func (c *PoolCase) clocksAreRight(j *CaseJob) bool {
	for _, f := range c.Faults {
		if f.Kind == faults.ClockStep && (f.Node == fmt.Sprint(scheddPrefix, j.Schedd) || isMember(f.Node)) {
			return false
		}
	}
	return true
}

// text describes the schedule as a part of what its user submits.
func (s *CaseSchedule) text() string {
	return fmt.Sprintf("; as a run of it each minute (overlap %s, missed %s, deadline %v)", s.Overlap, s.Missed,
		s.Deadline)
}
