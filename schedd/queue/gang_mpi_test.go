package queue

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// mpiGangTest is a job of three tasks of which the first leads, and how its attempts are
// driven.
type mpiGangTest struct {
	*testing.T
	queue    *Queue
	attempts []roost.AttemptID
}

const mpiGangAd = "GangSize = 3; GangLed = true; Array = false; Processes = 2; MaxRetries = 0"

func newMPIGangTest(t *testing.T, more string) *mpiGangTest {
	t.Helper()
	q, err := gangQueue(t, mpiGangAd+more, 3)
	if err != nil {
		t.Fatal(err)
	}
	return &mpiGangTest{T: t, queue: q}
}

func (g *mpiGangTest) apply(events ...eventlog.JobEvent) {
	g.Helper()
	for _, e := range events {
		g.queue.Apply(e)
	}
	g.queue.Check()
}

func (g *mpiGangTest) start() {
	g.Helper()
	events, attempts, ok := g.queue.AssignGang(time.Unix(2, 0), 1, []GangClaim{{Node: "a", Address: "x", Claim: 1},
		{Node: "b", Address: "x", Claim: 2}, {Node: "a", Address: "x", Claim: 3}})
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

func (g *mpiGangTest) end(i int, x eventlog.AttemptExit) {
	g.Helper()
	e, err := g.queue.RecordEnded(time.Unix(4, 0), g.attempts[i], &x)
	if err != nil {
		g.Fatal(err)
	}
	g.apply(e)
}

// vacates lists whom the queue wants ended.
func (g *mpiGangTest) vacates() (list []int) {
	for _, v := range g.queue.TakeVacates() {
		list = append(list, v.Attempt.Task.Index)
	}
	return list
}

func (g *mpiGangTest) status() JobStatus {
	g.Helper()
	s, ok := g.queue.Status(1)
	if !ok || s.Task == nil || s.Tasks != 1 {
		g.Fatalf("%+v is not told as one task", s)
	}
	return s
}

// TestMPIGangEndsWithPrimary holds that a job ends with its leader, however the others
// do, and is told as one task.
func TestMPIGangEndsWithPrimary(t *testing.T) {
	g := newMPIGangTest(t, "")
	if s := g.status(); s.Task.State != roost.Idle || s.Array || len(s.Placements) != 3 || s.Placements[0].Node != "" {
		t.Errorf("%+v", s)
	}
	g.start()
	for i, a := range g.attempts {
		p, err := g.queue.Program(a)
		if err != nil {
			t.Fatal(err)
		}
		if p.IsSecondary != (i > 0) || len(p.Hosts) != 3 || p.Hosts[1].Node != "b" || p.Hosts[2].Processes != 2 {
			t.Errorf("task %d: %+v", i, p)
		}
	}
	g.end(0, eventlog.AttemptExit{Code: 3, User: 5})
	if reported := g.vacates(); len(reported) != 2 || reported[0] != 1 || reported[1] != 2 {
		t.Fatalf("told to end: %v", reported)
	}
	if s := g.status(); s.Task.State != roost.Running || s.Ended != 0 {
		t.Errorf("while machines are being given back it is %v, ended %d", s.Task.State, s.Ended)
	}
	g.end(1, eventlog.AttemptExit{Cause: eventlog.CauseRemoval, Reason: "its job has ended", User: 7})
	lost, _ := g.queue.RecordLost(time.Unix(5, 0), g.attempts[2], "gone")
	g.apply(lost)
	s := g.status()
	if s.Task.State != roost.Completed || s.Task.Exit.Code != 3 || s.Task.Exit.User != 12 || s.Failed != 1 ||
		s.Placements[1].Node != "b" {
		t.Errorf("%+v of %+v", s.Task, s)
	}
	if reported := g.vacates(); len(reported) > 0 {
		t.Errorf("told to end: %v", reported)
	}
	again, err := g.queue.RetryTasks(time.Unix(6, 0), CallerIdentity{UID: 1}, TaskSelector{Job: s.Job})
	if err != nil {
		t.Fatal(err)
	}
	g.apply(again...)
	if g.start(); g.attempts[1].Attempt != 2 {
		t.Errorf("run again as %v", g.attempts)
	}
}

// TestMPIGangSecondaryFails checks that a part that ends for good takes the leader with
// it. The job says which part it was.
func TestMPIGangSecondaryFails(t *testing.T) {
	g := newMPIGangTest(t, "")
	g.start()
	g.end(2, eventlog.AttemptExit{Cause: eventlog.CauseMemory, Reason: "it used 2 GiB of 1 GiB"})
	if reported := g.vacates(); len(reported) != 1 || reported[0] != 0 {
		t.Fatalf("told to end: %v", reported)
	}
	g.end(0, eventlog.AttemptExit{Cause: eventlog.CauseRemoval, Signal: 15, Wall: 9})
	if reported := g.vacates(); len(reported) != 1 || reported[0] != 1 {
		t.Fatalf("told to end: %v", reported)
	}
	g.end(1, eventlog.AttemptExit{Cause: eventlog.CauseRemoval})
	s := g.status()
	if x := s.Task.Exit; s.Task.State != roost.Completed || x.Cause != eventlog.CauseMemory || x.Wall != 9 ||
		!strings.Contains(x.Reason, "chunk 2 of it, on a") || s.Failed != 2 && s.Failed != 1 {
		t.Errorf("%+v, %d failed", s.Task.Exit, s.Failed)
	}
}

// TestMPIGangRequeued checks that all of a gang runs again when a part is lost. It is
// held where it may not be run twice, and what is asked of a part is asked of all.
func TestMPIGangRequeued(t *testing.T) {
	for _, twice := range []bool{true, false} {
		more := ""
		if !twice {
			more = "; Rerunnable = false"
		}
		g := newMPIGangTest(t, more)
		g.start()
		lost, _ := g.queue.RecordLost(time.Unix(4, 0), g.attempts[1], "its node is gone")
		g.apply(lost)
		if reported := g.vacates(); len(reported) != 2 {
			t.Fatalf("told to end: %v", reported)
		}
		g.end(0, eventlog.AttemptExit{Cause: eventlog.CauseRemoval})
		g.end(2, eventlog.AttemptExit{Cause: eventlog.CauseRemoval})
		want := roost.Idle
		if !twice {
			want = roost.Held
		}
		if s := g.status(); s.Task.State != want {
			t.Errorf("run twice %v: it is %v", twice, s.Task.State)
		}
		if twice {
			g.start()
		}
	}
	g := newMPIGangTest(t, "")
	g.start()
	who, job := CallerIdentity{User: "ann", UID: 1}, roost.JobID{Seq: 1, Host: "h"}
	if _, to, err := g.queue.SignalTasks(time.Unix(4, 0), who, TaskSelector{Job: job}, "USR1"); err != nil ||
		len(to) != 1 || to[0].Task.Index != 0 {
		t.Errorf("a signal goes to %v, %v", to, err)
	}
	held, err := g.queue.HoldTasks(time.Unix(4, 0), who, TaskSelector{Job: job,
		Ranges: []eventlog.IndexRange{{First: 1, Last: 1}}}, "")
	if err != nil || len(held[0].Ranges) > 0 {
		t.Errorf("a part alone is held: %+v, %v", held, err)
	}
}

func TestMPIGangRefused(t *testing.T) {
	for _, ad := range []string{"GangLed = true", "GangLed = true; GangSize = 2; Array = false",
		"GangLed = true; GangSize = 3", `GangLed = true; GangSize = 4; AppClass = "stream"`} {
		if _, err := gangQueue(t, ad, 4); !errors.Is(err, roost.Invalid) {
			t.Errorf("%s: %v", ad, err)
		}
	}
}

// TestMPIGangRandomly plays all that can happen to a led gang, in any order. It comes to
// an end that a restart knows as well.
func TestMPIGangRandomly(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		g := newMPIGangTest(t, "")
		who, job := CallerIdentity{User: "ann", UID: 1}, TaskSelector{Job: roost.JobID{Seq: 1, Host: "h"}}
		for range 60 {
			mpiGangStep(g, rng, who, job)
			again := New("h")
			if snapshot, ok := g.queue.Snapshot(1); !ok || again.RestoreSnapshot(snapshot) != nil {
				t.Fatalf("seed %d: its snapshot is of no use", seed)
			}
			again.Check()
			if a, b := g.status(), (&mpiGangTest{T: t, queue: again}).status(); a.Counts != b.Counts ||
				a.Failed != b.Failed {
				t.Fatalf("seed %d: a restart makes %+v of %+v", seed, b, a)
			}
		}
		if g.status(); g.queue.jobs[1].isFinal() { // run again, to the end
			again, err := g.queue.RetryTasks(time.Unix(6, 0), who, job)
			if err == nil {
				g.apply(again...)
			}
		}
		g.endWanted()
		for tries := 0; !g.queue.jobs[1].isFinal(); tries++ {
			if tries > 10 {
				t.Fatalf("seed %d: it comes to no end: %v, %d active", seed, g.queue.jobs[1].state,
					g.queue.jobs[1].active)
			}
			if released, err := g.queue.ReleaseTasks(time.Unix(7, 0), who, job); err == nil {
				g.apply(released...)
			}
			if events, attempts, ok := g.queue.AssignGang(time.Unix(2, 0), 1,
				[]GangClaim{{Node: "a", Address: "x", Claim: 1}, {Node: "b", Address: "x", Claim: 2},
					{Node: "a", Address: "x", Claim: 3}}); ok {
				g.apply(events...)
				g.attempts = attempts
				g.end(0, eventlog.AttemptExit{})
			}
			g.endWanted()
		}
	}
}

