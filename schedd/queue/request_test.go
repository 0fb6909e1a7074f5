package queue

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// requestTable says what each request does to a job in each state. It is the table of
// POSIX (XCU chapter 3, states and requests), with the states that Roost has and POSIX
// has not: S is suspended, A starting, and F final. A cell is the state after the request
// and, where the job ran, after the end of its attempt; e is an error.
const requestTable = `
	         Q  A  R  S  H  W  F
	delete   F  F  F  F  F  F  e
	hold     H  H  H  H  e  H  e
	release  e  A  R  S  Q  e  e
	rerun    e  Q  Q  Q  e  e  e
	signal   e  A  R  e  e  e  e
	message  e  A  R  e  e  e  e
	suspend  e  e  S  e  e  e  e
	resume   e  e  e  R  e  e  e
	retry    e  e  e  e  e  e  Q
	modify   Q  e  e  e  H  W  e
	hurry    Q  A  R  S  H  W  e
	defer    W  A  R  S  H  W  e
	order    Q  e  e  e  H  W  e
`

func TestRequestTable(t *testing.T) {
	requests := map[string]func(*Queue, time.Time, TaskSelector) ([]eventlog.JobEvent, error){
		"delete": func(q *Queue, now time.Time, t TaskSelector) ([]eventlog.JobEvent, error) {
			return q.RemoveTasks(now, alice, t, "", false)
		},
		"hold": func(q *Queue, now time.Time, t TaskSelector) ([]eventlog.JobEvent, error) {
			return q.HoldTasks(now, alice, t, "")
		},
		"release": func(q *Queue, now time.Time, t TaskSelector) ([]eventlog.JobEvent, error) {
			return q.ReleaseTasks(now, alice, t)
		},
		"rerun": func(q *Queue, now time.Time, t TaskSelector) ([]eventlog.JobEvent, error) {
			return q.RerunTasks(now, alice, t, false)
		},
		"signal": func(q *Queue, now time.Time, t TaskSelector) ([]eventlog.JobEvent, error) {
			events, _, err := q.SignalTasks(now, alice, t, "SIGTERM")
			return events, err
		},
		"message": func(q *Queue, now time.Time, t TaskSelector) ([]eventlog.JobEvent, error) {
			_, err := q.OutputMessageTargets(now, alice, t)
			return nil, err
		},
		"suspend": func(q *Queue, now time.Time, t TaskSelector) ([]eventlog.JobEvent, error) {
			return q.SuspendTasks(now, alice, t, "")
		},
		"resume": func(q *Queue, now time.Time, t TaskSelector) ([]eventlog.JobEvent, error) {
			return q.ResumeTasks(now, alice, t)
		},
		"retry": func(q *Queue, now time.Time, t TaskSelector) ([]eventlog.JobEvent, error) {
			return q.RetryTasks(now, alice, t)
		},
		"modify": alterationOf(t, "RequestMemory = 512"),
		"hurry":  alterationOf(t, "JobPrio = 7"),
		"defer":  alterationOf(t, "DeferralTime = 1900000000"),
		"order": func(q *Queue, now time.Time, t TaskSelector) ([]eventlog.JobEvent, error) {
			for seq := range q.jobs {
				if seq != t.Job.Seq {
					return q.SwapOrder(now, alice, t, TaskSelector{Job: roost.JobID{Seq: seq, Host: "h"}})
				}
			}
			return nil, roost.NotFound
		},
	}
	lines := strings.Split(strings.TrimSpace(requestTable), "\n")
	states := strings.Fields(lines[0])
	for _, line := range lines[1:] {
		cells := strings.Fields(line)
		for n, state := range states {
			t.Run(cells[0]+" "+state, func(t *testing.T) {
				d := newTestQueue(t)
				d.submit(1, `Group = "others"; HoldOnSubmit = true`)
				id := d.inState(state)
				before, _ := d.queue.Snapshot(id.Seq)
				events, err := requests[cells[0]](d.queue, d.now, TaskSelector{Job: id})
				if want := cells[n+1]; (err != nil) != (want == "e") {
					t.Fatalf("got %v, want %s", err, want)
				}
				if err != nil {
					if after, _ := d.queue.Snapshot(id.Seq); string(after) != string(before) {
						t.Fatal("it was refused, and has changed the job")
					}
					if !errors.Is(err, roost.Conflict) && !(state == "F" && errors.Is(err, roost.Finished)) {
						t.Fatalf("it was refused with %v", err)
					}
					return
				}
				d.apply(events...)
				for _, v := range d.queue.TakeVacates() {
					d.end(v.Attempt, eventlog.AttemptExit{Cause: eventlog.CauseRemoval, Signal: 15})
				}
				if got := d.stateLetter(id); got != cells[n+1] {
					t.Fatalf("it is %s then, want %s", got, cells[n+1])
				}
			})
		}
	}
}

// alterationOf is the request to change what that ad says.
func alterationOf(t *testing.T, changes string) func(*Queue, time.Time, TaskSelector) ([]eventlog.JobEvent, error) {
	return func(q *Queue, now time.Time, to TaskSelector) ([]eventlog.JobEvent, error) {
		return q.AlterJob(now, alice, to, JobAlteration{Changes: alteredAd(t, changes), ExpectedVersion: -1},
			SubmitLimits{})
	}
}

// inState submits a job and brings it into a state of the table.
func (d *testQueue) inState(state string) roost.JobID {
	d.Helper()
	id := d.submit(1, map[string]string{"H": "HoldOnSubmit = true",
		"W": fmt.Sprintf("DeferralTime = %d", d.now.Unix()+3600)}[state])
	if strings.Contains("QHW", state) {
		return id
	}
	a := d.start()
	if state == "R" || state == "S" {
		e, _ := d.queue.RecordStarted(d.now, a)
		d.apply(e)
	}
	switch state {
	case "S":
		events, err := d.queue.SuspendTasks(d.now, alice, TaskSelector{Job: id}, "")
		if err != nil {
			d.Fatal(err)
		}
		d.apply(events...)
		d.queue.TakeFreezes()
	case "F":
		d.end(a, eventlog.AttemptExit{Code: 1})
	}
	return id
}

// stateLetter is the state of a job of one task in the table.
func (d *testQueue) stateLetter(id roost.JobID) string {
	s, ok := d.queue.Status(id.Seq)
	if !ok {
		return "F"
	}
	return map[roost.TaskState]string{
		roost.Blocked: "W", roost.Held: "H", roost.Idle: "Q", roost.Starting: "A", roost.Running: "R",
		roost.Suspended: "S", roost.Completed: "F", roost.Removed: "F",
	}[s.Task.State]
}
