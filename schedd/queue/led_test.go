package queue

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// ledGang is a job of three tasks of which the first leads, and how its attempts are driven.
type ledGang struct {
	*testing.T
	q        *Queue
	attempts []roost.AttemptID
}

const ledAd = "GangSize = 3; GangLed = true; Array = false; Processes = 2; MaxRetries = 0"

func newLed(t *testing.T, more string) *ledGang {
	t.Helper()
	q, err := gangQueue(t, ledAd+more, 3)
	if err != nil {
		t.Fatal(err)
	}
	return &ledGang{T: t, q: q}
}

func (g *ledGang) apply(events ...Event) {
	g.Helper()
	for _, e := range events {
		g.q.Apply(e)
	}
	g.q.Check()
}

func (g *ledGang) start() {
	g.Helper()
	events, attempts, ok := g.q.AssignGang(time.Unix(2, 0), 1, []Seat{{Node: "a", Address: "x", Claim: 1}, {Node: "b", Address: "x", Claim: 2}, {Node: "a", Address: "x", Claim: 3}})
	if !ok {
		g.Fatal("the gang is not whole")
	}
	g.apply(events...)
	for _, a := range attempts {
		if e, ok := g.q.Start(time.Unix(3, 0), a); ok {
			g.apply(e)
		}
	}
	g.attempts = attempts
}

func (g *ledGang) end(i int, x Exit) {
	g.Helper()
	e, err := g.q.End(time.Unix(4, 0), g.attempts[i], &x)
	if err != nil {
		g.Fatal(err)
	}
	g.apply(e)
}

// told lists whom the queue wants ended.
func (g *ledGang) told() (list []int) {
	for _, v := range g.q.TakeVacates() {
		list = append(list, v.Attempt.Task.Index)
	}
	return list
}

func (g *ledGang) status() Status {
	g.Helper()
	s, ok := g.q.Status(1)
	if !ok || s.Task == nil || s.Tasks != 1 {
		g.Fatalf("%+v is not told as one task", s)
	}
	return s
}

// TestLedToTheEnd holds that a job ends with its leader, however the others do, and is told as one task.
func TestLedToTheEnd(t *testing.T) {
	g := newLed(t, "")
	if s := g.status(); s.Task.State != roost.Idle || s.Array || len(s.Parts) != 3 || s.Parts[0].Node != "" {
		t.Errorf("%+v", s)
	}
	g.start()
	for i, a := range g.attempts {
		p, err := g.q.Launch(a)
		if err != nil {
			t.Fatal(err)
		}
		if p.Follows != (i > 0) || len(p.Hosts) != 3 || p.Hosts[1].Node != "b" || p.Hosts[2].Processes != 2 {
			t.Errorf("task %d: %+v", i, p)
		}
	}
	g.end(0, Exit{Code: 3, User: 5})
	if told := g.told(); len(told) != 2 || told[0] != 1 || told[1] != 2 {
		t.Fatalf("told to end: %v", told)
	}
	if s := g.status(); s.Task.State != roost.Running || s.Ended != 0 {
		t.Errorf("while machines are being given back it is %v, ended %d", s.Task.State, s.Ended)
	}
	g.end(1, Exit{Cause: ByRemoval, Reason: "its job has ended", User: 7})
	lost, _ := g.q.Lose(time.Unix(5, 0), g.attempts[2], "gone")
	g.apply(lost)
	s := g.status()
	if s.Task.State != roost.Completed || s.Task.Exit.Code != 3 || s.Task.Exit.User != 12 || s.Failed != 1 || s.Parts[1].Node != "b" {
		t.Errorf("%+v of %+v", s.Task, s)
	}
	if told := g.told(); len(told) > 0 {
		t.Errorf("told to end: %v", told)
	}
	again, err := g.q.Retry(time.Unix(6, 0), Submitter{UID: 1}, Target{Job: s.Job})
	if err != nil {
		t.Fatal(err)
	}
	g.apply(again...)
	if g.start(); g.attempts[1].Attempt != 2 {
		t.Errorf("run again as %v", g.attempts)
	}
}