// endWanted ends what the queue wants ended, and the rest of gangs that a restart found
// incomplete.
func (g *mpiGangTest) endWanted() {
	g.queue.RepairGangs()
	for len(g.queue.vacates) > 0 {
		for _, v := range g.queue.TakeVacates() {
			if e, err := g.queue.RecordEnded(time.Unix(8, 0), v.Attempt,
				&eventlog.AttemptExit{Cause: eventlog.CauseRemoval}); err == nil {
				g.apply(e)
			}
		}
	}
	if j := g.queue.jobs[1]; int(j.active) > 0 && int(j.active)+j.release().releasedActive() == len(j.state) {
		g.end(0, eventlog.AttemptExit{})
	}
}

func mpiGangStep(g *mpiGangTest, rng *rand.Rand, who CallerIdentity, job TaskSelector) {
	i, now := rng.IntN(3), time.Unix(5, 0)
	decide := func(events []eventlog.JobEvent, err error) {
		if err == nil {
			g.apply(events...)
		}
	}
	switch rng.IntN(13) {
	case 0, 1, 2:
		if events, attempts, ok := g.queue.AssignGang(now, 1, []GangClaim{{Node: "a", Address: "x", Claim: 1},
			{Node: "b", Address: "x", Claim: 2}, {Node: "a", Address: "x", Claim: 3}}); ok {
			g.apply(events...)
			g.attempts = attempts
		}
	case 3, 4, 5:
		x := eventlog.AttemptExit{Cause: eventlog.ExitCause(rng.IntN(int(eventlog.CausePreemption) + 1)),
			Code: int32(rng.IntN(2))}
		if i < len(g.attempts) && g.queue.IsLive(g.attempts[i]) {
			g.end(i, x)
		}
	case 6:
		if i < len(g.attempts) {
			if e, ok := g.queue.RecordLost(now, g.attempts[i], "gone"); ok {
				g.apply(e)
			}
		}
	case 7:
		decide(g.queue.HoldTasks(now, who, job, ""))
	case 8:
		decide(g.queue.ReleaseTasks(now, who, job))
	case 9:
		if rng.IntN(4) == 0 {
			decide(g.queue.RemoveTasks(now, who, job, "", false))
		}
	case 10:
		decide(g.queue.RetryTasks(now, who, job))
	case 12:
		decide(g.queue.ReleaseNodes(now, who, job, NodeRelease{Keep: rng.IntN(2)}))
	case 11:
		for _, v := range g.queue.TakeVacates() {
			if e, err := g.queue.RecordEnded(now, v.Attempt,
				&eventlog.AttemptExit{Cause: eventlog.CauseRemoval}); err == nil {
				g.apply(e)
			}
		}
	}
}

