package queue

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// health has a machine say how an attempt is, and reports whether that was news.
func (d *testQueue) health(a roost.AttemptID, s roost.ServiceState, check, detail string) bool {
	d.Helper()
	e, ok := d.queue.RecordHealth(d.now, a, s, check, detail)
	if ok {
		d.apply(e)
	}
	return ok
}

// run has the next task started.
func (d *testQueue) run() roost.AttemptID {
	d.Helper()
	a := d.start()
	e, ok := d.queue.RecordStarted(d.now, a)
	if !ok {
		d.Fatalf("%v: not started", a)
	}
	d.apply(e)
	return a
}

// services writes how the tasks of a service are.
func (d *testQueue) services(id roost.JobID) string {
	var all []string
	d.queue.EachTask(TaskSelector{Job: id}, func(s JobStatus) bool {
		if t := s.Task; t.Service == nil {
			all = append(all, t.State.String())
		} else {
			all = append(all, strings.TrimSpace(t.State.String()+" "+t.Service.State.String()))
		}
		return true
	})
	s, _ := d.queue.Status(id.Seq)
	return fmt.Sprintf("%s; %d of %d", strings.Join(all, ", "), s.Service.ByState[roost.ServiceReady], s.Service.Wanted)
}

func (d *testQueue) checkServices(id roost.JobID, want string) {
	d.Helper()
	if got := d.services(id); got != want {
		d.Fatalf("got %q, want %q", got, want)
	}
}

// TestServiceStates checks that a task with checks is ready when its machine says so, and
// one without when it runs.
func TestServiceStates(t *testing.T) {
	d := newTestQueue(t)
	plain := d.submit(2, "Service = []")
	a := d.start()
	d.checkServices(plain, "starting starting, idle; 0 of 2")
	e, _ := d.queue.RecordStarted(d.now, a)
	d.apply(e)
	d.run()
	d.checkServices(plain, "running ready, running ready; 2 of 2")

	d = newTestQueue(t)
	checked := d.submit(1, "Service = []; Checks = {[Name = \"up\"; Kind = \"exec\"; Command = {\"true\"}]}")
	a = d.run()
	d.checkServices(checked, "running starting; 0 of 1")
	if !d.health(a, roost.ServiceUnready, "up", "connection refused") ||
		d.health(a, roost.ServiceUnready, "up", "connection refused") {
		t.Fatal("the first word is news, and the second is not")
	}
	if s, _ := d.queue.Status(checked.Seq); s.Task.Service.Detail != "connection refused" ||
		s.Task.Service.Check != "up" {
		t.Fatalf("got %+v", s.Task.Service)
	}
	d.now = d.now.Add(time.Second)
	d.health(a, roost.ServiceReady, "up", "")
	d.checkServices(checked, "running ready; 1 of 1")
	d.checkSame(d.restoredCopy())
	d.health(a, roost.ServiceLeaving, "", "")
	d.checkServices(checked, "running leaving; 0 of 1")
	lost, _ := d.queue.RecordLost(d.now, a, "node gone")
	d.apply(lost)
	d.checkServices(checked, "idle; 0 of 1")
	if d.health(a, roost.ServiceReady, "up", "") {
		t.Fatal("a lost attempt is ready")
	}
	batch := d.submit(1, "")
	if s, _ := d.queue.Status(batch.Seq); s.Service != nil {
		t.Fatalf("a batch job is a service: %+v", s.Service)
	}
}

// TestServiceSpec checks what an ad may say of a service.
func TestServiceSpec(t *testing.T) {
	for src, want := range map[string]string{
		"Service = 3":                      "attribute Service: invalid request: an ad is wanted",
		"Service = [Restarts = -1]":        "attribute Restarts",
		"Service = [BackoffMax = 0.5]":     "attribute BackoffMax",
		"Service = [BackoffFirst = 7200]":  "attribute BackoffFirst",
		"Service = []; Checks = 1":         "attribute Checks: invalid request: a list of at most 16 ads is wanted",
		"Service = []; Walltime = 60":      "attribute Walltime",
		"Service = []; MaxRetries = 1":     "attribute MaxRetries",
		"Service = []; GangSize = 2":       "attribute GangSize",
		"Service = []; Interactive = true": "attribute Interactive",
		"Service = []; Rerunnable = false": "attribute Rerunnable",
		"Service = [Window = 0]":           "attribute Window",
		"Service = [LostAfter = 1e99]":     "attribute LostAfter",
		"Service = [Overlap = {}]":         "attribute Overlap",
	} {
		d := newTestQueue(t)
		_, _, _, err := d.queue.SubmitJobs(d.now, alice, "k", []SubmitSpec{{Ad: parseTestAd(t, src), Count: 2}},
			SubmitLimits{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", src, err, want)
		}
	}
	e := eventlog.JobEvent{Type: eventlog.BecameReady, Job: 1, ServiceState: roost.ServiceLost + 1}
	if _, err := eventlog.DecodeEvent(eventlog.AppendEvent(nil, &e)); err == nil {
		t.Error("a state that there is not was read")
	}
}