// TestLedFallen holds that a part of a job that ends for good takes the leader with it, and that the job says which it was.
func TestLedFallen(t *testing.T) {
	g := newLed(t, "")
	g.start()
	g.end(2, Exit{Cause: ByMemory, Reason: "it used 2 GiB of 1 GiB"})
	if told := g.told(); len(told) != 1 || told[0] != 0 {
		t.Fatalf("told to end: %v", told)
	}
	g.end(0, Exit{Cause: ByRemoval, Signal: 15, Wall: 9})
	if told := g.told(); len(told) != 1 || told[0] != 1 {
		t.Fatalf("told to end: %v", told)
	}
	g.end(1, Exit{Cause: ByRemoval})
	s := g.status()
	if x := s.Task.Exit; s.Task.State != roost.Completed || x.Cause != ByMemory || x.Wall != 9 || !strings.Contains(x.Reason, "chunk 2 of it, on a") || s.Failed != 2 && s.Failed != 1 {
		t.Errorf("%+v, %d failed", s.Task.Exit, s.Failed)
	}
}

// TestLedAgain holds that a part that is lost has all of it made again, or held where it may not be run twice, and that what is asked of a part is asked
// of all.
func TestLedAgain(t *testing.T) {
	for _, twice := range []bool{true, false} {
		more := ""
		if !twice {
			more = "; Rerunnable = false"
		}
		g := newLed(t, more)
		g.start()
		lost, _ := g.q.Lose(time.Unix(4, 0), g.attempts[1], "its node is gone")
		g.apply(lost)
		if told := g.told(); len(told) != 2 {
			t.Fatalf("told to end: %v", told)
		}
		g.end(0, Exit{Cause: ByRemoval})
		g.end(2, Exit{Cause: ByRemoval})
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
	g := newLed(t, "")
	g.start()
	who, job := Submitter{User: "ann", UID: 1}, roost.JobID{Seq: 1, Host: "h"}
	if _, to, err := g.q.Signal(time.Unix(4, 0), who, Target{Job: job}, "USR1"); err != nil || len(to) != 1 || to[0].Task.Index != 0 {
		t.Errorf("a signal goes to %v, %v", to, err)
	}
	held, err := g.q.Hold(time.Unix(4, 0), who, Target{Job: job, Ranges: []Range{{1, 1}}}, "")
	if err != nil || len(held[0].Ranges) > 0 {
		t.Errorf("a part alone is held: %+v, %v", held, err)
	}
}

func TestLedThatCannotBe(t *testing.T) {
	for _, ad := range []string{"GangLed = true", "GangLed = true; GangSize = 2; Array = false", "GangLed = true; GangSize = 3", `GangLed = true; GangSize = 4; AppClass = "stream"`} {
		if _, err := gangQueue(t, ad, 4); !errors.Is(err, roost.Invalid) {
			t.Errorf("%s: %v", ad, err)
		}
	}
}

// TestLedRandomly plays all that can happen to a led gang, in any order, and holds that it comes to an end that a restart knows as well.
func TestLedRandomly(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		g := newLed(t, "")
		who, job := Submitter{User: "ann", UID: 1}, Target{Job: roost.JobID{Seq: 1, Host: "h"}}
		for range 60 {
			ledStep(g, rng, who, job)
			again := New("h")
			if snapshot, ok := g.q.Snapshot(1); !ok || again.Restore(snapshot) != nil {
				t.Fatalf("seed %d: its snapshot is of no use", seed)
			}
			again.Check()
			if a, b := g.status(), (&ledGang{T: t, q: again}).status(); a.Counts != b.Counts || a.Failed != b.Failed {
				t.Fatalf("seed %d: a restart makes %+v of %+v", seed, b, a)
			}
		}
		if g.status(); g.q.jobs[1].final() { // run again, to the end
			again, err := g.q.Retry(time.Unix(6, 0), who, job)
			if err == nil {
				g.apply(again...)
			}
		}
		g.settle()
		for tries := 0; !g.q.jobs[1].final(); tries++ {
			if tries > 10 {
				t.Fatalf("seed %d: it comes to no end: %v, %d active", seed, g.q.jobs[1].state, g.q.jobs[1].active)
			}
			if released, err := g.q.Release(time.Unix(7, 0), who, job); err == nil {
				g.apply(released...)
			}
			if events, attempts, ok := g.q.AssignGang(time.Unix(2, 0), 1, []Seat{{Node: "a", Address: "x", Claim: 1}, {Node: "b", Address: "x", Claim: 2}, {Node: "a", Address: "x", Claim: 3}}); ok {
				g.apply(events...)
				g.attempts = attempts
				g.end(0, Exit{})
			}
			g.settle()
		}
	}
}

