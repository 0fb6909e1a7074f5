package queue

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

var (
	alice = Submitter{User: "alice", UID: 1000, GID: 1000}
	root  = Submitter{User: "root", Admin: true}
	bob   = Submitter{User: "bob", UID: 1001, GID: 1001}
	epoch = time.Unix(1_700_000_000, 0)
)

func ad(t testing.TB, src string) *classad.Ad {
	t.Helper()
	a, err := classad.Parse("[Cmd = \"/bin/true\"; " + src + "]")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// desk is a queue and its log.
type desk struct {
	testing.TB
	q    *Queue
	log  []Event
	keys int
	now  time.Time
}

func newDesk(t testing.TB) *desk { return &desk{TB: t, q: New("h"), now: epoch} }

func (d *desk) apply(events ...Event) {
	for _, e := range events {
		decoded, err := DecodeEvent(AppendEvent(nil, &e))
		if err != nil {
			d.Fatalf("%v: %v", e, err)
		}
		d.q.Apply(decoded)
		d.log = append(d.log, e)
		if _, bench := d.TB.(*testing.B); !bench {
			d.q.Check()
		}
	}
}

func (d *desk) submit(count int, src string) roost.JobID {
	d.Helper()
	d.keys++
	events, ids, _, err := d.q.Submit(d.now, alice, "k"+strconv.Itoa(d.keys), []Spec{{Ad: ad(d, src), Count: count}}, Limits{})
	if err != nil {
		d.Fatal(err)
	}
	d.apply(events...)
	return ids[0]
}

// start assigns the next task of the only request that has one.
func (d *desk) start() roost.AttemptID {
	d.Helper()
	for _, r := range d.q.Requests() {
		t, ok := d.q.Next(r)
		if !ok {
			continue
		}
		e, a, err := d.q.Assign(d.now, t, "n", "unix:/n", 1)
		if err != nil {
			d.Fatal(err)
		}
		d.apply(e)
		return a
	}
	d.Fatal("nothing is ready")
	return roost.AttemptID{}
}

func (d *desk) end(a roost.AttemptID, x Exit) {
	d.Helper()
	e, err := d.q.End(d.now, a, &x)
	if err != nil {
		d.Fatal(err)
	}
	d.apply(e)
	d.apply(d.q.Consequences(d.now)...)
}

func (d *desk) want(id roost.JobID, want string) {
	d.Helper()
	s, _ := d.q.Status(id.Seq)
	got := ""
	for state, n := range s.Counts {
		if n > 0 {
			got += fmt.Sprintf("%v %d ", roost.TaskState(state), n)
		}
	}
	if s.Failed > 0 {
		got += fmt.Sprintf("failed %d ", s.Failed)
	}
	if got != want+" " {
		d.Fatalf("%v: got %q (%s), want %q", id, got, s.Reason, want)
	}
}

// After a hold or a removal nothing starts, and what ran goes where it was wanted.
func TestHoldAndRemoveWhileRunning(t *testing.T) {
	d := newDesk(t)
	id := d.submit(2, "")
	first, second := d.start(), d.start()
	hold, err := d.q.Hold(d.now, alice, Target{Job: id, Ranges: []Range{{0, 0}}}, "")
	if err != nil {
		t.Fatal(err)
	}
	d.apply(hold...)
	remove, err := d.q.Remove(d.now, alice, Target{Job: id, Ranges: []Range{{1, 1}}}, "", false)
	if err != nil {
		t.Fatal(err)
	}
	d.apply(remove...)
	if v := d.q.TakeVacates(); len(v) != 2 {
		t.Fatalf("got %v, want both attempts vacated", v)
	}
	d.end(first, Exit{Cause: ByRemoval, Signal: 15})
	d.end(second, Exit{Cause: ByRemoval, Signal: 15})
	d.want(id, "held 1 removed 1")
	if _, err := d.q.Remove(d.now, bob, Target{Job: id}, "", false); !errors.Is(err, roost.PermissionDenied) {
		t.Fatalf("bob removes alice's job: %v", err)
	}
	release, err := d.q.Release(d.now, alice, Target{Job: id, Ranges: []Range{{0, 0}}})
	if err != nil {
		t.Fatal(err)
	}
	d.apply(release...)
	if a := d.start(); a.Attempt != 2 {
		t.Fatalf("got attempt %d, want 2", a.Attempt)
	}
}

func TestOldNewsIsDropped(t *testing.T) {
	d := newDesk(t)
	d.submit(1, "MaxRetries = 5")
	first := d.start()
	d.end(first, Exit{Code: 1})
	second := d.start()
	if _, err := d.q.End(d.now, first, &Exit{}); !errors.Is(err, roost.Stale) {
		t.Fatalf("the end of the first attempt during the second: %v", err)
	}
	if _, ok := d.q.Lose(d.now, first, "gone"); ok {
		t.Fatal("the first attempt was lost during the second")
	}
	if !d.q.Live(second) {
		t.Fatal("the second attempt is not live")
	}
}

func TestDependencies(t *testing.T) {
	d := newDesk(t)
	parent := d.submit(2, "")
	ok := d.submit(1, `DependsOn = {"afterok:1"}`)
	notok := d.submit(1, `DependsOn = {"afternotok:1"}`)
	whatever := d.submit(1, `DependsOn = {"afterany:1"}`)
	chained := d.submit(1, `DependsOn = {"afterok:2"}`)
	d.want(ok, "blocked 1")
	d.end(d.start(), Exit{})
	d.want(ok, "blocked 1")
	d.end(d.start(), Exit{Code: 1})
	d.want(parent, "completed 2 failed 1")
	for events := d.q.Consequences(d.now); len(events) > 0; events = d.q.Consequences(d.now) {
		d.apply(events...)
	}
	d.want(ok, "removed 1")
	d.want(chained, "removed 1")
	d.want(notok, "idle 1")
	d.want(whatever, "idle 1")
}

func TestSameKeySameJob(t *testing.T) {
	d := newDesk(t)
	specs := []Spec{{Ad: ad(t, ""), Count: 1}, {Ad: ad(t, `DependsOn = {"afterok:@0"}`), Count: 2}}
	events, first, _, err := d.q.Submit(d.now, alice, "key", specs, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	d.apply(events...)
	events, again, repeated, err := d.q.Submit(d.now, alice, "key", specs, Limits{})
	if err != nil || !repeated || len(events) != 0 || len(again) != 2 || again[0] != first[0] || again[1] != first[1] {
		t.Fatalf("got %v, %v, %v, want %v again", again, repeated, err, first)
	}
	if _, ids, repeated, _ := d.q.Submit(d.now, bob, "key", specs, Limits{}); repeated || ids[0] == first[0] {
		t.Fatal("bob got alice's job by her key")
	}
}

func TestRefused(t *testing.T) {
	d := newDesk(t)
	for name, spec := range map[string]Spec{
		"no tasks":            {Ad: ad(t, ""), Count: 0},
		"too many tasks":      {Ad: ad(t, ""), Count: roost.MaxTasks + 1},
		"negative memory":     {Ad: ad(t, "RequestMemory = -1"), Count: 1},
		"no cpus":             {Ad: ad(t, "RequestCpus = 0"), Count: 1},
		"priority":            {Ad: ad(t, "JobPrio = 5000"), Count: 1},
		"band":                {Ad: ad(t, `Band = "royal"`), Count: 1},
		"short column":        {Ad: ad(t, ""), Count: 2, Columns: []Column{{"A", []string{"1"}}}},
		"bad override":        {Ad: ad(t, ""), Count: 1, Columns: []Column{{"RequestMemory", []string{"lots"}}}},
		"unknown dependency":  {Ad: ad(t, `DependsOn = {"afterok:77"}`), Count: 1},
		"forward dependency":  {Ad: ad(t, `DependsOn = {"afterok:@0"}`), Count: 1},
		"type of dependency":  {Ad: ad(t, `DependsOn = {"whenever:1"}`), Count: 1},
		"transfer":            {Ad: ad(t, `Transfer = "maybe"`), Count: 1},
		"wrong type of value": {Ad: ad(t, `Walltime = "soon"`), Count: 1},
	} {
		if _, _, _, err := d.q.Submit(d.now, alice, "k", []Spec{spec}, Limits{}); err == nil {
			t.Errorf("%s: it was taken", name)
		}
	}
	if d.q.Len() != 0 {
		t.Fatal("the queue is not as before")
	}
}

func TestOrderAndLimits(t *testing.T) {
	d := newDesk(t)
	low, high := d.submit(2, "MaxRunning = 1"), d.submit(2, "JobPrio = 10; MaxRunning = 1")
	if a := d.start(); a.Task != high.Task(0) {
		t.Fatalf("got %v first, want the higher priority", a)
	}
	a := d.start()
	if a.Task != low.Task(0) {
		t.Fatalf("got %v, want the other job: the first may run one task at once", a)
	}
	if r, _ := d.q.Request(1); r.Ready != 0 {
		t.Fatalf("%d tasks are ready, want none", r.Ready)
	}
	d.end(a, Exit{})
	if b := d.start(); b.Task != low.Task(1) {
		t.Fatalf("got %v, want the next task", b)
	}
}

func TestLaunch(t *testing.T) {
	d := newDesk(t)
	spec := Spec{
		Ad:    ad(t, `Arguments = {"--n=$(TaskIndex)", "$(Seed)", "$$HOME", "5$"}; Out = "$(JobSeq).$(JobHost).$(Seed).out"; Environment = {"ID=$(JobId)"}`),
		Count: 2, Columns: []Column{{"Seed", []string{"a", "$(x)"}}},
	}
	events, ids, _, err := d.q.Submit(d.now, alice, "k", []Spec{spec}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	d.apply(events...)
	p, err := d.q.Launch(roost.AttemptID{Task: ids[0].Task(1), Attempt: 1})
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%s %v %s %v", p.Executable, p.Arguments, p.Out, p.Environment)
	if want := "/bin/true [--n=1 $(x) $HOME 5$] 1.h.$(x).out [ID=1.h]"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
}

func TestLaunchOfArray(t *testing.T) {
	d := newDesk(t)
	job := func(indexes string) Spec {
		return Spec{Ad: ad(t, `Arguments = {"$(ArrayIndex)"}; ArrayIndexes = "`+indexes+`"`), Count: 3}
	}
	events, ids, _, err := d.q.Submit(d.now, alice, "k", []Spec{job("1-3:2,10")}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	d.apply(events...)
	for task, want := range []string{"1", "3", "10"} {
		p, err := d.q.Launch(roost.AttemptID{Task: ids[0].Task(task), Attempt: 1})
		if err != nil || p.Arguments[0] != want {
			t.Errorf("task %d has %v (%v), want %s", task, p.Arguments, err, want)
		}
	}
	for _, indexes := range []string{"7", "x", ""} {
		if _, _, _, err := d.q.Submit(d.now, alice, "bad", []Spec{job(indexes)}, Limits{}); !errors.Is(err, roost.Invalid) {
			t.Errorf("indexes %q for three tasks: %v", indexes, err)
		}
	}
	d.submit(1, "")
	_, err = d.q.Launch(roost.AttemptID{Task: roost.JobID{Seq: 2, Host: "h"}.Task(0), Attempt: 1})
	if err != nil {
		t.Error(err)
	}
}

func TestParseTarget(t *testing.T) {
	for in, want := range map[string]string{
		"12": "12.h", "12.other": "12.other", "12[]": "12.h", "12[3]": "12[3].h", "12[1-9:4].x": "12[1,5,9].x",
		"12[5,1-3,4]": "12[1-5].h", "12[": "", "x": "", "12[a]": "", "12[3-1]": "", "12[1-5:0]": "", "0": "",
	} {
		got, err := ParseTarget(in, "h")
		if (err == nil) != (want != "") || err == nil && got.String() != want {
			t.Errorf("%q: got %v, %v, want %q", in, got, err, want)
		}
	}
}

// Random work in any order keeps the invariants, and replay of the log ends in the same state, from the beginning and from a snapshot on the way.
func TestRandomAndReplay(t *testing.T) {
	for seed := range uint64(60) {
		d, rng := newDesk(t), rand.New(rand.NewPCG(seed, 7))
		var restored *Queue
		from, restart := 0, rng.IntN(300)
		for i := range 300 {
			d.step(rng)
			if i == restart {
				restored, from = d.copied(), len(d.log)
			}
		}
		replayed := New("h")
		for _, e := range d.log {
			replayed.Apply(e)
		}
		for _, e := range d.log[from:] {
			restored.Apply(e)
			restored.Check()
		}
		replayed.Check()
		d.same(replayed)
		d.same(restored)
		d.same(d.copied())
	}
}

// copied is a queue made of the snapshots of the desk's.
func (d *desk) copied() *Queue {
	d.Helper()
	q := New("h")
	for seq := range d.q.jobs {
		b, _ := d.q.Snapshot(seq)
		if err := q.Restore(b); err != nil {
			d.Fatal(err)
		}
	}
	q.Resume(d.q.LastSeq())
	q.Check()
	return q
}

// same fails unless a queue holds what the desk's does.
func (d *desk) same(q *Queue) {
	d.Helper()
	if q.Len() != d.q.Len() || q.Tasks() != d.q.Tasks() {
		d.Fatalf("got %d jobs and %d tasks, want %d and %d", q.Len(), q.Tasks(), d.q.Len(), d.q.Tasks())
	}
	for seq := range d.q.jobs {
		want, _ := d.q.Snapshot(seq)
		got, _ := q.Snapshot(seq)
		a, _ := d.q.Status(seq)
		b, _ := q.Status(seq)
		a.Request, b.Request = 0, 0
		if !bytes.Equal(got, want) || fmt.Sprintf("%+v", a) != fmt.Sprintf("%+v", b) && a.Task == nil {
			d.Fatalf("job %d is %+v, want %+v\n%x\n%x", seq, b, a, got, want)
		}
	}
}

func (d *desk) step(rng *rand.Rand) {
	d.now = d.now.Add(time.Second)
	seq := uint64(1 + rng.IntN(int(d.q.lastSeq)+1))
	target := Target{Job: roost.JobID{Seq: seq, Host: "h"}}
	if rng.IntN(2) == 0 {
		target.Ranges = []Range{{0, rng.IntN(3)}}
	}
	var events []Event
	switch rng.IntN(16) {
	case 14, 15:
		events = d.urge(rng, target)
	case 12:
		a := Alteration{Changes: changed(d, randomChange(rng)), Basis: -1}
		if rng.IntN(8) == 0 {
			a.Count = 1 + rng.IntN(5)
		}
		target.Ranges = nil
		events, _ = d.q.Alter(d.now, alice, target, a, Limits{})
	case 13:
		other := Target{Job: roost.JobID{Seq: 1 + rng.Uint64N(d.q.lastSeq+1), Host: "h"}}
		events, _ = d.q.Order(d.now, alice, Target{Job: target.Job}, other)
	case 0:
		extra := []string{"", "MaxRetries = 1", "MaxRunning = 2", "Rerunnable = false", "HoldOnSubmit = true", "DeferralTime = 1700000200", "PBS = []", "GangSize = 2"}[rng.IntN(8)]
		spec := Spec{Ad: ad(d, extra), Count: 1 + rng.IntN(5)}
		if d.q.jobs[seq] != nil && rng.IntN(3) == 0 {
			spec.Ad.SetStrings(roost.AttrDependsOn, d.anyWaits(rng))
		}
		if rng.IntN(3) == 0 {
			c := Column{Name: []string{roost.AttrRequestMemory, roost.AttrWalltime}[rng.IntN(2)]}
			for range spec.Count {
				c.Values = append(c.Values, strconv.Itoa(1024*(1+rng.IntN(2))))
			}
			spec.Columns = []Column{c}
		}
		d.keys++
		events, _, _, _ = d.q.Submit(d.now, alice, strconv.Itoa(d.keys), []Spec{spec}, Limits{})
	case 1:
		events = d.hold(rng, target)
	case 2:
		events, _ = d.q.Release(d.now, []Submitter{alice, root}[rng.IntN(2)], target)
	case 3:
		events, _ = d.q.Remove(d.now, alice, target, "", false)
	case 4:
		events, _ = d.q.Retry(d.now, alice, target)
	case 5:
		if done := d.q.Done(); len(done) > 0 && rng.IntN(3) == 0 {
			if e, ok := d.q.Purge(d.now, done[0]); ok {
				events = []Event{e}
			}
		}
	case 6:
		events, _ = d.q.Suspend(d.now, alice, target, "")
	case 7:
		events, _ = d.q.Thaw(d.now, alice, target)
	case 8:
		events, _ = d.q.Rerun(d.now, alice, target, false)
	default:
		events = d.work(rng)
	}
	d.apply(events...)
	d.apply(d.q.Consequences(d.now)...)
}

// work moves some task a step on.
func (d *desk) work(rng *rand.Rand) []Event {
	if live := d.q.Active(); len(live) > 0 && rng.IntN(2) == 0 {
		a := live[rng.IntN(len(live))].Attempt
		switch rng.IntN(6) {
		case 3:
			if e, err := d.q.Keep(d.now, a, Image{Sequence: uint64(len(d.log)), Work: Work{Wall: 1}}); err == nil {
				return []Event{e}
			}
		case 4:
			if e, ok := d.q.Unkept(d.now, a, "no", rng.IntN(2) == 0); ok {
				return []Event{e}
			}
		case 0:
			if e, ok := d.q.Start(d.now, a); ok {
				return []Event{e}
			}
		case 1:
			if e, ok := d.q.Lose(d.now, a, "node gone"); ok {
				return []Event{e}
			}
		}
		e, err := d.q.End(d.now, a, &Exit{Code: int32(rng.IntN(2)), Cause: Cause(rng.IntN(int(ByRestore) + 1))})
		if err != nil {
			d.Fatal(err)
		}
		return []Event{e}
	}
	for _, r := range d.q.Requests() {
		if size, ok := d.q.Gang(r); ok && size > 1 {
			events, _, ok := d.q.AssignGang(d.now, r, slices.Repeat([]Seat{{Node: "n", Address: "unix:/n", Claim: 1}}, size))
			if !ok {
				d.Fatalf("a gang of %d of request %d is whole, and cannot be assigned", size, r)
			}
			return events
		}
		if t, ok := d.q.Next(r); ok {
			e, _, err := d.q.Assign(d.now, t, "n", "unix:/n", 1)
			if err != nil {
				d.Fatal(err)
			}
			return []Event{e}
		}
	}
	return nil
}

// TestQueueRequires holds that what a queue wants of machines stands beside what its job wants, and parts requests.
func TestQueueRequires(t *testing.T) {
	d := newDesk(t)
	d.submit(1, "Requirements = TARGET.Fast")
	d.submit(1, `Requirements = TARGET.Fast; QueueRequirements = TARGET.Qlist == "own"`)
	d.submit(1, `QueueRequirements = TARGET.Qlist == "own"`)
	var got []string
	for _, id := range d.q.Requests() {
		r, _ := d.q.Request(id)
		ad, err := classad.Parse(r.Ad)
		if err != nil {
			t.Fatal(err)
		}
		e, _ := ad.Lookup(roost.AttrRequirements)
		got = append(got, e.String())
	}
	want := []string{`TARGET.Fast`, `(TARGET.Fast) && (TARGET.Qlist == "own")`, `(true) && (TARGET.Qlist == "own")`}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
