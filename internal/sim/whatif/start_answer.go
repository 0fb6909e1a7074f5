package whatif

import (
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/cellstate"
	"github.com/roost-batch/roost/negotiator/match"
)

// StartAnswer is the answer to when a job starts.
type StartAnswer struct {
	Tasks       int       // waiting tasks of the job
	Ahead       int       // tasks of the same request that start before them
	First       time.Time // start of its first task; zero: not by Until
	Last        time.Time // start of its last task; zero: not by Until
	Started     int       // tasks started by Until
	Until       time.Time // end of the simulation
	EndUnknown  int       // tasks, running or started later, whose end is unknown
	Events      int
	Digest      uint64
	StartCounts []StartCount // started tasks over time, in order; the first entry is what starts at once
	Machines    []string     // where its first task starts, or the units of its gang

	// why it does not start; nil if it does, or if its queue or the pool is stopped
	Explanation   *match.WaitExplanation
	StoppedReason string // the reason why the queue or pool is stopped
}

// MaxLookAhead is how far ahead a simulation looks.
const MaxLookAhead = 366 * 24 * time.Hour

// WhenStarts returns when a job of the checkpoint starts, by its id.
func WhenStarts(of *cellstate.CellCheckpoint, id string, lengths RuntimeModel) (*StartAnswer, error) {
	f, err := findJob(of, id)
	if err != nil {
		return nil, err
	}
	return startAnswer(of, []*cellstate.PendingRequest{f.ask}, f.earlierTasks, f.tasks, lengths)
}

// WhenSubmitted returns when a job would start if it were submitted at the time of the
// checkpoint.
func WhenSubmitted(of *cellstate.CellCheckpoint, job []*cellstate.PendingRequest,
	lengths RuntimeModel) (*StartAnswer, error) {
	with, tasks := *of, 0
	with.Requests = append(append([]*cellstate.PendingRequest{}, of.Requests...), job...)
	for i, a := range job {
		tasks += a.OwnWanted
		entered, err := admitToQueue(of, a)
		if err != nil {
			return nil, err
		}
		with.Requests[len(of.Requests)+i] = entered
	}
	return startAnswer(&with, with.Requests[len(of.Requests):], 0, tasks, lengths)
}

func startAnswer(of *cellstate.CellCheckpoint, job []*cellstate.PendingRequest, ahead, tasks int,
	lengths RuntimeModel) (*StartAnswer, error) {
	p, err := NewSimulation(of, lengths)
	if err != nil {
		return nil, err
	}
	if why := p.infeasibleReason(job); why != "" {
		return nil, fmt.Errorf("%w: it never starts: %s", roost.Invalid, why)
	}
	a := &StartAnswer{Tasks: tasks, Ahead: ahead}
	enough := func() bool {
		n := -ahead
		for _, one := range job {
			n += p.StartedUnits(one.Key)
		}
		if n > 0 && a.First.IsZero() {
			a.First, a.Machines = p.Now(), p.machinesOf(job)
		}
		if n >= tasks && a.Last.IsZero() {
			a.Last = p.Now()
		}
		a.Started = max(min(n, tasks), 0)
		a.addStartCount(p.now-of.Now.Unix(), a.Started)
		return n >= tasks
	}
	err = p.Run(p.now+int64(MaxLookAhead/time.Second), enough)
	if a.Until, a.Events, a.Digest, a.EndUnknown = p.Now(), p.Events, p.Digest(), p.EndUnknown; a.Last.IsZero() &&
		err == nil {
		policy := cellstate.NewPolicy(p.Ledger)
		if a.StoppedReason = policy.StopReason(job[0].Queue); a.StoppedReason == "" {
			a.Explanation = p.explainWaiting(job)
		}
	}
	return a, err
}

// machinesOf returns where tasks of a job have started so far, in the order of their
// starts.
func (p *Simulation) machinesOf(job []*cellstate.PendingRequest) (names []string) {
	for _, s := range p.Starts {
		if slices.ContainsFunc(job, func(one *cellstate.PendingRequest) bool { return one.Key == s.Key }) &&
			!slices.Contains(names, s.Machine) {
			names = append(names, s.Machine)
		}
	}
	return names
}

// infeasibleReason returns why no machine could ever run a job, "" if one could.
func (p *Simulation) infeasibleReason(job []*cellstate.PendingRequest) string {
	for _, one := range job {
		x := p.explainWaiting([]*cellstate.PendingRequest{one})
		if x == nil {
			continue
		}
		able := 0
		for _, r := range x.Reasons {
			if r.Kind > match.TooSmall || r.Kind == match.SeveralReasons || r.Kind == match.Drained ||
				r.Kind == match.OwnerActive {
				able += r.Machines
			}
		}
		if able == 0 && x.Machines > 0 {
			return x.Summary
		}
	}
	return ""
}

// explainWaiting returns why a job waits now; nil if it does not wait or has no
// explanation.
func (p *Simulation) explainWaiting(job []*cellstate.PendingRequest) *match.WaitExplanation {
	for _, one := range job {
		if a := p.byKey[one.Key]; a != nil {
			a.Explain = true
		}
	}
	s := p.Plan()
	plan := p.matcher.Plan(s)
	for _, one := range job {
		a := p.byKey[one.Key]
		if a == nil {
			continue
		}
		a.Explain = false
		for _, u := range plan.Unplaced {
			if u.Request == &a.Request {
				return u.Explanation
			}
		}
	}
	return nil
}
