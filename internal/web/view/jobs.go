package view

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/chart"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/wire"
)

// JobList is a part of the list of jobs, or of the tasks of a job, the newest first.
type JobList struct {
	Version     int            `json:"v"`
	Jobs        []document.Job `json:"jobs"`
	Unreachable []Unreachable  `json:"unreachable,omitempty"`
	Next        string         `json:"next,omitempty"` // cursor of the next part; empty: this is the last

	// jobs that were read to be sorted; older ones are not in the list. 0: all were read
	SortedOf int `json:"sorted_of,omitempty"`

	Filter JobFilter  `json:"-"` // for the form of the page
	Layout ListLayout `json:"-"`
}

// JobFilter is what the address of a list says.
type JobFilter struct {
	All, History bool
	Owner        string
	Band, Queue  string
	Name         string // a part of it
	At           string // the only schedd
	States       []string
	Selectors    []string
	Since        string // with history: submitted since then
	Limit        int
	After        string
}

// historySpan is how far back ended jobs are listed unless the address says.
const historySpan = 31 * 24 * time.Hour

// Jobs returns the view of jobs of all schedds.
func (k *Cursors) Jobs(c *route.Call) (any, error) {
	f, err := jobFilterOf(c)
	if err != nil {
		return nil, err
	}
	query, err := f.query(time.Now())
	if err != nil {
		return nil, err
	}
	list := JobList{Version: document.Version, Jobs: []document.Job{}, Filter: f}
	var by *rowSort[document.Job]
	if list.Layout, by, err = layoutOf(c, jobColumns(), func(j *document.Job) string { return j.ID }); err != nil {
		return nil, err
	}
	if by != nil {
		return list, list.readSorted(c, by, query)
	}
	// the same user with the same conditions goes on with the same list
	bound := strings.Join(append([]string{c.Session.User, f.Owner, f.Band, f.Queue, f.Name, f.At,
		fmt.Sprint(f.All, f.History)}, f.States...), "\x00")
	places, err := k.open(f.After, bound)
	if err != nil {
		return nil, err
	}
	more := false
	list.Unreachable, err = queryPool(c, &wire.PoolQuery{Query: query, At: f.At, After: places},
		func(s *wire.JobStatus) error {
			if more = len(list.Jobs) == f.Limit && query.GetNewest(); more {
				return nil
			}
			list.Jobs = append(list.Jobs, document.JobOf(s, false))
			places = setPlace(places, s)
			return nil
		})
	if err == nil && more {
		list.Next, err = k.seal(places, bound)
	}
	for _, u := range list.Unreachable {
		c.NoteUnreachable(u.Node)
	}
	c.LinkNext("after", list.Next)
	return list, err
}

// maxSorted bounds the jobs that are read for a list in another order than the queue's.
const maxSorted = 20_000

// readSorted reads the jobs of a query and fills in a part of them, sorted by a column. A
// schedd has its jobs in one order only, so each part reads all of them.
func (l *JobList) readSorted(c *route.Call, by *rowSort[document.Job], query *wire.QueryRequest) error {
	if err := by.begin(l.Filter.Limit, l.Filter.After); err != nil {
		return err
	}
	done, err := c.BeginExpensive()
	if err != nil {
		return err
	}
	defer done()
	query.Limit = maxSorted + 1
	read := 0
	l.Unreachable, err = queryPool(c, &wire.PoolQuery{Query: query, At: l.Filter.At}, func(s *wire.JobStatus) error {
		if read++; read > maxSorted {
			l.SortedOf = maxSorted
			return nil
		}
		by.add(document.JobOf(s, false))
		return nil
	})
	l.Jobs, l.Next = by.rows()
	for _, u := range l.Unreachable {
		c.NoteUnreachable(u.Node)
	}
	c.LinkNext("after", l.Next)
	return err
}

