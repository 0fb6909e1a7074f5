package view

import (
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/wire"
)

// CronList is a list of jobs with a schedule, the one that runs next first.
type CronList struct {
	Version     int           `json:"v"`
	Schedules   []CronJob     `json:"schedules"`
	Truncated   bool          `json:"truncated,omitempty"` // there are more
	Unreachable []Unreachable `json:"unreachable,omitempty"`

	All bool `json:"-"`
}

// CronJob is a job with a schedule, and what became of its last instants.
type CronJob struct {
	Job      document.Job       `json:"job"`
	Schedule *document.Schedule `json:"schedule"`
	Runs     []document.Job     `json:"runs"`              // the last ones, the newest first
	Skipped  *document.Event    `json:"skipped,omitempty"` // the last instant without a run
}

// Bounds on a list of schedules. The runs of each cost two calls.
const (
	maxCronJobs = 100
	maxCronRuns = 5
)

// ListSchedules lists the user's jobs with a schedule, or those of all users.
func ListSchedules(c *route.Call) (any, error) {
	l := CronList{Version: document.Version, Schedules: []CronJob{}, All: c.QueryValue("all") == "1"}
	query := &wire.QueryRequest{Ads: true, Limit: maxCronJobs + 1,
		Selection: &wire.Selection{Constraint: roost.AttrSchedule + " =!= undefined", Mine: !l.All}}
	var found []*wire.JobStatus
	var err error
	l.Unreachable, err = queryPool(c, &wire.PoolQuery{Query: query}, func(s *wire.JobStatus) error {
		switch {
		case document.IsFinal(s):
		case len(found) == maxCronJobs:
			l.Truncated = true
		default:
			found = append(found, s)
		}
		return nil
	})
	for _, u := range l.Unreachable {
		c.NoteUnreachable(u.Node)
	}
	for _, s := range found {
		schedule := document.ScheduleOf(s.GetAd(), s.GetOwner(), time.Now())
		if schedule == nil || err != nil {
			continue
		}
		one := CronJob{Job: document.JobOf(s, false), Schedule: schedule}
		if err = one.readRuns(c, s); err == nil {
			l.Schedules = append(l.Schedules, one)
		}
	}
	slices.SortStableFunc(l.Schedules, func(a, b CronJob) int { return a.next().Compare(b.next()) })
	return l, err
}

// next returns the next instant. A schedule without one comes last.
func (j *CronJob) next() time.Time {
	if len(j.Schedule.Next) > 0 {
		if t, err := time.Parse(time.RFC3339, j.Schedule.Next[0]); err == nil {
			return t
		}
	}
	return time.Unix(1<<40, 0)
}

// NextRun returns the next instant for the page; empty: there is none.
func (j *CronJob) NextRun() string {
	if len(j.Schedule.Next) == 0 {
		return ""
	}
	return j.Schedule.Next[0]
}

// readRuns reads what became of the last instants.
func (j *CronJob) readRuns(c *route.Call, s *wire.JobStatus) (err error) {
	j.Runs = []document.Job{}
	runs, err := scheduledRuns(c, s)
	if err != nil {
		return err
	}
	j.Runs = append(j.Runs, runs[:min(len(runs), maxCronRuns)]...)
	events, err := eventsOf(c, s.GetId())
	for i := range events {
		if events[i].What == "skipped" {
			j.Skipped = &events[i]
		}
	}
	return err
}
