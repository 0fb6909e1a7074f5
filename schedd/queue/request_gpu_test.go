package queue

import (
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// queueWithJob takes one job in and returns its queue.
func queueWithJob(t *testing.T, text string, columns ...jobad.TaskColumn) *Queue {
	t.Helper()
	ad, err := classad.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	count := 1
	if len(columns) > 0 {
		count = len(columns[0].Values)
	}
	q := New("h")
	events, _, _, err := q.SubmitJobs(time.Unix(1, 0), CallerIdentity{User: "ann", UID: 1, Host: "h"}, "k",
		[]jobad.SubmitSpec{{Ad: ad, Count: count, Columns: columns}}, SubmitLimits{})
	if err != nil {
		t.Fatal(err)
	}
	q.Apply(events[0])
	return q
}

// TestGpuRequests holds how GPUs and their memory make requests of tasks.
func TestGpuRequests(t *testing.T) {
	q := queueWithJob(t, `[Cmd = "x"; RequestGpuMemory = 10240; AppClass = "stream"]`)
	r, _ := q.Request(q.Requests()[0])
	if r.Resources.GPUs != 1 || r.Resources.GPUMemory != 10*roost.GiB || r.Class != roost.AppStream {
		t.Errorf("memory alone asks for %v, class %s", r.Resources, r.Class)
	}
	for _, want := range []string{"RequestGpuMemory = 10240", `AppClass = "stream"`} {
		if !strings.Contains(r.Ad, want) {
			t.Errorf("the request's ad has no %s: %s", want, r.Ad)
		}
	}
	q = queueWithJob(t, `[Cmd = "x"; RequestGpuMemory = 1024]`,
		jobad.TaskColumn{Name: "RequestGpus", Values: []string{"0", "1", "1", "0"}},
		jobad.TaskColumn{Name: "RequestGpuMemory", Values: []string{"1", "1073741824", "1073741825", "2"}})
	if n := len(q.Requests()); n != 3 {
		t.Errorf("%d requests, want 3: one without GPUs, and two that differ in a byte", n)
	}
}

// TestRequestsDiffer holds that amounts that look alike when they are printed are
// different requests.
func TestRequestsDiffer(t *testing.T) {
	q := queueWithJob(t, `[Cmd = "x"]`, jobad.TaskColumn{Name: "RequestMemory", Values: []string{"1073741824",
		"1073741825"}})
	if n := len(q.Requests()); n != 2 {
		t.Errorf("%d requests for two amounts of memory", n)
	}
}

// TestPlacementRetained checks that the placement of an attempt is known as long as the
// attempt is. That includes a success with a compact record, and a restored job.
func TestPlacementRetained(t *testing.T) {
	q := queueWithJob(t, `[Cmd = "x"]`, jobad.TaskColumn{Name: "a", Values: []string{"1", "2", "3"}})
	places := []string{"gpu0", "gpu1", ""}
	for i, place := range places {
		now := time.Unix(int64(10+i), 0)
		e, a, err := q.AssignNext(now, roost.JobID{Seq: 1, Host: "h"}.Task(i), "node", "unix:x", 1)
		if err != nil {
			t.Fatal(err)
		}
		q.Apply(e)
		e, _ = q.RecordStarted(now, a)
		e.Placement = place
		if e, err = eventlog.DecodeEvent(eventlog.AppendEvent(nil, &e)); err != nil {
			t.Fatal(err)
		}
		q.Apply(e)
		if i == 1 {
			continue // it runs on
		}
		if e, err = q.RecordEnded(now, a, &eventlog.AttemptExit{Wall: 5}); err != nil {
			t.Fatal(err)
		}
		q.Apply(e)
	}
	snapshot, _ := q.Snapshot(1)
	again := New("h")
	if err := again.RestoreSnapshot(snapshot); err != nil {
		t.Fatal(err)
	}
	for _, q := range []*Queue{q, again} {
		for i, want := range places {
			st, _ := q.TaskStatus(roost.JobID{Seq: 1, Host: "h"}.Task(i))
			if st.Task.Placement != want || st.Task.Node != "node" {
				t.Errorf("task %d: %q on %q, want %q on node", i, st.Task.Placement, st.Task.Node, want)
			}
		}
	}
}
