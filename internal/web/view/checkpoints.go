package view

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/wire"
)

// maxTaskEvents bounds the events of which a timeline is made: of more, the newest.
const maxTaskEvents = 20_000

// TaskCheckpoints shows what became of the work of a task, by its checkpoints.
func TaskCheckpoints(c *route.Call) (any, error) {
	t, _, err := taskTimeline(c)
	return t, err
}

// TaskEvictions shows who displaced a task, what that cost, and where it went on.
func TaskEvictions(c *route.Call) (any, error) {
	t, events, err := taskTimeline(c)
	return document.PreemptionChainOf(&t, events), err
}

// taskTimeline reads the events of a task, and makes its timeline of them.
func taskTimeline(c *route.Call) (t document.CheckpointTimeline, events []*wire.JobEvent, err error) {
	id, err := idOf(c)
	if err != nil {
		return t, nil, err
	}
	row, err := findRow(c, id, &wire.QueryRequest{Tasks: isTaskID(id)})
	if err != nil {
		return t, nil, err
	}
	if !isOneTask(row) {
		return t, nil, fmt.Errorf("job %s: %w: it has several tasks; ask about one, as in 12[3].n2", id, roost.Invalid)
	}
	events, partial, err := taskEvents(c, id)
	t = document.CheckpointTimelineOf(row, events, time.Now())
	t.Partial = partial
	return t, events, err
}

// isOneTask reports whether a row is that of one task.
func isOneTask(row *wire.JobStatus) bool {
	return row.GetState() != "" || !row.GetArray() && row.GetTasks() <= 1
}

// taskEvents reads the events of a task, and reports whether the oldest are left out.
func taskEvents(c *route.Call, id string) (events []*wire.JobEvent, partial bool, err error) {
	err = ask(c, func(ctx context.Context, s wire.ScheddClient) error {
		events, partial = nil, false
		stream, err := s.Events(ctx, &wire.EventsRequest{Id: id})
		return drain(stream, err, func(e *wire.JobEvent) error {
			if len(events) == maxTaskEvents {
				events, partial = slices.Delete(events, 0, maxTaskEvents/2), true
			}
			events = append(events, e)
			return nil
		})
	})
	return events, partial, err
}