// settle ends what the queue wants ended, and what is left of gangs that were not whole when the schedd ended.
func (g *ledGang) settle() {
	g.q.Mend()
	for len(g.q.asked) > 0 {
		for _, v := range g.q.TakeVacates() {
			if e, err := g.q.End(time.Unix(8, 0), v.Attempt, &Exit{Cause: ByRemoval}); err == nil {
				g.apply(e)
			}
		}
	}
	if g.q.jobs[1].active > 0 && g.q.jobs[1].active == len(g.q.jobs[1].state) {
		g.end(0, Exit{})
	}
}

func ledStep(g *ledGang, rng *rand.Rand, who Submitter, job Target) {
	i, now := rng.IntN(3), time.Unix(5, 0)
	decide := func(events []Event, err error) {
		if err == nil {
			g.apply(events...)
		}
	}
	switch rng.IntN(12) {
	case 0, 1, 2:
		if events, attempts, ok := g.q.AssignGang(now, 1, []Seat{{Node: "a", Address: "x", Claim: 1}, {Node: "b", Address: "x", Claim: 2}, {Node: "a", Address: "x", Claim: 3}}); ok {
			g.apply(events...)
			g.attempts = attempts
		}
	case 3, 4, 5:
		x := Exit{Cause: Cause(rng.IntN(int(ByPreemption) + 1)), Code: int32(rng.IntN(2))}
		if i < len(g.attempts) && g.q.Live(g.attempts[i]) {
			g.end(i, x)
		}
	case 6:
		if i < len(g.attempts) {
			if e, ok := g.q.Lose(now, g.attempts[i], "gone"); ok {
				g.apply(e)
			}
		}
	case 7:
		decide(g.q.Hold(now, who, job, ""))
	case 8:
		decide(g.q.Release(now, who, job))
	case 9:
		if rng.IntN(4) == 0 {
			decide(g.q.Remove(now, who, job, "", false))
		}
	case 10:
		decide(g.q.Retry(now, who, job))
	case 11:
		for _, v := range g.q.TakeVacates() {
			if e, err := g.q.End(now, v.Attempt, &Exit{Cause: ByRemoval}); err == nil {
				g.apply(e)
			}
		}
	}
}

