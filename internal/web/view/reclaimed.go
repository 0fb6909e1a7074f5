package view

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/chart"
	"github.com/roost-batch/roost/internal/web/route"
)

// Reclaimed is what the bands held and used of the machines over time (Borg §5.5). Core
// hours that are held beyond those of the machines are reclaimed. Other tasks had them
// and did not use them.
type Reclaimed struct {
	Version   int            `json:"v"`
	Since     string         `json:"since"`
	Until     string         `json:"until"`
	Total     float64        `json:"core_hours"` // of machines, as the report capacity
	Held      float64        `json:"held_core_hours"`
	Used      float64        `json:"used_core_hours"`
	Granted   float64        `json:"granted_core_hours"` // of all bands, with what is reclaimed
	Reclaimed float64        `json:"reclaimed_core_hours"`
	Hours     []CapacityHour `json:"hours"`
	Bands     []UsagePoint   `json:"bands"` // by hour

	Days     int `json:"-"`
	from, to time.Time
}

// CapacityHour is what all machines had and gave within an hour, in core hours.
type CapacityHour struct {
	Begin   string  `json:"begin"`
	Total   float64 `json:"core_hours"`
	Held    float64 `json:"held"`
	Used    float64 `json:"used"`
	Owner   float64 `json:"owner"`
	Drained float64 `json:"drained"`
	Idle    float64 `json:"idle"`

	at time.Time
}

// The range of the page in days.
const (
	defaultReclaimedDays = 2
	maxReclaimedDays     = 31
)

// ShowReclaimed shows what the bands held and used of the machines by the hour.
func ShowReclaimed(c *route.Call) (any, error) {
	r := Reclaimed{Version: document.Version, Days: defaultReclaimedDays, Hours: []CapacityHour{},
		Bands: []UsagePoint{}}
	if text := c.QueryValue("days"); text != "" {
		if _, err := fmt.Sscan(text, &r.Days); err != nil || r.Days < 1 || r.Days > maxReclaimedDays {
			return nil, fmt.Errorf("days: %w: it is a number from 1 to %d", roost.Invalid, maxReclaimedDays)
		}
	}
	r.to = time.Now().UTC()
	r.from = r.to.AddDate(0, 0, -r.Days).Truncate(time.Hour)
	r.Since, r.Until = document.Timestamp(r.from.UnixNano()), document.Timestamp(r.to.UnixNano())
	q := query.Query{Report: query.Capacity, By: []string{"owner"}, From: accounting.MillisOf(r.from),
		To: accounting.MillisOf(r.to)} // a line for each hour
	machines, err := askAccounts[accounting.CapacityLine](c, q, reportPatience)
	if err != nil {
		return nil, err
	}
	q.Report, q.By, q.Step = query.Bands, nil, query.StepHour
	points, err := askAccounts[query.PointLine](c, q, reportPatience)
	if err != nil {
		return nil, err
	}
	r.addMachines(machines)
	for i := range points {
		p := usagePointOf(&points[i])
		r.Granted += p.CoreHours
		r.Bands = append(r.Bands, p)
	}
	r.Reclaimed = max(r.Granted-r.Held, 0)
	return r, nil
}

// addMachines adds up the classes of machines. Lines come in the order of their hours.
func (r *Reclaimed) addMachines(lines []accounting.CapacityLine) {
	for i := range lines {
		l := &lines[i]
		at := l.Hour.Time()
		if n := len(r.Hours); n == 0 || !r.Hours[n-1].at.Equal(at) {
			r.Hours = append(r.Hours, CapacityHour{Begin: document.Timestamp(int64(l.Hour) * 1e6), at: at})
		}
		h := &r.Hours[len(r.Hours)-1]
		h.Total += float64(l.Total) / millisAnHour
		h.Held += float64(l.Held) / millisAnHour
		h.Used += float64(l.Used) / millisAnHour
		h.Owner += float64(l.Owner) / millisAnHour
		h.Drained += float64(l.Drained) / millisAnHour
		h.Idle += float64(l.Idle) / millisAnHour
	}
	for i := range r.Hours {
		r.Total += r.Hours[i].Total
		r.Held += r.Hours[i].Held
		r.Used += r.Hours[i].Used
	}
}

// Charts are the charts of the page. Core hours of an hour are cores.
func (r Reclaimed) Charts() []chart.Chart {
	if len(r.Hours) == 0 {
		return nil
	}
	granted := newBandChart("Cores that the bands hold, and those of the machines", r.from, r.to, time.Hour)
	used := newBandChart("Cores that the bands use", r.from, r.to, time.Hour)
	for _, band := range bandsOf(r.Bands) {
		for _, p := range r.Bands {
			if p.Band == band {
				granted.add(band, true, p.at, p.CoreHours)
				used.add(band, true, p.at, p.CPUHours)
			}
		}
	}
	for _, h := range r.Hours {
		granted.add("machines", false, h.at, h.Total-h.Owner-h.Drained)
		used.add("held", false, h.at, h.Held)
	}
	return []chart.Chart{granted.Chart, used.Chart}
}
