package queue

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

// What each request does to a job in each state, as POSIX has it (XCU chapter 3, the table of states and requests), and where Roost has states that POSIX
// has not: S is suspended, A starting, and F final. A cell is the state after the request and, where the job ran, after the end of its attempt; e stands for an error.
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
	requests := map[string]func(*Queue, time.Time, Target) ([]Event, error){
		"delete":  func(q *Queue, now time.Time, t Target) ([]Event, error) { return q.Remove(now, alice, t, "", false) },
		"hold":    func(q *Queue, now time.Time, t Target) ([]Event, error) { return q.Hold(now, alice, t, "") },
		"release": func(q *Queue, now time.Time, t Target) ([]Event, error) { return q.Release(now, alice, t) },
		"rerun":   func(q *Queue, now time.Time, t Target) ([]Event, error) { return q.Rerun(now, alice, t, false) },
		"signal": func(q *Queue, now time.Time, t Target) ([]Event, error) {
			events, _, err := q.Signal(now, alice, t, "SIGTERM")
			return events, err
		},
		"message": func(q *Queue, now time.Time, t Target) ([]Event, error) {
			_, err := q.Hearing(now, alice, t)
			return nil, err
		},
		"suspend": func(q *Queue, now time.Time, t Target) ([]Event, error) { return q.Suspend(now, alice, t, "") },
		"resume":  func(q *Queue, now time.Time, t Target) ([]Event, error) { return q.Thaw(now, alice, t) },
		"retry":   func(q *Queue, now time.Time, t Target) ([]Event, error) { return q.Retry(now, alice, t) },
		"modify":  altering(t, "RequestMemory = 512"),
		"hurry":   altering(t, "JobPrio = 7"),
		"defer":   altering(t, "DeferralTime = 1900000000"),
		"order": func(q *Queue, now time.Time, t Target) ([]Event, error) {
			for seq := range q.jobs {
				if seq != t.Job.Seq {
					return q.Order(now, alice, t, Target{Job: roost.JobID{Seq: seq, Host: "h"}})
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
				d := newDesk(t)
				d.submit(1, `Group = "others"; HoldOnSubmit = true`)
				id := d.inState(state)
				before, _ := d.q.Snapshot(id.Seq)
				events, err := requests[cells[0]](d.q, d.now, Target{Job: id})
				if want := cells[n+1]; (err != nil) != (want == "e") {
					t.Fatalf("got %v, want %s", err, want)
				}
				if err != nil {
					if after, _ := d.q.Snapshot(id.Seq); string(after) != string(before) {
						t.Fatal("it was refused, and has changed the job")
					}
					if !errors.Is(err, roost.Conflict) && !(state == "F" && errors.Is(err, roost.Finished)) {
						t.Fatalf("it was refused with %v", err)
					}
					return
				}
				d.apply(events...)
				for _, v := range d.q.TakeVacates() {
					d.end(v.Attempt, Exit{Cause: ByRemoval, Signal: 15})
				}
				if got := d.letter(id); got != cells[n+1] {
					t.Fatalf("it is %s then, want %s", got, cells[n+1])
				}
			})
		}
	}
}

// altering is the request to change what that ad says.
func altering(t *testing.T, changes string) func(*Queue, time.Time, Target) ([]Event, error) {
	return func(q *Queue, now time.Time, to Target) ([]Event, error) {
		return q.Alter(now, alice, to, Alteration{Changes: changed(t, changes), Basis: -1}, Limits{})
	}
}

// inState submits a job and brings it into a state of the table.
func (d *desk) inState(state string) roost.JobID {
	d.Helper()
	id := d.submit(1, map[string]string{"H": "HoldOnSubmit = true", "W": fmt.Sprintf("DeferralTime = %d", d.now.Unix()+3600)}[state])
	if strings.Contains("QHW", state) {
		return id
	}
	a := d.start()
	if state == "R" || state == "S" {
		e, _ := d.q.Start(d.now, a)
		d.apply(e)
	}
	switch state {
	case "S":
		events, err := d.q.Suspend(d.now, alice, Target{Job: id}, "")
		if err != nil {
			d.Fatal(err)
		}
		d.apply(events...)
		d.q.TakeFreezes()
	case "F":
		d.end(a, Exit{Code: 1})
	}
	return id
}

// letter is the state of a job of one task in the table.
func (d *desk) letter(id roost.JobID) string {
	s, ok := d.q.Status(id.Seq)
	if !ok {
		return "F"
	}
	return map[roost.TaskState]string{
		roost.Blocked: "W", roost.Held: "H", roost.Idle: "Q", roost.Starting: "A", roost.Running: "R", roost.Suspended: "S", roost.Completed: "F", roost.Removed: "F",
	}[s.Task.State]
}
