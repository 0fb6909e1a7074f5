package api

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// serviceStatus is a task of a service of four tasks.
func serviceStatus(attempt roost.AttemptNumber, state roost.TaskState) *queue.JobStatus {
	s := &queue.ServiceStatus{HasChecks: true, Wanted: 4, Waiting: 1,
		Checks: []queue.HealthCheck{{Name: "up", Kind: "http", Port: "http", Every: 1e9},
			{Name: "alive", Kind: "tcp", Live: true}}}
	s.ByState[roost.NoServiceState], s.ByState[roost.ServiceReady] = 2, 2
	return &queue.JobStatus{Job: roost.JobID{Seq: 7, Host: "n1"}, Tasks: 4, Service: s,
		Task: &queue.TaskStatus{Index: 2, Attempt: attempt, State: state,
			Service: &queue.TaskServiceStatus{State: roost.ServiceStarting, Since: 5, Restarts: 3, Revision: 2}}}
}

// TestServiceHealth checks that a row has the checks of its job, with the results of the
// attempt that runs.
func TestServiceHealth(t *testing.T) {
	task := roost.JobID{Seq: 7, Host: "n1"}.Task(2)
	v := &jobView{checkResults: checkResults{task: {attempt: 4, results: []*wire.CheckResult{
		{Name: "alive", Result: "failed", Since: 9, Failures: 2, Detail: "refused", Kind: "forged"},
		{Name: "foreign", Result: "failed"}}}}}
	without := &wire.ServiceHealth{Wanted: 4, States: map[string]uint32{"ready": 2, "waiting": 1, "absent": 1},
		Checks: []*wire.CheckResult{{Name: "up", Kind: "http", Port: "http", Every: 1e9}, {Name: "alive", Kind: "tcp",
			Live: true}}, State: "starting", Since: 5, Restarts: 3, Revision: 2}
	with := proto.CloneOf(without)
	with.Checks[1].Result, with.Checks[1].Since, with.Checks[1].Failures = "failed", 9, 2
	with.Checks[1].Detail = "refused"
	for name, c := range map[string]struct {
		st   *queue.JobStatus
		want *wire.ServiceHealth
	}{
		"the attempt that runs": {serviceStatus(4, roost.Running), with},
		"a later attempt":       {serviceStatus(5, roost.Running), without},
		"it has ended":          {serviceStatus(4, roost.Blocked), without},
		"no service":            {&queue.JobStatus{}, nil},
	} {
		m := &wire.JobStatus{}
		v.addServiceHealth(m, c.st)
		if !proto.Equal(m.GetService(), c.want) {
			t.Errorf("%s: got %v, want %v", name, m.GetService(), c.want)
		}
	}
}

// TestExplainService checks what why says of a service that runs.
func TestExplainService(t *testing.T) {
	checks := []*wire.CheckResult{{Name: "up", Result: "failed", Detail: "503"}, {Name: "db"},
		{Name: "ok", Result: "passed"}}
	for _, c := range []struct {
		name         string
		health       *wire.ServiceHealth
		reason       string
		update       *wire.UpdateProgress
		want, advice string
	}{
		{name: "ready", health: &wire.ServiceHealth{State: "ready"}, want: "it runs; ready"},
		{name: "starting", health: &wire.ServiceHealth{State: "starting", Checks: checks},
			want: "it runs; starting: check up fails: 503, check db has no result yet"},
		{name: "unready", health: &wire.ServiceHealth{State: "unready"}, reason: "unready: check up: 503",
			want: "it runs; unready: check up: 503", advice: "see its output with: roost logs 7[2].n1"},
		{name: "update", health: &wire.ServiceHealth{State: "ready"},
			update: &wire.UpdateProgress{State: "waiting-promote", Revision: 3,
				Tasks: map[string]uint32{"new": 1, "old": 3}, Reason: "canaries work"},
			want: "it runs; ready; its update to revision 3 is waiting-promote, with 1 of 4 tasks new: canaries work",
			advice: "accept its canaries with: roost update --promote 7.n1; or go back with: " +
				"roost update --undo 7.n1"},
		{name: "closed", health: &wire.ServiceHealth{State: "ready"}, update: &wire.UpdateProgress{State: "closed"},
			want: "it runs; ready"},
		{name: "no service", want: "it runs"},
	} {
		reply := &wire.WhyReply{Summary: "it runs",
			Status: &wire.JobStatus{Id: "7[2].n1", Service: c.health, Update: c.update}}
		st := serviceStatus(1, roost.Running)
		st.Reason = c.reason
		(&jobView{}).explainService(reply, st)
		advice := ""
		if len(reply.Advice) > 0 {
			advice = reply.Advice[0]
		}
		if reply.Summary != c.want || advice != c.advice {
			t.Errorf("%s: got %q, %q", c.name, reply.Summary, reply.Advice)
		}
	}
}
