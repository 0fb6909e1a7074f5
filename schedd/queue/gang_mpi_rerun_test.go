package queue

import (
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// TestMPIGangNotRerunnable checks the loss of a part of a job that may not be run twice.
// A job of PBS ends, whichever part it is, and says why; a job of another kind is held.
func TestMPIGangNotRerunnable(t *testing.T) {
	for lost := range 3 {
		g := newMPIGangTest(t, "; Rerunnable = false; PBS = [ Join_Path = \"n\" ]")
		g.start()
		e, _ := g.queue.RecordLost(time.Unix(4, 0), g.attempts[lost], "its node is gone")
		g.apply(e)
		reported := g.vacates()
		if want := 2; lost > 0 {
			if want = 1; len(reported) != want || reported[0] != 0 {
				t.Fatalf("part %d is lost, and told to end are %v", lost, reported)
			}
			g.end(0, eventlog.AttemptExit{Cause: eventlog.CauseRemoval, Signal: 15, Wall: 9})
			reported = g.vacates()
		} else if len(reported) != want {
			t.Fatalf("the first is lost, and told to end are %v", reported)
		}
		for _, i := range reported {
			g.end(i, eventlog.AttemptExit{Cause: eventlog.CauseRemoval})
		}
		s := g.status()
		x := s.Task.Exit
		if s.Task.State != roost.Completed || x == nil || x.Signal != sigkill ||
			!strings.Contains(x.Reason, "may not be run twice: its node is gone") {
			t.Errorf("part %d is lost: %v, %+v", lost, s.Task.State, x)
		}
	}
}

// TestNotRerunnable checks the same of a job of one task. One that was deleted is gone,
// and one that was to be run again is.
func TestNotRerunnable(t *testing.T) {
	who, job := CallerIdentity{User: "ann", UID: 1}, TaskSelector{Job: roost.JobID{Seq: 1, Host: "h"}}
	for _, tt := range []struct {
		deleted, runs bool
		x             eventlog.AttemptExit
		want          roost.TaskState
	}{
		{x: eventlog.AttemptExit{Cause: eventlog.CauseVacate, Reason: "its owner is back"}, want: roost.Completed},
		{x: eventlog.AttemptExit{Cause: eventlog.CauseVacate, Reason: "its owner is back"}, deleted: true,
			want: roost.Removed},
		{x: eventlog.AttemptExit{Cause: eventlog.CauseMachine, Reason: "its starter died"}, runs: true,
			want: roost.Completed},
		// which never began
		{x: eventlog.AttemptExit{Cause: eventlog.CauseMachine, Reason: "there is no room"}, want: roost.Idle},
	} {
		q, err := gangQueue(t, "Rerunnable = false; PBS = [ Join_Path = \"n\" ]", 1)
		if err != nil {
			t.Fatal(err)
		}
		e, a, err := q.AssignNext(time.Unix(2, 0), job.Job.Task(0), "a", "x", 1)
		if err != nil {
			t.Fatal(err)
		}
		q.Apply(e)
		if started, ok := q.RecordStarted(time.Unix(2, 1), a); ok && tt.runs {
			q.Apply(started)
		}
		if tt.deleted {
			events, err := q.RemoveTasks(time.Unix(3, 0), who, job, "", false)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range events {
				q.Apply(e)
			}
		}
		ended, err := q.RecordEnded(time.Unix(4, 0), a, &tt.x)
		if err != nil {
			t.Fatal(err)
		}
		again, err := eventlog.DecodeEvent(eventlog.AppendEvent(nil, &ended))
		if err != nil {
			t.Fatal(err)
		}
		q.Apply(again)
		q.Check()
		if s, _ := q.Status(1); s.Task.State != tt.want || tt.want == roost.Completed && s.Task.Exit.Signal != sigkill {
			t.Errorf("%+v: %v, %+v", tt, s.Task.State, s.Task.Exit)
		}
	}
}

// TestOverspent: what the parts of a job have used counts together against its CPU time,
// as long as it runs.
func TestOverspent(t *testing.T) {
	g := newMPIGangTest(t, "; CpuTimeLimit = 10")
	uses := map[int]time.Duration{0: 4 * time.Second, 1: time.Second, 2: 5 * time.Second}
	used := func(a roost.AttemptID) time.Duration { return uses[a.Task.Index] }
	if _, _, over := g.queue.GangOverCPULimit(roost.JobID{Seq: 1}.Task(0), used); over {
		t.Error("a job that waits has used something")
	}
	g.start()
	if _, _, over := g.queue.GangOverCPULimit(g.attempts[0].Task, used); over {
		t.Error("all that it may is too much")
	}
	uses[1]++
	if a, reason, over := g.queue.GangOverCPULimit(g.attempts[0].Task, used); !over || a != g.attempts[0] ||
		!strings.Contains(reason, "CPU time of 10s exceeded: its chunks have used 10") {
		t.Errorf("%v %v %q", over, a, reason)
	}
	g.end(0, eventlog.AttemptExit{Cause: eventlog.CauseCPUTime, Reason: "too much"})
	if _, _, over := g.queue.GangOverCPULimit(g.attempts[0].Task, used); over {
		t.Error("it is told again when it has ended")
	}
	for _, i := range g.vacates() {
		g.end(i, eventlog.AttemptExit{Cause: eventlog.CauseRemoval})
	}
	if s := g.status(); s.Task.Exit.Cause != eventlog.CauseCPUTime {
		t.Errorf("%+v", s.Task.Exit)
	}
}
