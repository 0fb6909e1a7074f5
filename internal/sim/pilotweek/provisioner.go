package pilotweek

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/provision/plan"
)

// isDown reports whether an outer system does not answer now.
func (w *Week) isDown(s *OuterSystem) bool {
	return s.OutageEvery > 0 && w.now.Sub(w.begin)%s.OutageEvery >= s.OutageEvery-s.Outage
}

// demand is what waits, as the schedd would report it.
func (w *Week) demand() (list []plan.Demand) {
	for _, q := range w.queue {
		list = append(list, plan.Demand{Job: q.name, Submitter: owner, Band: roost.BatchBand, Units: q.left,
			Since: w.begin.Add(q.At), Walltime: q.Walltime, Class: q.class})
	}
	return list
}

// plan plans once, does what the plan says, and returns when to plan again.
func (w *Week) plan() time.Time {
	all, roomy := w.pilots()
	w.state.SeePilots(all, w.now)
	for _, s := range w.systems {
		w.askStatus(s)
	}
	demand := w.demand()
	result := w.state.Plan(w.now, demand, roomy)
	w.state.NoteSurplus(result.Surplus, w.now)
	for _, d := range result.Decisions {
		switch d.Action {
		case plan.Submit:
			w.submit(d)
		case plan.Cancel:
			w.cancel(d, len(demand) > 0)
		}
	}
	w.state.Forget(w.now)
	for _, p := range w.state.Providers { // its user comes every morning
		if p.History.Stopped && w.now.Sub(w.begin)%(24*time.Hour) < roundEvery {
			w.state.Resume(p.Name)
		}
	}
	next := w.now.Add(roundEvery)
	if !result.Next.IsZero() && result.Next.Before(next) {
		next = result.Next
	}
	return next
}

func (w *Week) system(name string) *OuterSystem {
	for _, s := range w.systems {
		if s.Name == name {
			return s
		}
	}
	panic("no provider " + name)
}

func (w *Week) submit(d plan.Decision) {
	s := w.system(d.Provider)
	w.report.Submits++
	w.report.MostSubmits = max(w.report.MostSubmits, 1)
	if last := w.submitted[s.Name]; !last.IsZero() && w.now.Sub(last) < 5*time.Second {
		w.report.MostSubmits++
	}
	w.submitted[s.Name] = w.now
	w.serial++
	key := fmt.Sprintf("k%05d", w.serial)
	w.state.Begin(key, d, w.now)
	if w.isDown(s) || w.random.Float64() < s.Refusals {
		w.state.SubmitRefused(key, "the outer system does not take it", w.now)
		return
	}
	wait := time.Duration(2 * w.random.Float64() * float64(s.MeanWait))
	if w.random.IntN(20) == 0 {
		wait = time.Duration(w.random.Float64() * float64(s.MaxWait))
	}
	j := &simJob{key: key, id: "id-" + key, of: s, nodes: d.Nodes, start: w.now.Add(wait),
		isBlackHole: w.random.Float64() < s.BlackHoles, running: make([][]simTask, d.Nodes),
		idleSince: make([]time.Time, d.Nodes), gone: make([]bool, d.Nodes)}
	w.jobs[key] = j
	w.state.SubmitTaken(key, j.id, w.now)
}

func (w *Week) cancel(d plan.Decision, tasksWait bool) {
	w.state.CancelOrdered(d, w.now)
	j := w.jobs[d.Key]
	if j == nil || j.ended || w.isDown(j.of) {
		return
	}
	w.report.Cancels++
	if tasksWait && !d.IsEarlyDeath {
		w.report.Reversals++
	}
	w.endJob(j)
}

// askStatus asks an outer system, at most once a minute.
func (w *Week) askStatus(s *OuterSystem) {
	living := w.state.Living(s.Name)
	last := w.asked[s.Name]
	if len(living) == 0 || !last.IsZero() && w.now.Sub(last) < statusEvery {
		return
	}
	w.asked[s.Name] = w.now
	w.report.MostStatus = max(w.report.MostStatus, 1)
	if w.isDown(s) {
		w.report.StatusFailures++
		w.state.StatusFailed(s.Name, "connection refused", w.now)
		return
	}
	var keys []string
	answers := map[string]plan.OuterStatus{}
	for _, a := range living {
		j := w.jobs[a.Key]
		if j == nil {
			continue
		}
		keys = append(keys, a.Key)
		status := plan.OuterStatus{ID: j.id}
		switch {
		case j.ended:
			status.State = plan.OuterEnded
		case !w.now.Before(j.start):
			status.State, status.Started = plan.OuterRunning, j.start
		}
		answers[j.id] = status
	}
	w.state.StatusAnswered(s.Name, keys, answers, w.now)
}
