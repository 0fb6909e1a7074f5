package queue

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// startOn starts the gang with its tasks on these nodes.
func (g *mpiGangTest) startOn(nodes ...string) {
	g.Helper()
	var seats []GangClaim
	for i, n := range nodes {
		seats = append(seats, GangClaim{Node: n, Address: "x", Claim: uint64(i + 1)})
	}
	events, attempts, ok := g.queue.AssignGang(time.Unix(2, 0), 1, seats)
	if !ok {
		g.Fatal("the gang is not whole")
	}
	g.apply(events...)
	for _, a := range attempts {
		if e, ok := g.queue.RecordStarted(time.Unix(3, 0), a); ok {
			g.apply(e)
		}
	}
	g.attempts = attempts
}

func (g *mpiGangTest) release(r NodeRelease) (eventlog.JobEvent, error) {
	g.Helper()
	events, err := g.queue.ReleaseNodes(time.Unix(4, 0), CallerIdentity{User: "ann", UID: 1},
		TaskSelector{Job: roost.JobID{Seq: 1, Host: "h"}}, r)
	if err != nil {
		return eventlog.JobEvent{}, err
	}
	g.apply(events...)
	return events[0], nil
}

// nodes lists those that the job has, as its user sees them.
func (g *mpiGangTest) nodes() (list []string) {
	for _, p := range g.status().Placements {
		list = append(list, p.Node)
	}
	return list
}

// TestReleasedNodes checks that a gang goes on without the machines that it gives back.
// They count for it neither as failed nor as held.
func TestReleasedNodes(t *testing.T) {
	g := newMPIGangTest(t, "; CPUTimeLimit = 10")
	g.startOn("a.pool", "b.pool", "c.pool")
	whole := g.status().Resources
	e, err := g.release(NodeRelease{Nodes: []string{"B"}})
	if err != nil || e.Index != 0 || e.Attempt != 1 || !slices.Equal(e.Hosts, []string{"b.pool"}) ||
		!slices.Equal(e.Ranges, []eventlog.IndexRange{{First: 1, Last: 1}}) {
		t.Fatalf("%+v, %v", e, err)
	}
	if got := g.vacates(); !slices.Equal(got, []int{1}) {
		t.Fatalf("told to end: %v", got)
	}
	if got := g.queue.TakeChangedHosts(); len(got) != 2 || got[0] != g.attempts[0] || got[1] != g.attempts[2] {
		t.Errorf("other machines have: %v", got)
	}
	if h := g.queue.HostsOfAttempt(g.attempts[0]); len(h) != 2 || h[1].Node != "c.pool" ||
		!g.queue.HasReleasedNodes(g.attempts[0]) {
		t.Errorf("hosts: %v", h)
	}
	s := g.status()
	if !slices.Equal(g.nodes(), []string{"a.pool", "c.pool"}) || !slices.Equal(s.Released, []int{1}) ||
		s.Resources.CPU*3 != whole.CPU*2 {
		t.Errorf("%+v", s)
	}

	again := New("h") // a restart has it ended, too
	if snapshot, _ := g.queue.Snapshot(1); again.RestoreSnapshot(snapshot) != nil {
		t.Fatal("its snapshot is of no use")
	}
	again.Check()
	if v := again.TakeVacates(); len(v) != 1 || v[0].Attempt != g.attempts[1] {
		t.Errorf("after a restart, told to end: %v", v)
	}

	g.end(1, eventlog.AttemptExit{Cause: eventlog.CauseRemoval, Signal: 15, User: int64(time.Second), System: 1})
	if s = g.status(); s.Task.State != roost.Running || s.Failed != 0 || s.ReleasedUsage.User != int64(time.Second) {
		t.Errorf("%+v", s)
	}
	if g.queue.jobs[1].state[1] != roost.Completed || len(g.vacates()) > 0 {
		t.Error("what was given back is not over, or ends the others")
	}
	g.end(0, eventlog.AttemptExit{User: 5})
	if got := g.vacates(); !slices.Equal(got, []int{2}) {
		t.Fatalf("told to end: %v", got)
	}
	g.end(2, eventlog.AttemptExit{Cause: eventlog.CauseRemoval})
	if s = g.status(); s.Task.State != roost.Completed || s.Task.Exit.Code != 0 || s.Failed != 0 ||
		s.Task.Exit.User != int64(time.Second)+5 || !slices.Equal(g.nodes(), []string{"a.pool", "c.pool"}) {
		t.Errorf("%+v", s.Task.Exit)
	}
}