// query returns the query of a list. Jobs that are named are all in one part.
func (f JobFilter) query(now time.Time) (*wire.QueryRequest, error) {
	sel := &wire.Selection{Selectors: f.Selectors, States: f.States, Mine: !f.All && f.Owner == ""}
	if len(f.Selectors) > 0 {
		sel.Mine = false
		return &wire.QueryRequest{Selection: sel, History: true, Limit: uint32(f.Limit)}, nil
	}
	q := &wire.QueryRequest{Selection: sel, History: f.History, Newest: true, NamePart: f.Name,
		Limit: uint32(f.Limit) + 1, Since: now.Add(-historySpan).UnixNano()}
	for _, of := range []struct {
		value string
		to    *[]string
	}{{f.Owner, &q.Owners}, {f.Band, &q.Bands}, {f.Queue, &q.Queues}} {
		if of.value != "" {
			*of.to = []string{of.value}
		}
	}
	if f.Since != "" {
		since, err := time.Parse(time.RFC3339, f.Since)
		if err != nil {
			if since, err = time.Parse(time.DateOnly, f.Since); err != nil {
				return nil, fmt.Errorf("since: %w: write it as 2026-03-01 or 2026-03-01T12:00:00Z", roost.Invalid)
			}
		}
		q.Since = since.UnixNano()
	}
	return q, nil
}

// jobFilterOf reads the query of a list.
func jobFilterOf(c *route.Call) (f JobFilter, err error) {
	q := c.Request.URL.Query()
	f.All, f.History = q.Get("all") == "1", q.Get("history") == "1"
	f.Owner, f.Band, f.Queue, f.Name, f.At = q.Get("owner"), q.Get("band"), q.Get("queue"), q.Get("name"), q.Get("at")
	f.After, f.Since = q.Get("after"), q.Get("since")
	f.Selectors = strings.Fields(strings.Join(q["select"], " "))
	if len(f.Selectors) > maxSelectors {
		return f, fmt.Errorf("select: %w: there are more than %d selectors", roost.Exhausted, maxSelectors)
	}
	for _, name := range q["state"] {
		if name == "" {
			continue
		}
		if _, err := roost.ParseTaskState(name); err != nil && name != "failed" {
			return f, fmt.Errorf("state: %w: %w; use one of %s, or failed", roost.Invalid, err,
				strings.Join(roost.TaskStateNames(), ", "))
		}
		f.States = append(f.States, name)
	}
	f.Limit, err = limitOf(c)
	return f, err
}

// JobDetail is a job with what happened to it.
type JobDetail struct {
	Version int              `json:"v"`
	Job     document.Job     `json:"job"`
	Events  []document.Event `json:"events"`
	// what to request next time, in the words of roost show; of one task
	Hints []string `json:"hints,omitempty"`

	// how far it is; null: it has ended, has one task, or is a service
	Progress *document.Progress `json:"progress,omitempty"`

	// when runs are made of a job that has a schedule
	Schedule *document.Schedule `json:"schedule,omitempty"`

	Container *document.ContainerImage `json:"container,omitempty"`

	// for the page; the API has routes of their own
	Tasks          []document.Job              `json:"-"` // of a service
	Runs           []document.Job              `json:"-"` // the newest of a job with a schedule
	UpdateCommands []string                    `json:"-"`
	ScaleCharts    []chart.Chart               `json:"-"` // of a service whose number of tasks follows its load
	Usage          JobUsage                    `json:"-"`
	Checkpoints    document.CheckpointTimeline `json:"-"`
	Preemption     document.PreemptionChain    `json:"-"`
}

// Job shows one job or task.
func Job(c *route.Call) (any, error) {
	id, err := idOf(c)
	if err != nil {
		return nil, err
	}
	status, err := findRow(c, id, &wire.QueryRequest{Tasks: isTaskID(id), Ads: true, Windows: c.IsPage})
	if err != nil {
		return nil, err
	}
	d := JobDetail{Version: document.Version, Job: document.JobOf(status, isTaskID(id))}
	if !isOneTask(status) {
		d.Progress = document.ProgressOf(&d.Job, time.Now())
	}
	if status.GetState() != "" {
		if d.Hints, err = hintsOf(c, status); err != nil {
			return nil, err
		}
	}
	d.Schedule = document.ScheduleOf(status.GetAd(), status.GetOwner(), time.Now())
	d.Container = document.ContainerImageOf(status.GetAd())
	if c.IsPage {
		d.Usage = jobUsageOf(c, status, chartWindows)
		if err = d.addService(c, status); err != nil {
			return nil, err
		}
	}
	if !isOneTask(status) {
		d.Events, err = eventsOf(c, id)
		return d, err
	}
	events, partial, err := taskEvents(c, id)
	d.Checkpoints = document.CheckpointTimelineOf(status, events, time.Now())
	d.Checkpoints.Partial = partial
	d.Preemption = document.PreemptionChainOf(&d.Checkpoints, events)
	d.Events = []document.Event{}
	for _, e := range events[max(len(events)-maxEvents, 0):] {
		d.Events = append(d.Events, document.EventOf(e))
	}
	return d, err
}

