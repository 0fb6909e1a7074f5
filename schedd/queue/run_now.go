package queue

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// An operator may have tasks start now, out of turn (OpenPBS, qrun). Such tasks make a
// request of their own, which the negotiator places before all others. That happens once:
// a task is like any other again when
//
//	its attempt has ended        until then it keeps the request that its claim is of
//	the negotiator denies it     no machine can take it now
//	it is held or removed

// runNowReason is the reason of events that ask for tasks to run now.
const runNowReason = "an operator asked for it to run now"

// maxRunHosts bounds how many machines one request to run now names.
const maxRunHosts = 1000

// RunNow decides that the waiting tasks of a target ask for a machine before all others.
// If machines are named, only those are asked for.
func (q taskDecisions) RunNow(now time.Time, who CallerIdentity, t TaskSelector,
	hosts []string) ([]eventlog.JobEvent, error) {
	if !who.Admin {
		return nil, fmt.Errorf("%v: %w: only who administers has jobs start out of turn", t, roost.PermissionDenied)
	}
	if len(hosts) > maxRunHosts {
		return nil, fmt.Errorf("%v: %w: %d machines are named, and %d is the most", t, roost.Invalid, len(hosts),
			maxRunHosts)
	}
	if i := slices.IndexFunc(hosts, func(h string) bool { return !hostName(h) }); i >= 0 {
		return nil, fmt.Errorf("%v: %w: %q is no name of a machine", t, roost.Invalid, hosts[i])
	}
	reason := runNowReason
	if len(hosts) > 0 {
		reason += " on " + strings.Join(hosts, " or ")
	}
	events, err := q.decideEach(now, who, t, eventlog.JobEvent{Type: eventlog.RunRequested, Reason: reason,
		Hosts: hosts},
		(*job).mayRunNow)
	if err != nil {
		return nil, err
	}
	j := q.jobs[t.Job.Seq]
	switch {
	case j.spec.Array && len(t.Ranges) == 0 && (j.gangs.size == 0 || j.spec.MPIGang):
		return nil, fmt.Errorf("%v: %w: name the tasks of the array that are to run, as in %d[1-3]",
			t, ErrWholeJobOnly, j.seq)
	case len(t.Ranges) > 0 && j.gangs.size > 0 && !j.spec.MPIGang && len(j.state) > 1:
		return nil, fmt.Errorf("%v: %w: its tasks start together: name the whole job", t, ErrWholeJobOnly)
	}
	var tasks []eventlog.IndexRange
	TaskSelector{Job: t.Job, Ranges: events[0].Ranges}.eachIndex(len(j.state), func(i int) {
		if j.mayRunNow(i) {
			tasks = appendIndex(tasks, i)
		}
	})
	events[0].Ranges = tasks
	return events, nil
}

// hostName reports whether a text can be the name of a machine.
func hostName(h string) bool {
	return h != "" && len(h) <= 255 && !strings.ContainsFunc(h, func(r rune) bool {
		return !strings.ContainsRune("-._:", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}

// mayRunNow reports whether a task waits for nothing but a machine, and all that start
// with it do.
func (j *job) mayRunNow(i int) bool {
	return j.state[i] == roost.Idle && (j.gangs.size == 0 || j.gangs.firstStartOnly ||
		j.gangs.wholeCount.Has(i/j.gangs.size))
}

// runRequested folds in that tasks are to run now.
func (q *Queue) runRequested(j *job, e eventlog.JobEvent) {
	order := &eventlog.RunOrder{By: e.RequestedBy, At: e.Time, Where: jobad.Anywhere}
	if len(e.Hosts) > 0 {
		order.Where = strings.Join(e.Hosts, "+")
	}
	if j.runDenied != "" {
		j.ownExtras().runDenied = ""
	}
	q.changeTasks(j, e, func(j *job, i int) {
		if j.state[i] == roost.Idle {
			j.ownExtras().order(i, order)
			q.updateRestoreClass(j, i)
		}
	})
}

// runDenied folds in that tasks cannot run now.
func (q *Queue) runDenied(j *job, e eventlog.JobEvent) {
	j.ownExtras().runDenied = e.Reason
	q.changeTasks(j, e, func(j *job, i int) {
		if j.state[i] == roost.Idle {
			delete(j.urgent, i)
			q.updateRestoreClass(j, i)
		}
	})
}

// runOrders is what an operator wants to run now of a job.
type runOrders struct {
	urgent    map[int]*eventlog.RunOrder // by task, until its attempt has ended
	runDenied string                     // why the last request of that kind was denied; empty: it was not
}

func (j *runOrders) order(i int, o *eventlog.RunOrder) {
	if j.urgent == nil {
		j.urgent = map[int]*eventlog.RunOrder{}
	}
	j.urgent[i] = o
}

// whereNow is where a task is to run now; empty if it takes its turn.
func (j *runOrders) whereNow(i int) string {
	if o := j.urgent[i]; o != nil {
		return o.Where
	}
	return ""
}

// RunNowStatus is how a request to run tasks of a job now stands.
type RunNowStatus struct {
	By      string // who asked last; empty: nobody whose request is open
	Since   int64  // when, unix nanoseconds
	Hosts   []string
	Pending int    // tasks for which it is open: they wait, or are about to start
	Denied  string // why the last request was denied; empty: it was not
}

// RunNowStatus tells how a request to run tasks of a job now stands.
func (q statusView) RunNowStatus(seq uint64) (s RunNowStatus) {
	if j := q.jobs[seq]; j != nil {
		return j.runNowStatus()
	}
	return s
}

func (j *job) runNowStatus() (s RunNowStatus) {
	s.Denied = j.runDenied
	for i, o := range j.urgent {
		if j.state[i] != roost.Idle && j.state[i] != roost.Starting {
			continue
		}
		if s.Pending++; o.At >= s.Since {
			s.By, s.Since, s.Hosts = o.By, o.At, nil
			if o.Where != jobad.Anywhere {
				s.Hosts = strings.Split(o.Where, "+")
			}
		}
	}
	return s
}

// savedOrders lists what is asked for to run now, for a snapshot.
func (j *runOrders) savedOrders() (list []eventlog.TaskRunOrder) {
	var all []*eventlog.RunOrder
	tasks := map[*eventlog.RunOrder][]eventlog.IndexRange{}
	for _, i := range slices.Sorted(maps.Keys(j.urgent)) {
		o := j.urgent[i]
		if tasks[o] == nil {
			all = append(all, o)
		}
		tasks[o] = appendIndex(tasks[o], i)
	}
	for _, o := range all {
		list = append(list, eventlog.TaskRunOrder{RunOrder: *o, Tasks: tasks[o]})
	}
	return list
}

// restoreOrders brings back what was asked for to run now.
func (j *runOrders) restoreOrders(orders []eventlog.TaskRunOrder) {
	for n := range orders {
		o := &orders[n]
		for _, r := range o.Tasks {
			for i := r.First; i <= r.Last; i++ {
				j.order(i, &o.RunOrder)
			}
		}
	}
}
