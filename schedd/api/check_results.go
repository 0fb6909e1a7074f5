package api

import (
	"cmp"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// checkResults is how the health checks of live attempts end, as their nodes last said.
// It lives in memory only: a node says it again at the beginning of each session. It is
// bounded by the attempts that live, as an entry goes with its attempt. The loop owns it.
type checkResults map[roost.TaskID]attemptChecks

type attemptChecks struct {
	attempt roost.AttemptNumber
	results []*wire.CheckResult
}

// OnCheckResults takes in what a node says of the checks of an attempt that runs there.
func (act *jobActions) OnCheckResults(a roost.AttemptID, results []*wire.CheckResult) {
	if !act.queue.IsLive(a) {
		return
	}
	list := make([]*wire.CheckResult, 0, min(len(results), roost.MaxChecks))
	for _, r := range results[:min(len(results), roost.MaxChecks)] {
		if roost.CheckCheckName(r.GetName()) != nil {
			continue
		}
		one := &wire.CheckResult{Name: r.GetName(), Since: max(r.GetSince(), 0), Failures: r.GetFailures(),
			Detail: SanitizeSentence(r.GetDetail()), Untold: r.GetUntold(), Trouble: SanitizeSentence(r.GetTrouble())}
		if result := r.GetResult(); result == "passed" || result == "failed" {
			one.Result = result
		}
		list = append(list, one)
	}
	act.checkResults[a.Task] = attemptChecks{a.Attempt, list}
	act.jobTable.markChanged(a.Task.Job.Seq)
}

// addServiceHealth adds to a row how a service, or a task of it, is.
func (v *jobView) addServiceHealth(m *wire.JobStatus, st *queue.JobStatus) {
	s := st.Service
	if s == nil {
		return
	}
	h := &wire.ServiceHealth{Wanted: uint32(s.Wanted), States: map[string]uint32{},
		Autoscale: autoscaleRow(s.Autoscale), Vertical: sizeRow(s.Sizes)}
	for state, n := range s.ByState {
		if name := cmp.Or(roost.ServiceState(state).String(), "absent"); n > 0 {
			h.States[name] = uint32(n)
		}
	}
	if s.Waiting > 0 {
		h.States["waiting"] = uint32(s.Waiting)
		if h.States["absent"] -= min(uint32(s.Waiting), h.States["absent"]); h.States["absent"] == 0 {
			delete(h.States, "absent")
		}
	}
	for _, c := range s.Checks {
		h.Checks = append(h.Checks, &wire.CheckResult{Name: c.Name, Kind: c.Kind, Live: c.Live, Port: c.Port,
			Every: int64(c.Every)})
	}
	if st.Task != nil && st.Task.Service != nil {
		v.addTaskHealth(h, st)
	}
	m.Service = h
}

// addTaskHealth adds what is known of one task.
func (v *jobView) addTaskHealth(h *wire.ServiceHealth, st *queue.JobStatus) {
	t := st.Task.Service
	h.State, h.Since, h.Check, h.Detail = t.State.String(), t.Since, t.Check, validUTF8(t.Detail)
	h.Restarts, h.EarlyEnds, h.RestartAt, h.Revision = uint32(t.Restarts), uint32(t.EarlyEnds), t.RestartAt, t.Revision
	live := v.checkResults[st.Job.Task(st.Task.Index)]
	if live.attempt != st.Task.Attempt || !st.Task.State.IsActive() {
		return
	}
	for _, c := range h.Checks {
		for _, r := range live.results {
			if r.GetName() == c.GetName() {
				c.Result, c.Since, c.Failures, c.Detail = r.GetResult(), r.GetSince(), r.GetFailures(), r.GetDetail()
				c.Untold, c.Trouble = r.GetUntold(), r.GetTrouble()
			}
		}
	}
}
