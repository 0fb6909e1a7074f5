package admission

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// A routing queue passes each job on to the first of its destinations that takes it
// (POSIX XCU 3.1.3, routing queues; OpenPBS, pbs_queue_attributes(7B):
// route_destinations). A job that none of them will ever take is refused at once, and
// not, as in OpenPBS, perhaps after its id was printed. One that is only in the wrong
// moment, as a destination is disabled or full, waits in the routing queue.

// What may be otherwise in a moment, so that a job waits for it in a routing queue.
var (
	errDisabled = fmt.Errorf("%w: it takes no jobs now", roost.Conflict)
	errFull     = fmt.Errorf("%w: as many jobs are in it as may be", roost.Exhausted)
)

// maxHops bounds through how many routing queues one after the other a job goes (PBS: max
// hop count).
const maxHops = 10

// routeJob puts a job into a destination of a routing queue, or into the queue itself to
// wait.
func (e *QueueAdmission) routeJob(spec *queue.SubmitSpec, q *wire.JobQueue) error {
	here := queue.SubmitSpec{Ad: spec.Ad.Copy(), Count: spec.Count, Columns: spec.Columns}
	if err := e.addToQueue(&here, q); err != nil {
		return err
	}
	var asked []string
	routed := queue.SubmitSpec{Ad: spec.Ad.Copy(), Count: spec.Count, Columns: spec.Columns}
	err := e.tryDestinations(&routed, q, &asked)
	switch {
	case err == nil && !e.waitsInRouting(spec, q):
		spec.Ad = routed.Ad
		return nil
	case err == nil, errors.Is(err, ErrRoutingWaits):
		removeQueueDefaults(spec.Ad)
		setQueueName(spec.Ad, q.GetName())
		return nil
	}
	return err
}

// waitsInRouting reports whether a routing queue retains a job though a destination might
// take it. The job is held, or waits for other jobs or for a time, and the queue does not
// pass on such jobs (OpenPBS: route_held_jobs, route_waiting_jobs). It is routed when it
// no longer waits.
func (e *QueueAdmission) waitsInRouting(spec *queue.SubmitSpec, q *wire.JobQueue) bool {
	held, _ := spec.Ad.Bool(roost.AttrHoldOnSubmit)
	_, depends := spec.Ad.Lookup(roost.AttrDependsOn)
	after, _ := spec.Ad.Int(roost.AttrStartAfter)
	held, waits := held || depends, after > e.Now.Unix()
	if st := e.Job; st != nil {
		held = st.Counts[roost.Held] > 0 || st.Counts[roost.Blocked] > 0 && !st.WaitsForTimeOnly
		waits = st.WaitsForTimeOnly
	}
	return held && !q.GetRouteHeld() || waits && !q.GetRouteWaiting()
}

// ErrRoutingWaits says that a job that no destination takes now may be taken later.
var ErrRoutingWaits = errors.New("it waits in a routing queue")

// tryDestinations tries the destinations of a routing queue in their order. asked lists
// the routing queues that the job has come through.
func (e *QueueAdmission) tryDestinations(spec *queue.SubmitSpec, q *wire.JobQueue, asked *[]string) error {
	if q.GetStopped() {
		return ErrRoutingWaits
	}
	if *asked = append(*asked, q.GetName()); len(*asked) > maxHops {
		return fmt.Errorf("queue %s: %w: it is the end of more than %d routing queues", q.GetName(),
			roost.Exhausted, maxHops)
	}
	waits := false
	var why []string
	for _, name := range q.GetDestinations() {
		err := e.tryDestination(spec, name, asked)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, ErrRoutingWaits), errors.Is(err, errDisabled), errors.Is(err, errFull):
			waits = true
		}
		why = append(why, err.Error())
	}
	if waits {
		return ErrRoutingWaits
	}
	if len(why) == 0 {
		why = []string{"it has none"}
	}
	return fmt.Errorf("queue %s: %w: none of its destinations takes the job: %s", q.GetName(), roost.Exhausted,
		strings.Join(why, "; "))
}

// tryDestination tries one destination.
func (e *QueueAdmission) tryDestination(spec *queue.SubmitSpec, name string, asked *[]string) error {
	to, ok := FindQueue(e.Policy, name)
	switch {
	case !ok:
		return fmt.Errorf("queue %s: %w: there is no such queue", name, roost.NotFound)
	case !to.GetRouting():
		return e.addToQueue(spec, to)
	case slices.Contains(*asked, name):
		return fmt.Errorf("queue %s: %w: the job comes from there", name, roost.Conflict)
	}
	here := queue.SubmitSpec{Ad: spec.Ad.Copy(), Count: spec.Count, Columns: spec.Columns}
	if err := e.addToQueue(&here, to); err != nil {
		return err
	}
	return e.tryDestinations(spec, to, asked)
}

// RouteOn puts a job that is in a routing queue into one of its destinations.
func (e *QueueAdmission) RouteOn(spec *queue.SubmitSpec, from string) error {
	q, ok := FindQueue(e.Policy, from)
	if !ok || !q.GetRouting() {
		return ErrRoutingWaits
	}
	var asked []string
	return e.tryDestinations(spec, q, &asked)
}
