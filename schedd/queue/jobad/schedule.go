package jobad

import (
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cron"
)

// What is done if a run has not ended when the next is due.
const (
	OverlapSkip    = "skip"    // the next is not made
	OverlapAllow   = "allow"   // both run
	OverlapReplace = "replace" // the earlier is removed
)

// Which runs are made whose instants have passed, as nobody could make them in time.
const (
	MissedLast = "last" // the last of them
	MissedNone = "none"
	MissedAll  = "all" // at most MaxMissed
)

// MaxMissed bounds how many runs are made at once that were missed.
const MaxMissed = 100

// Bounds and default of how late a run may be made.
const (
	MinDeadline     = time.Minute
	MaxDeadline     = 7 * 24 * time.Hour
	DefaultDeadline = time.Hour
)

// NeverStarts is the start time of a job with a schedule, in unix seconds: only its runs
// start.
const NeverStarts = 1 << 40

// OverlapNames lists what can be done about runs that overlap.
func OverlapNames() []string { return []string{OverlapSkip, OverlapAllow, OverlapReplace} }

// MissedNames lists what can be done about runs that were missed.
func MissedNames() []string { return []string{MissedLast, MissedNone, MissedAll} }

// ScheduleSettings say when runs of a job are made.
type ScheduleSettings struct {
	Cron, Zone      string
	Overlap, Missed string
	Deadline        time.Duration
}

// Parse returns the instants of the schedule of a job of a user. H is the same for all
// jobs of one name of one user.
func (s *ScheduleSettings) Parse(owner, job string) (*cron.Schedule, error) {
	zone, err := cron.LoadZone(s.Zone)
	if err != nil {
		return nil, err
	}
	schedule, err := cron.Parse(s.Cron, zone, owner+"/"+job)
	if err != nil {
		return nil, fmt.Errorf("cron %q: %w: %w", s.Cron, roost.Invalid, err)
	}
	return schedule, nil
}

// ReadSchedule reads the schedule of a job's ad; nil: it has none.
func ReadSchedule(ad *classad.Ad) (*ScheduleSettings, error) {
	r := adReader{ad: ad}
	s := r.schedule()
	return s, r.err
}

// schedule reads the schedule of a job; nil: it has none. Whether its text means anything
// is checked when the job is submitted, as an older host may not know a zone.
func (r *adReader) schedule() *ScheduleSettings {
	if !r.has(roost.AttrSchedule) {
		return nil
	}
	nested, ok := r.ad.Sub(roost.AttrSchedule)
	if !ok {
		r.fail(roost.AttrSchedule, "a nested ad is wanted")
		return nil
	}
	in := adReader{ad: nested}
	s := &ScheduleSettings{Cron: in.text(roost.AttrCron, ""), Zone: in.text(roost.AttrZone, "UTC"),
		Overlap: in.text(roost.AttrOverlap, OverlapSkip), Missed: in.text(roost.AttrMissed, MissedLast)}
	s.Deadline = time.Duration(in.real(roost.AttrDeadline, DefaultDeadline.Seconds(), MaxDeadline.Seconds()) *
		float64(time.Second))
	switch {
	case in.err != nil:
		r.fail(roost.AttrSchedule, in.err.Error())
	case !slices.Contains(OverlapNames(), s.Overlap):
		r.fail(roost.AttrSchedule, fmt.Sprintf("overlap %q is none of %v", s.Overlap, OverlapNames()))
	case !slices.Contains(MissedNames(), s.Missed):
		r.fail(roost.AttrSchedule, fmt.Sprintf("missed %q is none of %v", s.Missed, MissedNames()))
	case s.Deadline < MinDeadline:
		r.fail(roost.AttrSchedule, fmt.Sprintf("a deadline of less than %v", MinDeadline))
	case r.has(roost.AttrStartAfter):
		r.fail(roost.AttrSchedule, "a job has a start time or a schedule, and not both")
	case r.has(roost.AttrDependsOn):
		r.fail(roost.AttrSchedule, "a job with a schedule waits for no other job")
	case r.has(roost.AttrService):
		r.fail(roost.AttrSchedule, "a service has no schedule")
	case r.boolean(roost.AttrInteractive, false):
		r.fail(roost.AttrSchedule, "a job with a terminal has no schedule")
	}
	return s
}