// TestMPIGangMixed checks that tasks of a gang that ask for different things start
// together, each on what it asked for.
func TestMPIGangMixed(t *testing.T) {
	ad, err := classad.Parse(`[Cmd = "/bin/true"; ` + mpiGangAd + "]")
	if err != nil {
		t.Fatal(err)
	}
	q := New("h")
	columns := []jobad.TaskColumn{{Name: roost.AttrRequestCpus, Values: []string{"1", "4", "1"}},
		{Name: roost.AttrProcesses, Values: []string{"1", "2", "3"}}}
	events, _, _, err := q.SubmitJobs(time.Unix(1, 0), CallerIdentity{User: "ann", UID: 1}, "k",
		[]jobad.SubmitSpec{{Ad: ad, Count: 3, Columns: columns}}, SubmitLimits{})
	if err != nil {
		t.Fatal(err)
	}
	q.Apply(events[0])
	q.Check()
	for _, id := range []RequestID{1, 2} {
		lead, ok := q.GangRequest(id)
		size, _ := q.NextGang(id)
		if r, _ := q.Request(id); lead != 1 || !ok || size != 3 || r.Ready != 3-int(id) {
			t.Errorf("request %d is led by %d, %v, of a gang of %d, with %d ready", id, lead, ok, size, r.Ready)
		}
	}
	if _, _, ok := q.AssignGang(time.Unix(2, 0),
		1, []GangClaim{{Node: "a", Request: 1}, {Node: "b", Request: 2}, {Node: "c", Request: 2}}); ok {
		t.Error("a task sits on what it did not ask for")
	}
	events, attempts, ok := q.AssignGang(time.Unix(2, 0), 1, []GangClaim{{Node: "b", Claim: 5, Request: 2},
		{Node: "a", Claim: 6, Request: 1}, {Node: "a", Claim: 7, Request: 1}})
	if !ok || attempts[0].Task.Index != 1 || attempts[1].Task.Index != 0 || attempts[2].Task.Index != 2 {
		t.Fatalf("%v, %v", attempts, ok)
	}
	for _, e := range events {
		q.Apply(e)
	}
	q.Check()
	p, err := q.Program(attempts[1])
	if err != nil || len(p.Hosts) != 3 || p.Hosts[1].Node != "b" || p.Hosts[1].Processes != 2 ||
		p.Hosts[2].Processes != 3 || p.Rank != 0 {
		t.Errorf("%+v, %v", p.Hosts, err)
	}
	if s, _ := q.Status(1); s.Resources.CPU != 6000 || s.Placements[1].Resources.CPU != 4000 {
		t.Errorf("%+v", s)
	}
}