// EventList are the events of a job.
type EventList struct {
	Version int              `json:"v"`
	Events  []document.Event `json:"events"`
}

// Events shows what happened to a job or task.
func Events(c *route.Call) (any, error) {
	id, err := idOf(c)
	if err != nil {
		return nil, err
	}
	list := EventList{Version: document.Version}
	list.Events, err = eventsOf(c, id)
	return list, err
}

// maxEvents bounds the events that are shown: of more, the newest.
const maxEvents = 1000

func eventsOf(c *route.Call, id string) ([]document.Event, error) {
	events := []document.Event{}
	err := ask(c, func(ctx context.Context, s wire.ScheddClient) error {
		stream, err := s.Events(ctx, &wire.EventsRequest{Id: id})
		return drain(stream, err, func(e *wire.JobEvent) error {
			if len(events) == maxEvents {
				events = slices.Delete(events, 0, maxEvents/2)
			}
			events = append(events, document.EventOf(e))
			return nil
		})
	})
	return events, err
}

// Why explains why a job or task does not run.
func Why(c *route.Call) (any, error) {
	id, err := idOf(c)
	if err != nil {
		return nil, err
	}
	var e document.Explanation
	err = ask(c, func(ctx context.Context, s wire.ScheddClient) error {
		reply, err := s.Why(ctx, &wire.WhyRequest{Id: id})
		if err == nil {
			e = document.ExplanationOf(reply)
		}
		return err
	})
	return e, err
}

// maxID bounds the id of a job or task.
const maxID = 128

// idOf returns the id in the path of a call. Words for several jobs are refused: a page
// shows one.
func idOf(c *route.Call) (string, error) {
	id := c.PathValue("id")
	if id == "" || len(id) > maxID || id[0] < '0' || id[0] > '9' || strings.ContainsFunc(id, isForeign) {
		return "", fmt.Errorf("job %.40q: %w: it is no id of a job, as in 12.n2 or 12[3].n2", id, roost.NotFound)
	}
	return id, nil
}

// TaskID returns the id of a job or task in the path of a call.
func TaskID(c *route.Call) (string, error) { return idOf(c) }

// isTaskID reports whether an id names a task of an array.
func isTaskID(id string) bool {
	_, after, ok := strings.Cut(id, "[")
	return ok && !strings.HasPrefix(after, "]")
}

// findJob asks for the status of one job or task, whether it has ended or not.
func findJob(c *route.Call, id string, ads bool) (*wire.JobStatus, error) {
	return findRow(c, id, &wire.QueryRequest{Tasks: isTaskID(id), Ads: ads})
}

// findRow is findJob with what else a row shall have.
func findRow(c *route.Call, id string, query *wire.QueryRequest) (status *wire.JobStatus, err error) {
	query.Selection, query.History, query.Limit = &wire.Selection{Selectors: []string{id}}, true, 2
	missing, err := queryPool(c, &wire.PoolQuery{Query: query}, func(s *wire.JobStatus) error {
		if status == nil {
			status = s
		}
		return nil
	})
	if errors.Is(err, roost.NotFound) { // whether it is not there or not shown, the answer is the same
		status, err = nil, nil
	}
	switch {
	case err != nil:
		return nil, err
	case status == nil && len(missing) > 0:
		return nil, fmt.Errorf("job %s: %w: %s %s", id, roost.Unavailable, missing[0].Node, missing[0].Reason)
	case status == nil:
		return nil, fmt.Errorf("job %s: %w", id, roost.NotFound)
	}
	return status, nil
}

// isForeign reports whether a character is in no id of a job.
func isForeign(r rune) bool {
	return !(r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune(".-_[]", r))
}
