package view

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue/update"
)

// NameList is where the tasks of services are reached.
type NameList struct {
	Version   int                 `json:"v"`
	Endpoints []document.Endpoint `json:"endpoints"`
	Truncated bool                `json:"truncated,omitempty"` // there are more

	Filter NameFilter `json:"-"`
}

// NameFilter is what the address of a list of names says.
type NameFilter struct{ Owner, Name, Job string }

// Bounds of a list of names.
const (
	maxNames     = 2000
	maxNameQuery = 256 // bytes of a condition
)

// nameFilterOf reads what the address says.
func nameFilterOf(c *route.Call) (NameFilter, error) {
	f := NameFilter{Owner: c.QueryValue("owner"), Name: c.QueryValue("name"), Job: c.QueryValue("job")}
	for _, text := range []string{f.Owner, f.Name, f.Job} {
		if len(text) > maxNameQuery {
			return f, fmt.Errorf("%.40q: %w: it is too long", text, roost.Invalid)
		}
	}
	return f, nil
}

// readNames calls add with each endpoint that the collectors know.
func readNames(c *route.Call, f NameFilter, add func(document.Endpoint) error) error {
	query := &wire.NamesQuery{Owner: f.Owner, Name: f.Name, Job: f.Job}
	return ask(c, func(ctx context.Context, s wire.ScheddClient) error {
		stream, err := s.Names(ctx, query)
		return drain(stream, err, func(u *wire.NamesUpdate) error {
			for _, e := range u.GetEndpoints() {
				if err := add(document.EndpointOf(e)); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// Names shows where the tasks of services are reached.
func Names(c *route.Call) (any, error) {
	f, err := nameFilterOf(c)
	if err != nil {
		return nil, err
	}
	l := NameList{Version: document.Version, Endpoints: []document.Endpoint{}, Filter: f}
	err = readNames(c, f, func(e document.Endpoint) error {
		if l.Truncated = len(l.Endpoints) >= maxNames; !l.Truncated {
			l.Endpoints = append(l.Endpoints, e)
		}
		return nil
	})
	slices.SortFunc(l.Endpoints, func(a, b document.Endpoint) int {
		return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Job, b.Job),
			cmp.Compare(a.Index, b.Index))
	})
	return l, err
}

// Bounds of what the page of a job lists beside the job.
const (
	maxServiceTasks = 50
	maxRuns         = 10
)

// serviceTasks lists the tasks of a service with several, for its page.
func serviceTasks(c *route.Call, status *wire.JobStatus) (tasks []document.Job, err error) {
	if status.GetService() == nil || isOneTask(status) || document.IsFinal(status) {
		return nil, nil
	}
	query := &wire.QueryRequest{Selection: &wire.Selection{Selectors: []string{status.GetId()}}, Tasks: true,
		Limit: maxServiceTasks}
	_, err = queryPool(c, &wire.PoolQuery{Query: query}, func(s *wire.JobStatus) error {
		tasks = append(tasks, document.JobOf(s, true))
		return nil
	})
	return tasks, err
}

// scheduledRuns lists the newest jobs with the name of a job that has a schedule, as its
// runs have.
func scheduledRuns(c *route.Call, status *wire.JobStatus) (runs []document.Job, err error) {
	query := &wire.QueryRequest{Selection: &wire.Selection{}, Newest: true, History: true, NamePart: status.GetName(),
		Owners: []string{status.GetOwner()}, Limit: 5 * maxRuns, Since: time.Now().Add(-historySpan).UnixNano()}
	_, err = queryPool(c, &wire.PoolQuery{Query: query}, func(s *wire.JobStatus) error {
		if s.GetName() == status.GetName() && s.GetId() != status.GetId() && len(runs) < maxRuns {
			runs = append(runs, document.JobOf(s, false))
		}
		return nil
	})
	return runs, err
}

// addService adds what the page of a service, or of a job with a schedule, has besides.
func (d *JobDetail) addService(c *route.Call, status *wire.JobStatus) (err error) {
	d.UpdateCommands = updateCommands(d.Job.Update)
	d.ScaleCharts = scaleCharts(status.GetService().GetAutoscale())
	if d.Tasks, err = serviceTasks(c, status); err == nil && d.Schedule != nil {
		d.Runs, err = scheduledRuns(c, status)
	}
	return err
}

// The verbs of updates.
const (
	updateVerb  = "update"  // a word about the update of a service
	restartVerb = "restart" // its tasks are started again, one after the other
)

// updateOrderOf returns the order of a change; nil: it is about no update.
func (r *ActRequest) updateOrderOf() *wire.UpdateOrder {
	if r.Verb != updateVerb && r.Verb != restartVerb {
		return nil
	}
	return &wire.UpdateOrder{Command: r.Update}
}

// checkUpdate refuses a change with a wrong word about an update.
func (r *ActRequest) checkUpdate() error {
	_, known := update.ParseCommand(r.Update)
	switch {
	case r.Verb == updateVerb && !known:
		return fmt.Errorf("update: %w: the verb update needs one of %s", roost.Invalid,
			strings.Join(update.CommandNames(), ", "))
	case r.Verb != updateVerb && r.Update != "":
		return fmt.Errorf("update: %w: only the verb update has a word about it", roost.Invalid)
	}
	return nil
}

// updateCommands lists the words that a user can say about an update. One without a
// revision before, such as a restart of all tasks, cannot be undone.
func updateCommands(u *document.Update) []string {
	if u == nil {
		return nil
	}
	return slices.DeleteFunc(stateCommands(u.State), func(word string) bool {
		return word == update.Undo.String() && u.Before == 0
	})
}

// stateCommands lists the words that a user can say about an update in a state.
func stateCommands(state string) []string {
	switch state {
	case update.Rolling.String():
		return []string{"pause", "undo", "abort"}
	case update.Paused.String():
		return []string{"resume", "undo", "abort"}
	case update.WaitingPulse.String():
		return []string{"pulse", "pause", "undo", "abort"}
	case update.WaitingPromote.String():
		return []string{"promote", "undo", "abort"}
	case update.Undoing.String():
		return []string{"pause", "abort"}
	case update.UndoPaused.String():
		return []string{"resume", "abort"}
	case update.Done.String(), update.Partial.String(), update.Aborted.String():
		return []string{"undo", "close"}
	case update.Undone.String():
		return []string{"close"}
	}
	return nil
}