// TestMPIGangSuspended checks that all of a job is frozen while the owner of one machine
// is back. So it is when its user wants that.
func TestMPIGangSuspended(t *testing.T) {
	g := newMPIGangTest(t, "")
	g.start()
	froze := func() (list []FreezeAttempt) { return g.queue.TakeFreezes() }
	suspended := func(i int, reason string) {
		t.Helper()
		e, ok := g.queue.SuspendForOwner(time.Unix(5, 0), g.attempts[i], "b", reason)
		if !ok {
			t.Fatalf("%q is no news of task %d", reason, i)
		}
		g.apply(e)
	}
	suspended(1, "its owner is back")
	if got := froze(); len(got) != 2 || got[0] != (FreezeAttempt{g.attempts[0], true}) ||
		got[1] != (FreezeAttempt{g.attempts[2], true}) {
		t.Fatalf("frozen: %v", got)
	}
	if s := g.status(); s.Task.State != roost.Suspended || s.Reason != "its owner is back" ||
		s.Task.SuspendedBy != "owner" {
		t.Errorf("%+v", s.Task)
	}
	if f, ok := g.queue.WantFrozen(g.attempts[0]); !ok || !f.Frozen {
		t.Errorf("after a restart the leader is told %v, %v", f, ok)
	}
	who, job := CallerIdentity{User: "ann", UID: 1}, TaskSelector{Job: roost.JobID{Seq: 1, Host: "h"}}
	events, err := g.queue.SuspendTasks(time.Unix(6, 0), who, job, "")
	if err != nil {
		t.Fatal(err)
	}
	g.apply(events...)
	froze()
	if events, err = g.queue.ResumeTasks(time.Unix(6, 0), who, job); err != nil {
		t.Fatal(err)
	}
	g.apply(events...)
	for _, f := range froze() {
		if f.Attempt != g.attempts[1] { // whose own machine sees to it
			t.Errorf("its user lets %v go on, though an owner is back", f)
		}
	}
	suspended(1, "")
	if got := froze(); len(got) != 2 || got[0].Frozen || got[1].Frozen {
		t.Errorf("thawed: %v", got)
	}
	if s := g.status(); s.Task.State != roost.Running {
		t.Errorf("%+v", s.Task)
	}
}

