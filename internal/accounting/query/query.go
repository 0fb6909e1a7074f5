// Package query is the questions that commands and pages ask the accountant, and its
// answers. Both travel as JSON; an answer is lines, each of one value.
package query

import (
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// Query is a question.
type Query struct {
	Report  string            `json:"report"`
	From    accounting.Millis `json:"from,omitempty"` // inclusive; times are milliseconds since 1970
	To      accounting.Millis `json:"to,omitempty"`   // exclusive
	By      []string          `json:"by,omitempty"`   // of usage: owner, group, project, band, queue
	Owner   string            `json:"owner,omitempty"`
	Group   string            `json:"group,omitempty"`
	Project string            `json:"project,omitempty"`
	Queue   string            `json:"queue,omitempty"`
	Band    string            `json:"band,omitempty"`
	Host    string            `json:"host,omitempty"` // of the schedd
	Node    string            `json:"node,omitempty"`
	Job     uint64            `json:"job,omitempty"`     // number of a job of Host
	Task    *int              `json:"task,omitempty"`    // of windows: number of a task of the job, from 0
	Payer   *Payer            `json:"payer,omitempty"`   // of statements, adjustments and budgets; nil: all
	Time    string            `json:"time,omitempty"`    // of attempts: ByStart or BySubmit; empty: by their end
	Step    string            `json:"step,omitempty"`    // of timeline and bands: StepDay, which is the default, or StepHour
	Live    string            `json:"live,omitempty"`    // of attempts: LiveToo or LiveOnly; empty: none that runs
	Waiting bool              `json:"waiting,omitempty"` // with Live: jobs with tasks that wait, too
	// ByEnd counts an attempt as a whole in the hour in which it ended
	ByEnd bool `json:"by_end,omitempty"`
	Limit int  `json:"limit,omitempty"` // lines; 0: DefaultLimit
}

// Self stands for who asks, as an owner. No account has such a name.
const Self = "."

// The times by which attempts are selected and sorted, if not by their end: their start,
// or the submission of their job.
const (
	ByStart  = "start"
	BySubmit = "submit"
)

// Which attempts are listed that have not ended: after those that have, or alone.
const (
	LiveToo  = "too"
	LiveOnly = "only"
)

// The bounds of an answer in lines.
const (
	DefaultLimit = 10_000
	MaxLimit     = 1_000_000
	maxQuery     = 16 << 10 // bytes
)

// The reports.
const (
	Usage      = "usage"
	Attempts   = "attempts"
	Jobs       = "jobs" // by submission
	Ends       = "ends"
	Waits      = "waits"
	Sizes      = "sizes"
	Capacity   = "capacity"
	Efficiency = "efficiency"
	Sources    = "sources"
	Windows    = "windows"
	Timeline   = "timeline"
	Bands      = "bands"
	Waste      = "waste"
	Hours      = "hours"    // what attempts used, by the submission of their jobs
	Machines   = "machines" // changes of machines, and before them those that were there

	Statements  = "statements" // of the months of the range
	Rates       = "rates"
	Adjustments = "adjustments" // of the months of the range
	Budgets     = "budgets"     // at the end of the range
	Months      = "months"
	Reconcile   = "reconcile"
)

// Names lists the reports.
func Names() []string {
	return []string{Usage, Attempts, Jobs, Ends, Waits, Sizes, Capacity, Efficiency, Sources, Windows, Timeline,
		Bands, Waste, Hours, Machines, Statements, Rates, Adjustments, Budgets, Months, Reconcile}
}

// IsOwn reports whether a report can be about one user alone. The others are about the
// pool and name nobody.
func IsOwn(report string) bool {
	return slices.Contains([]string{Usage, Attempts, Jobs, Ends, Efficiency, Windows, Timeline, Waste, Hours,
		Statements, Adjustments, Budgets, Reconcile}, report)
}

// Parse reads and checks a question.
func Parse(text []byte) (q Query, err error) {
	if len(text) > maxQuery {
		return q, fmt.Errorf("report: %w: the question has %d bytes, %d at most", roost.Invalid, len(text), maxQuery)
	}
	if err := decode(text, &q); err != nil {
		return q, fmt.Errorf("report: %w", err)
	}
	switch {
	case !slices.Contains(Names(), q.Report):
		return q, fmt.Errorf("report %.40q: %w: there is %s", q.Report, roost.Invalid, strings.Join(Names(), ", "))
	case q.To == 0 && !slices.Contains([]string{Sources, Rates, Months}, q.Report) && q.Job == 0 || q.From < 0 ||
		q.To < q.From:
		return q, fmt.Errorf("report: %w: it needs a range of time, whose end is not before its begin", roost.Invalid)
	case q.Limit < 0 || q.Limit > MaxLimit:
		return q, fmt.Errorf("report: %w: a limit of %d lines; it is at most %d", roost.Invalid, q.Limit, MaxLimit)
	case q.Report == Windows && q.Job == 0 || q.Task != nil && *q.Task < 0:
		return q, fmt.Errorf("report: %w: windows are those of a job or a task", roost.Invalid)
	case q.Time != "" && q.Time != ByStart && q.Time != BySubmit:
		return q, fmt.Errorf("report by the time %.40q: %w: it is %s, %s, or empty", q.Time, roost.Invalid, ByStart,
			BySubmit)
	case q.Live != "" && (q.Report != Attempts || q.Live != LiveToo && q.Live != LiveOnly):
		return q, fmt.Errorf("report: %w: live is %s or %s, and of attempts", roost.Invalid, LiveToo, LiveOnly)
	case q.Step != "" && q.Step != StepDay && q.Step != StepHour:
		return q, fmt.Errorf("report: %w: a step is %s or %s", roost.Invalid, StepDay, StepHour)
	case q.Job != 0 && q.Host == "":
		return q, fmt.Errorf("report: %w: a job needs the name of its host", roost.Invalid)
	}
	if _, err := q.groupBy(); err != nil {
		return q, err
	}
	if err := q.checkMonths(); err != nil {
		return q, err
	}
	if q.Payer != nil {
		if err := q.Payer.Check(); err != nil {
			return q, err
		}
	}
	_, err = q.filter()
	return q, err
}

func (q *Query) limit() int {
	if q.Limit == 0 {
		return DefaultLimit
	}
	return q.Limit
}

func (q *Query) timeRange() accounting.TimeRange { return accounting.TimeRange{From: q.From, To: q.To} }

var groupNames = []struct {
	name string
	by   accounting.GroupBy
}{{"owner", accounting.ByOwner}, {"group", accounting.ByGroup}, {"project", accounting.ByProject},
	{"band", accounting.ByBand}, {"queue", accounting.ByQueue}}

func (q *Query) groupBy() (by accounting.GroupBy, err error) {
	for _, name := range q.By {
		found := false
		for _, g := range groupNames {
			if g.name == name {
				by, found = by|g.by, true
			}
		}
		if !found {
			return 0, fmt.Errorf("report by %.40q: %w: it is owner, group, project, band or queue", name, roost.Invalid)
		}
	}
	return by, nil
}

func (q *Query) filter() (f accounting.Filter, err error) {
	f = accounting.Filter{Owner: q.Owner, Group: q.Group, Project: q.Project, Queue: q.Queue, Host: q.Host,
		Node: q.Node}
	if q.Band != "" {
		band, err := roost.ParsePriorityBand(q.Band)
		if err != nil {
			return f, fmt.Errorf("report: %w: %w", roost.Invalid, err)
		}
		f.Bands = accounting.Bands(band)
	}
	return f, nil
}
