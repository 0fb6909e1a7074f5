package document

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// upcomingRuns is how many instants of a schedule are shown.
const upcomingRuns = 5

// Schedule is the schedule of a job, and its next instants.
type Schedule struct {
	Cron     string   `json:"cron"`
	Zone     string   `json:"zone"`
	Overlap  string   `json:"overlap"`
	Missed   string   `json:"missed"`
	Deadline float64  `json:"deadline"` // in seconds
	Next     []string `json:"next"`     // RFC 3339, in the zone
}

// ScheduleOf returns the schedule in the ad of a job. It is nil if there is none, or none
// that can be read here.
func ScheduleOf(adText, owner string, now time.Time) *Schedule {
	ad, err := classad.Parse(adText)
	if err != nil || adText == "" {
		return nil
	}
	settings, err := jobad.ReadSchedule(ad)
	if settings == nil || err != nil {
		return nil
	}
	name, _ := ad.Str(roost.AttrJobName)
	instants, err := settings.Parse(owner, name)
	if err != nil {
		return nil
	}
	s := &Schedule{Cron: settings.Cron, Zone: settings.Zone, Overlap: settings.Overlap, Missed: settings.Missed,
		Deadline: settings.Deadline.Seconds(), Next: []string{}}
	for at := instants.Next(now); !at.IsZero() && len(s.Next) < upcomingRuns; at = instants.Next(at) {
		s.Next = append(s.Next, at.Format(time.RFC3339))
	}
	return s
}

// Text describes the schedule in a line, without its instants.
func (s *Schedule) Text() string {
	return fmt.Sprintf("%s in %s; overlap %s, missed %s within %v", s.Cron, s.Zone, s.Overlap, s.Missed,
		time.Duration(s.Deadline*float64(time.Second)))
}
