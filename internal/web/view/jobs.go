package view

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/wire"
)

// JobList is a part of the list of jobs, or of the tasks of a job, the newest first.
type JobList struct {
	Version     int            `json:"v"`
	Jobs        []document.Job `json:"jobs"`
	Unreachable []Unreachable  `json:"unreachable,omitempty"`
	Next        string         `json:"next,omitempty"` // cursor of the next part; empty: this is the last

	Filter JobFilter `json:"-"` // for the form of the page
}

// JobFilter is what the address of a list says.
type JobFilter struct {
	All, History bool
	Owner        string
	States       []string
	Selectors    []string
	Limit        int
	After        string
}

// Jobs shows jobs of all schedds.
func Jobs(c *route.Call) (any, error) {
	f, err := jobFilterOf(c)
	if err != nil {
		return nil, err
	}
	query := &wire.QueryRequest{Selection: f.selection(), History: f.History, Limit: uint32(f.Limit)}
	list := JobList{Version: document.Version, Jobs: []document.Job{}, Filter: f}
	list.Unreachable, err = queryPool(c, &wire.PoolQuery{Query: query}, func(s *wire.JobStatus) error {
		list.Jobs = append(list.Jobs, document.JobOf(s, false))
		return nil
	})
	return list, err
}

// jobFilterOf reads the query of a list.
func jobFilterOf(c *route.Call) (f JobFilter, err error) {
	q := c.Request.URL.Query()
	f.All, f.History = q.Get("all") == "1", q.Get("history") == "1"
	f.Owner, f.After = q.Get("owner"), q.Get("after")
	f.Selectors = strings.Fields(strings.Join(q["select"], " "))
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

func (f JobFilter) selection() *wire.Selection {
	return &wire.Selection{Selectors: f.Selectors, States: f.States, Mine: !f.All && len(f.Selectors) == 0}
}

// JobDetail is a job with what happened to it.
type JobDetail struct {
	Version int              `json:"v"`
	Job     document.Job     `json:"job"`
	Events  []document.Event `json:"events"`
}

// Job shows one job or task.
func Job(c *route.Call) (any, error) {
	id, err := idOf(c)
	if err != nil {
		return nil, err
	}
	status, err := findJob(c, id, false)
	if err != nil {
		return nil, err
	}
	d := JobDetail{Version: document.Version, Job: document.JobOf(status, isTaskID(id))}
	d.Events, err = eventsOf(c, id)
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

// isTaskID reports whether an id names a task of an array.
func isTaskID(id string) bool {
	_, after, ok := strings.Cut(id, "[")
	return ok && !strings.HasPrefix(after, "]")
}

// findJob asks for the status of one job or task, whether it has ended or not.
func findJob(c *route.Call, id string, ads bool) (status *wire.JobStatus, err error) {
	query := &wire.QueryRequest{Selection: &wire.Selection{Selectors: []string{id}}, History: true,
		Tasks: isTaskID(id), Limit: 2, Ads: ads}
	missing, err := queryPool(c, &wire.PoolQuery{Query: query}, func(s *wire.JobStatus) error {
		if status == nil {
			status = s
		}
		return nil
	})
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