// TestReleasedNodesReturn holds that a gang that starts again asks for all of its
// machines, however it comes to that.
func TestReleasedNodesReturn(t *testing.T) {
	for name, interrupt := range map[string]func(*mpiGangTest){
		"its primary is lost": func(g *mpiGangTest) {
			e, _ := g.queue.RecordLost(time.Unix(5, 0), g.attempts[0], "its node is gone")
			g.apply(e)
		},
		"it is to run again": func(g *mpiGangTest) {
			events, err := g.queue.RerunTasks(time.Unix(5, 0), CallerIdentity{UID: 1}, TaskSelector{
				Job: roost.JobID{Seq: 1, Host: "h"}}, false)
			if err != nil {
				g.Fatal(err)
			}
			g.apply(events...)
		},
		"it is held and released": func(g *mpiGangTest) {
			who, job := CallerIdentity{UID: 1}, TaskSelector{Job: roost.JobID{Seq: 1, Host: "h"}}
			events, err := g.queue.HoldTasks(time.Unix(5, 0), who, job, "")
			if err != nil {
				g.Fatal(err)
			}
			g.apply(events...)
			g.endWanted()
			if j := g.queue.jobs[1]; j.counts[roost.Held] != 3 {
				g.Errorf("held: %v", j.state)
			}
			if events, err = g.queue.ReleaseTasks(time.Unix(6, 0), who, job); err != nil {
				g.Fatal(err)
			}
			g.apply(events...)
		},
		"another part is lost while what was given back ends": func(g *mpiGangTest) {
			e, _ := g.queue.RecordLost(time.Unix(5, 0), g.attempts[2], "its node is gone")
			g.apply(e)
			g.end(0, eventlog.AttemptExit{Cause: eventlog.CauseVacate})
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newMPIGangTest(t, "")
			g.startOn("a", "b", "c")
			if _, err := g.release(NodeRelease{Keep: 1}); err != nil {
				t.Fatal(err)
			}
			if got := g.nodes(); !slices.Equal(got, []string{"a", "b"}) {
				t.Fatalf("it has %v", got)
			}
			if !strings.HasPrefix(name, "another") {
				g.end(2, eventlog.AttemptExit{Cause: eventlog.CauseRemoval})
			}
			interrupt(g)
			for _, v := range g.queue.TakeVacates() {
				x := &eventlog.AttemptExit{Cause: eventlog.CauseVacate}
				if e, err := g.queue.RecordEnded(time.Unix(8, 0), v.Attempt, x); err == nil {
					g.apply(e)
				}
			}
			if size, ok := g.queue.NextGang(1); size != 3 || !ok {
				t.Fatalf("it asks for %d machines (%v), as %v", size, ok, g.queue.jobs[1].state)
			}
			g.startOn("d", "e", "f")
			if got := g.nodes(); !slices.Equal(got, []string{"d", "e", "f"}) || len(g.status().Released) > 0 {
				t.Errorf("it has %v", got)
			}
		})
	}
}