// TestMPIGangCountsOnce holds that limits count a job of several machines as one,
// whichever of its requests is asked about.
func TestMPIGangCountsOnce(t *testing.T) {
	g := newMPIGangTest(t, "")
	who := g.queue.QuotaKeys()[0]
	if d := g.queue.DemandOf(who); d.Open != 1 || d.Tasks != 3 {
		t.Errorf("got %d open of %d tasks, want 1 of 3", d.Open, d.Tasks)
	}
	if got := g.queue.LimitCounting(1); got != CountOnce {
		t.Errorf("got %v, want %v", got, CountOnce)
	}
	g.start()
	if got := g.queue.LimitCounting(1); got != CountOnce {
		t.Errorf("got %v while it runs, want %v", got, CountOnce)
	}
	for _, c := range []struct {
		ad   string
		open int
	}{{mpiGangAd, 1}, {"GangSize = 3", 3}, {"Owner = 1", 3}} {
		ad, err := classad.Parse(`[Cmd = "/bin/true"; ` + c.ad + "]")
		if err != nil {
			t.Fatal(err)
		}
		if _, d, err := SubmissionDemand(CallerIdentity{User: "ann"}, &jobad.SubmitSpec{Ad: ad,
			Count: 3}); err != nil ||
			d.Open != c.open {
			t.Errorf("%s: got %d open (%v), want %d", c.ad, d.Open, err, c.open)
		}
	}
}

// TestMPIGangPartsCount holds that of the requests of a job that asks for different
// things one stands for the job.
func TestMPIGangPartsCount(t *testing.T) {
	ad, err := classad.Parse("[" + mpiGangAd + `; Cmd = "/bin/true"]`)
	if err != nil {
		t.Fatal(err)
	}
	q := New("host")
	specs := []jobad.SubmitSpec{{Ad: ad, Count: 3, Columns: []jobad.TaskColumn{{Name: roost.AttrRequestCpus,
		Values: []string{"2", "1", "1"}}}}}
	events, _, _, err := q.SubmitJobs(time.Unix(1, 0), CallerIdentity{User: "ann"}, "k", specs, SubmitLimits{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		q.Apply(e)
	}
	var got []LimitCounting
	for _, id := range q.Requests() {
		got = append(got, q.LimitCounting(id))
	}
	if len(got) != 2 || got[0] != CountOnce || got[1] != CountedElsewhere {
		t.Errorf("got %v, want %v", got, []LimitCounting{CountOnce, CountedElsewhere})
	}
}