// TestLedMixed holds that the tasks of a gang that ask for different things start together, each on what it asked for.
func TestLedMixed(t *testing.T) {
	ad, err := classad.Parse(`[Cmd = "/bin/true"; ` + ledAd + "]")
	if err != nil {
		t.Fatal(err)
	}
	q := New("h")
	columns := []Column{{roost.AttrRequestCpus, []string{"1", "4", "1"}}, {roost.AttrProcesses, []string{"1", "2", "3"}}}
	events, _, _, err := q.Submit(time.Unix(1, 0), Submitter{User: "ann", UID: 1}, "k", []Spec{{Ad: ad, Count: 3, Columns: columns}}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	q.Apply(events[0])
	q.Check()
	for _, id := range []RequestID{1, 2} {
		lead, ok := q.Lead(id)
		size, _ := q.Gang(id)
		if r, _ := q.Request(id); lead != 1 || !ok || size != 3 || r.Ready != 3-int(id) {
			t.Errorf("request %d is led by %d, %v, of a gang of %d, with %d ready", id, lead, ok, size, r.Ready)
		}
	}
	if _, _, ok := q.AssignGang(time.Unix(2, 0), 1, []Seat{{Node: "a", Request: 1}, {Node: "b", Request: 2}, {Node: "c", Request: 2}}); ok {
		t.Error("a task sits on what it did not ask for")
	}
	events, attempts, ok := q.AssignGang(time.Unix(2, 0), 1, []Seat{{Node: "b", Claim: 5, Request: 2}, {Node: "a", Claim: 6, Request: 1}, {Node: "a", Claim: 7, Request: 1}})
	if !ok || attempts[0].Task.Index != 1 || attempts[1].Task.Index != 0 || attempts[2].Task.Index != 2 {
		t.Fatalf("%v, %v", attempts, ok)
	}
	for _, e := range events {
		q.Apply(e)
	}
	q.Check()
	p, err := q.Launch(attempts[1])
	if err != nil || len(p.Hosts) != 3 || p.Hosts[1].Node != "b" || p.Hosts[1].Processes != 2 || p.Hosts[2].Processes != 3 || p.Rank != 0 {
		t.Errorf("%+v, %v", p.Hosts, err)
	}
	if s, _ := q.Status(1); s.Resources.CPU != 6000 || s.Parts[1].Resources.CPU != 4000 {
		t.Errorf("%+v", s)
	}
}

// TestLedStandsStill holds that all of a job stands still while the owner of one of its machines is back, or its user wants it to.
func TestLedStandsStill(t *testing.T) {
	g := newLed(t, "")
	g.start()
	froze := func() (list []Freeze) { return g.q.TakeFreezes() }
	stood := func(i int, reason string) {
		t.Helper()
		e, ok := g.q.Stood(time.Unix(5, 0), g.attempts[i], "b", reason)
		if !ok {
			t.Fatalf("%q is no news of task %d", reason, i)
		}
		g.apply(e)
	}
	stood(1, "its owner is back")
	if got := froze(); len(got) != 2 || got[0] != (Freeze{g.attempts[0], true}) || got[1] != (Freeze{g.attempts[2], true}) {
		t.Fatalf("frozen: %v", got)
	}
	if s := g.status(); s.Task.State != roost.Suspended || s.Reason != "its owner is back" || s.Task.By != "owner" {
		t.Errorf("%+v", s.Task)
	}
	if f, ok := g.q.Frozen(g.attempts[0]); !ok || !f.Frozen {
		t.Errorf("after a restart the leader is told %v, %v", f, ok)
	}
	who, job := Submitter{User: "ann", UID: 1}, Target{Job: roost.JobID{Seq: 1, Host: "h"}}
	events, err := g.q.Suspend(time.Unix(6, 0), who, job, "")
	if err != nil {
		t.Fatal(err)
	}
	g.apply(events...)
	froze()
	if events, err = g.q.Thaw(time.Unix(6, 0), who, job); err != nil {
		t.Fatal(err)
	}
	g.apply(events...)
	for _, f := range froze() {
		if f.Attempt != g.attempts[1] { // whose own machine sees to it
			t.Errorf("its user lets %v go on, though an owner is back", f)
		}
	}
	stood(1, "")
	if got := froze(); len(got) != 2 || got[0].Frozen || got[1].Frozen {
		t.Errorf("thawed: %v", got)
	}
	if s := g.status(); s.Task.State != roost.Running {
		t.Errorf("%+v", s.Task)
	}
}

// TestLedCountsOnce holds that limits count a job of several machines as one, whichever of its requests is asked about.
func TestLedCountsOnce(t *testing.T) {
	g := newLed(t, "")
	who := g.q.Payers()[0]
	if d := g.q.Demand(who); d.Open != 1 || d.Tasks != 3 {
		t.Errorf("got %d open of %d tasks, want 1 of 3", d.Open, d.Tasks)
	}
	if got := g.q.Counting(1); got != Together {
		t.Errorf("got %v, want %v", got, Together)
	}
	g.start()
	if got := g.q.Counting(1); got != Together {
		t.Errorf("got %v while it runs, want %v", got, Together)
	}
	for _, c := range []struct {
		ad   string
		open int
	}{{ledAd, 1}, {"GangSize = 3", 3}, {"Owner = 1", 3}} {
		ad, err := classad.Parse(`[Cmd = "/bin/true"; ` + c.ad + "]")
		if err != nil {
			t.Fatal(err)
		}
		if _, d, err := Ask(Submitter{User: "ann"}, &Spec{Ad: ad, Count: 3}); err != nil || d.Open != c.open {
			t.Errorf("%s: got %d open (%v), want %d", c.ad, d.Open, err, c.open)
		}
	}
}

// TestLedPartsCount holds that of the requests of a job that asks for different things one stands for the job.
func TestLedPartsCount(t *testing.T) {
	ad, err := classad.Parse("[" + ledAd + `; Cmd = "/bin/true"]`)
	if err != nil {
		t.Fatal(err)
	}
	q := New("host")
	specs := []Spec{{Ad: ad, Count: 3, Columns: []Column{{roost.AttrRequestCpus, []string{"2", "1", "1"}}}}}
	events, _, _, err := q.Submit(time.Unix(1, 0), Submitter{User: "ann"}, "k", specs, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		q.Apply(e)
	}
	var got []Counting
	for _, id := range q.Requests() {
		got = append(got, q.Counting(id))
	}
	if len(got) != 2 || got[0] != Together || got[1] != Elsewhere {
		t.Errorf("got %v, want %v", got, []Counting{Together, Elsewhere})
	}
}