// TestReleaseRefused holds that each refusal says what the job has, and what is wrong.
func TestReleaseRefused(t *testing.T) {
	g := newMPIGangTest(t, "")
	if _, err := g.release(NodeRelease{}); !errors.Is(err, roost.Conflict) {
		t.Errorf("of a job that waits: %v", err)
	}
	g.startOn("a", "b", "a")
	for _, c := range []struct {
		release NodeRelease
		want    string
	}{
		{NodeRelease{Nodes: []string{"a"}}, "Can't free 'a' since it's on a primary execution host"},
		{NodeRelease{Nodes: []string{"b", "c"}}, "not part of the job: c: beside a, where it runs, it has b"},
		{NodeRelease{Chunks: []int{2}}, "not part of the job: beside a, where it runs, it has b"},
		{NodeRelease{Keep: 1}, "not part of the job"},
	} {
		if _, err := g.release(c.release); !errors.Is(err, roost.Invalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.release, err)
		}
	}
	if _, err := g.queue.ReleaseNodes(time.Unix(4, 0), CallerIdentity{User: "bob", UID: 2},
		TaskSelector{Job: roost.JobID{Seq: 1, Host: "h"}}, NodeRelease{}); !errors.Is(err, roost.PermissionDenied) {
		t.Errorf("of another's job: %v", err)
	}
	if _, err := g.release(NodeRelease{}); err != nil { // all that are not on the first machine
		t.Error(err)
	}
	if _, err := g.release(NodeRelease{}); err == nil || !strings.Contains(err.Error(), "it has none beside a") {
		t.Errorf("twice: %v", err)
	}
	q, err := gangQueue(t, "Array = false", 1)
	if err != nil {
		t.Fatal(err)
	}
	one := &mpiGangTest{T: t, queue: q}
	e, a, err := q.AssignNext(time.Unix(2, 0), roost.JobID{Seq: 1, Host: "h"}.Task(0), "a", "x", 1)
	if err != nil {
		t.Fatal(err)
	}
	one.apply(e)
	if e, ok := q.RecordStarted(time.Unix(3, 0), a); ok {
		one.apply(e)
	}
	if _, err := one.release(NodeRelease{}); !errors.Is(err, roost.Invalid) ||
		!strings.Contains(err.Error(), "it has none beside a, where it runs until it ends") {
		t.Errorf("of one machine: %v", err)
	}
}

// TestReleasedArrayTask holds that a task of an array that has given machines back counts
// as running still.
func TestReleasedArrayTask(t *testing.T) {
	q, err := gangQueue(t, `GangSize = 3; GangLed = true; Array = true; MaxRunning = 2`, 12)
	if err != nil {
		t.Fatal(err)
	}
	g := &mpiGangTest{T: t, queue: q}
	for n := range 2 {
		var seats []GangClaim
		for _, node := range []string{"a", "b", "c"} {
			seats = append(seats, GangClaim{Node: node, Address: "x", Claim: 1})
		}
		events, attempts, ok := q.AssignGang(time.Unix(2, 0), RequestID(n+1), seats)
		if !ok {
			t.Fatal("the gang is not whole")
		}
		g.apply(events...)
		for _, a := range attempts {
			if e, ok := q.RecordStarted(time.Unix(3, 0), a); ok {
				g.apply(e)
			}
		}
		g.attempts = append(g.attempts, attempts...)
	}
	job := TaskSelector{Job: roost.JobID{Seq: 1, Host: "h"}}
	who := CallerIdentity{User: "ann", UID: 1}
	if _, err := q.ReleaseNodes(time.Unix(4, 0), who, job, NodeRelease{}); !errors.Is(err, ErrOneTaskOnly) {
		t.Errorf("of a whole array: %v", err)
	}
	for n := range 2 {
		job.Ranges = []eventlog.IndexRange{{First: 3 * n, Last: 3*n + 2}}
		events, err := q.ReleaseNodes(time.Unix(4, 0), who, job, NodeRelease{})
		if err != nil {
			t.Fatal(err)
		}
		g.apply(events...)
	}
	for _, i := range []int{1, 2, 4, 5} {
		g.end(i, eventlog.AttemptExit{Cause: eventlog.CauseRemoval})
	}
	if ready := q.jobs[1].startableTasks(); ready != 0 {
		t.Errorf("%d more may start, though two run", ready)
	}
	s, _ := q.Status(1)
	if s.Counts[roost.Running] != 2 || s.Failed != 0 {
		t.Errorf("%+v", s)
	}
}
