package ledger

import (
	"errors"
	"fmt"
	"slices"

	"github.com/roost-batch/roost"
)

// QueuePolicy is a queue to which users submit jobs by name (PBS: qmgr's queues). A job
// without one goes to the queue that the setting default_queue names, or to none. A
// routing queue passes each job to the first of its destinations that accepts it. A job
// waits there only while none does.
type QueuePolicy struct {
	Name    string `json:"name"`
	Band    string `json:"band,omitempty"` // band of its jobs; empty: batch
	Enabled bool   `json:"enabled"`        // the queue accepts jobs
	// its jobs may start or, in a routing queue, move to destinations
	Started      bool          `json:"started"`
	Priority     int32         `json:"priority,omitempty"`
	Defaults     ResourceRange `json:"default"` // for a job that requests no value
	MinResources ResourceRange `json:"least"`   // minimum request of a job; resources_min
	MaxResources ResourceRange `json:"most"`    // maximum request of a job; resources_max
	Running      CountLimits   `json:"running"` // limits on running tasks; max_run
	Queued       CountLimits   `json:"queued"`  // limits on unfinished tasks; max_queued
	Users        []string      `json:"users,omitempty"`
	// with Users: who may use the queue; all users if both are empty
	Groups []string `json:"groups,omitempty"`

	Routing bool `json:"routing,omitempty"`
	// queues to which a routing queue passes jobs, in the order of attempts; they need
	// not exist yet
	Destinations []string `json:"destinations,omitempty"`
	// the queue also routes jobs that are held or wait for other jobs
	RouteHeld     bool `json:"route_held_jobs,omitempty"`
	RouteWaiting  bool `json:"route_waiting_jobs,omitempty"` // the queue also routes jobs that wait for a time
	FromRouteOnly bool `json:"from_route_only,omitempty"`    // the queue accepts jobs from routing queues only

	DefaultChunk   ResourceRange `json:"default_chunk,omitzero"` // default of each chunk, applied after Defaults
	MaxArray       *int64        `json:"max_array,omitempty"`    // maximum number of tasks of a job
	KillDelay      *int64        `json:"kill_delay_seconds,omitempty"`
	RunningAmounts AmountLimits  `json:"running_amounts,omitempty"` // limits on amounts of running tasks; max_run_res
	// limits on amounts of unfinished tasks; max_queued_res
	QueuedAmounts AmountLimits `json:"queued_amounts,omitempty"`
	// like Running, but tasks may exceed it with resources that nobody else wants;
	// max_run_soft
	RunningSoft CountLimits `json:"running_soft,omitzero"`
	// the soft limits on amounts; max_run_res_soft
	RunningSoftAmounts AmountLimits `json:"running_soft_amounts,omitempty"`
	// the access lists of PBS, in addition to Users and Groups
	Access *QueueAccess `json:"access,omitempty"`
}

func (q QueuePolicy) name() string     { return q.Name }
func (q QueuePolicy) users() []string  { return q.Users }
func (q QueuePolicy) groups() []string { return q.Groups }

func (q QueuePolicy) check(*Ledger) error {
	if err := checkPlainName("a queue", q.Name); err != nil {
		return err
	}
	if q.Band != "" {
		if _, err := roost.ParsePriorityBand(q.Band); err != nil {
			return err
		}
	}
	if q.Priority < roost.MinPriority || q.Priority > roost.MaxPriority {
		return fmt.Errorf("priority %d is not between %d and %d", q.Priority, roost.MinPriority, roost.MaxPriority)
	}
	if err := checkRanges(q.Defaults, q.MinResources, q.MaxResources); err != nil {
		return err
	}
	if err := q.MinResources.firstAbove(q.MaxResources); err != nil {
		return fmt.Errorf("least: %w, the most: no job could enter it", err)
	}
	if err := q.MinResources.firstAbove(q.Defaults); err != nil {
		return fmt.Errorf("least: %w, the default: a job that does not say could not enter it", err)
	}
	if err := q.Defaults.firstAbove(q.MaxResources); err != nil {
		return fmt.Errorf("default: %w, the most: a job that does not say could not enter it", err)
	}
	if err := checkCounts(q.Running, q.Queued, q.RunningAmounts, q.QueuedAmounts); err != nil {
		return err
	}
	if err := checkCounts(q.RunningSoft, CountLimits{}, q.RunningSoftAmounts, nil); err != nil {
		return fmt.Errorf("soft limit: %w", err)
	}
	if err := q.checkRoute(); err != nil {
		return err
	}
	if err := checkCommonFields(q.DefaultChunk, q.MaxArray); err != nil {
		return err
	}
	if d := q.KillDelay; d != nil && (*d < 0 || *d > maxWalltime) {
		return fmt.Errorf("a kill delay of %d seconds: it must be between 0 and %d", *d, int64(maxWalltime))
	}
	if err := q.Access.check(); err != nil {
		return err
	}
	return checkAccountNames("a user", q.Users)
}

// maxDestinations bounds the number of destinations of a routing queue.
const maxDestinations = 100

func (q QueuePolicy) checkRoute() error {
	if !q.Routing {
		if len(q.Destinations) > 0 {
			return errors.New("it has destinations and is no routing queue: set routing, or take them away")
		}
		return nil
	}
	if len(q.Destinations) > maxDestinations {
		return fmt.Errorf("%d destinations, and %d is the most", len(q.Destinations), maxDestinations)
	}
	for i, name := range q.Destinations {
		if err := checkPlainName("a destination", name); err != nil {
			return err
		}
		if name == q.Name {
			return errors.New("it is its own destination")
		}
		if slices.Contains(q.Destinations[:i], name) {
			return fmt.Errorf("destination %s is listed twice", name)
		}
	}
	return nil
}

// checkCommonFields checks the fields that a queue and the pool have in common.
func checkCommonFields(chunk ResourceRange, array *int64) error {
	if err := chunk.check(); err != nil {
		return fmt.Errorf("default chunk: %w", err)
	}
	if array != nil && (*array < 0 || *array > maxCount) {
		return fmt.Errorf("the largest array has %d tasks: it must be between 0 and %d; leave it out for no bound",
			*array, maxCount)
	}
	return nil
}

// Queues lists the queues by name.
func (l *Ledger) Queues() []QueuePolicy {
	return slices.Collect(objectValues[QueuePolicy](l, KindQueue))
}

// Queue returns the queue with that name.
func (l *Ledger) Queue(name string) (QueuePolicy, bool) {
	return objectNamed[QueuePolicy](l, KindQueue, name)
}

// AdmitsUser reports whether a user may use the queue on behalf of a group. The group may
// be empty.
func (q QueuePolicy) AdmitsUser(user, group string) bool {
	if len(q.Users) == 0 && len(q.Groups) == 0 {
		return true
	}
	for _, g := range q.Groups {
		if g == group || groupLiesIn(group, g) {
			return true
		}
	}
	return slices.Contains(q.Users, user)
}
