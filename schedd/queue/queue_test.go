package queue

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

var alice = Submitter{User: "alice", UID: 1000, GID: 1000, Host: "h"}

func spec(t testing.TB, count int, ad string, columns ...Column) Spec {
	t.Helper()
	a, err := classad.Parse(ad)
	if err != nil {
		t.Fatal(err)
	}
	return Spec{a, count, columns}
}

// state is everything about the jobs of a queue, as bytes.
func state(q *Queue) []byte {
	var b []byte
	for _, seq := range sortedJobs(q) {
		b = append(b, q.SnapshotJob(seq)...)
	}
	return b
}

func sortedJobs(q *Queue) (seqs []uint64) {
	for seq := range q.jobs {
		seqs = append(seqs, seq)
	}
	slices.Sort(seqs)
	return seqs
}

// driver makes random moves, and holds the live queue against one that replays the encoded events and one that is restored from snapshots.
type driver struct {
	*testing.T
	rng    *rand.Rand
	now    time.Time
	q, log *Queue
	live   map[roost.TaskID]roost.AttemptID // the naive truth
}

func (d *driver) apply(events ...Event) {
	for _, e := range events {
		got, err := DecodeEvent(AppendEvent(nil, &e))
		if err != nil || !reflect.DeepEqual(got, e) {
			d.Fatalf("event %+v comes back as %+v (%v)", e, got, err)
		}
		d.q.Apply(e)
		d.log.Apply(got)
		d.q.Check()
		if !bytes.Equal(state(d.q), state(d.log)) {
			d.Fatalf("after %v the replay differs", e.What)
		}
	}
	again := New("h")
	for _, seq := range sortedJobs(d.q) {
		if err := again.RestoreJob(d.q.SnapshotJob(seq)); err != nil {
			d.Fatal(err)
		}
	}
	again.Check()
	if !bytes.Equal(state(d.q), state(again)) {
		d.Fatal("what is restored differs")
	}
}

func (d *driver) submit(n int) {
	ad := fmt.Sprintf(`[Cmd="x"; JobPrio=%d; MaxRetries=%d; MaxRunning=%d; Rerunnable=%v`, d.rng.IntN(3), d.rng.IntN(3), d.rng.IntN(3), d.rng.IntN(4) > 0)
	if seqs := sortedJobs(d.q); len(seqs) > 0 && d.rng.IntN(2) == 0 {
		kind := waitNames[1+d.rng.IntN(4)]
		ad += fmt.Sprintf(`; DependsOn={"%s:%d"}`, kind, seqs[d.rng.IntN(len(seqs))])
	}
	if d.rng.IntN(4) == 0 {
		ad += fmt.Sprintf("; DeferralTime=%d", d.now.Unix()+d.rng.Int64N(30))
	}
	var columns []Column
	count := 1 + d.rng.IntN(4)
	if d.rng.IntN(2) == 0 {
		c := Column{Name: "RequestCpus"}
		for range count {
			c.Values = append(c.Values, fmt.Sprint(1+d.rng.IntN(2)))
		}
		columns = append(columns, c)
	}
	events, _, _, err := d.q.Submit(d.now, alice, fmt.Sprint(n), []Spec{spec(d, count, ad+"]", columns...)}, Limits{})
	if err != nil && !errors.Is(err, roost.Conflict) { // a dependency that can never come
		d.Fatal(err)
	}
	d.apply(events...)
}

func (d *driver) assign() {
	ids := d.q.Requests()
	if len(ids) == 0 {
		return
	}
	id := ids[d.rng.IntN(len(ids))]
	task, ok := d.q.Next(id)
	want, found := d.naiveNext(id)
	if ok != found || task != want {
		d.Fatalf("request %d: next is %v %v, and should be %v %v", id, task, ok, want, found)
	}
	if !ok {
		return
	}
	e, a, err := d.q.Assign(d.now, task, "n", "addr", 7)
	if err != nil {
		d.Fatal(err)
	}
	if old, ok := d.live[task]; ok {
		d.Fatalf("%v starts beside %v", a, old)
	}
	d.live[task] = a
	d.apply(e)
}

// naiveNext looks at every task.
func (d *driver) naiveNext(id RequestID) (best roost.TaskID, found bool) {
	top := 0
	for _, seq := range sortedJobs(d.q) {
		j := d.q.jobs[seq]
		for i, s := range j.state {
			if s == roost.Idle && j.class(i).request.ID == id && !j.full() && (!found || j.plan.priority > top) {
				best, found, top = j.id("h").Task(i), true, j.plan.priority
			}
		}
	}
	return best, found
}

func (d *driver) finish() {
	var tasks []roost.TaskID
	for t := range d.live {
		tasks = append(tasks, t)
	}
	if len(tasks) == 0 {
		return
	}
	slices.SortFunc(tasks, func(a, b roost.TaskID) int { return int(a.Job.Seq)*10 + a.Index - int(b.Job.Seq)*10 - b.Index })
	a := d.live[tasks[d.rng.IntN(len(tasks))]]
	switch d.rng.IntN(4) {
	case 0:
		if e, ok := d.q.Start(d.now, a); ok {
			d.apply(e)
		}
		return
	case 1:
		e, ok := d.q.Lose(d.now, a, "gone")
		if !ok {
			d.Fatalf("%v is live and cannot be lost", a)
		}
		d.apply(e)
	default:
		e, err := d.q.End(d.now, a, &Exit{Code: int32(d.rng.IntN(2)), Cause: Cause(d.rng.IntN(7)), Wall: 5, Output: Output{Spool: "s", Stdout: 3}})
		if err != nil {
			d.Fatal(err)
		}
		d.apply(e)
	}
	delete(d.live, a.Task)
	if _, err := d.q.End(d.now, a, &Exit{}); !errors.Is(err, roost.Stale) {
		d.Fatalf("%v ended twice: %v", a, err)
	}
}

func (d *driver) act() {
	seqs := sortedJobs(d.q)
	if len(seqs) == 0 {
		return
	}
	t := Target{Job: roost.JobID{Seq: seqs[d.rng.IntN(len(seqs))], Host: "h"}}
	if d.rng.IntN(2) == 0 {
		t.Ranges = []Range{{0, 0}}
	}
	var events []Event
	switch d.rng.IntN(6) {
	case 0, 1:
		events, _ = d.q.Hold(d.now, alice, t, "")
	case 2:
		events, _ = d.q.Release(d.now, alice, t)
	case 3:
		events, _ = d.q.Remove(d.now, alice, t, "", d.rng.IntN(2) == 0)
	case 4:
		events, _ = d.q.Retry(d.now, alice, t)
	case 5:
		if e, ok := d.q.Purge(d.now, t.Job); ok {
			events = append(events, e)
		}
	}
	d.apply(events...)
}

func TestRandom(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			d := &driver{T: t, rng: rand.New(rand.NewPCG(seed, 1)), now: time.Unix(1e9, 0), q: New("h"), log: New("h"), live: map[roost.TaskID]roost.AttemptID{}}
			for n := range 250 {
				d.now = d.now.Add(time.Second)
				d.apply(d.q.Due(d.now)...)
				switch k := d.rng.IntN(10); {
				case k == 0 && len(d.q.jobs) < 12:
					d.submit(n)
				case k < 4:
					d.assign()
				case k < 8:
					d.finish()
				default:
					d.act()
				}
			}
		})
	}
}

func TestLaunchFillsIn(t *testing.T) {
	q := New("h")
	events, ids, _, err := q.Submit(time.Unix(1, 0), alice, "k", []Spec{spec(t, 2, `[Cmd="/bin/$(P)"; Arguments={"$(TaskIndex)","$(JobId)","$$5"}; Owner="root"]`,
		Column{"P", []string{"a", "b"}})}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	q.Apply(events[0])
	e, a, err := q.Assign(time.Unix(2, 0), ids[0].Task(1), "n", "x", 1)
	if err != nil {
		t.Fatal(err)
	}
	q.Apply(e)
	p, err := q.Launch(a)
	if err != nil || p.Executable != "/bin/b" || !slices.Equal(p.Arguments, []string{"1", "1.h", "$5"}) || p.User != "alice" {
		t.Fatalf("got %+v, %v", p, err)
	}
	if _, again, repeated, err := q.Submit(time.Unix(9, 0), alice, "k", nil, Limits{}); err != nil || !repeated || !slices.Equal(again, ids) {
		t.Fatalf("the same key gives %v, %v, %v", again, repeated, err)
	}
	bob := Submitter{User: "bob", UID: 1001}
	if _, err := q.Hold(time.Unix(3, 0), bob, Target{Job: ids[0]}, ""); !errors.Is(err, roost.PermissionDenied) {
		t.Fatalf("bob holds alice's job: %v", err)
	}
}

func TestSubmitRefuses(t *testing.T) {
	for _, s := range []Spec{
		spec(t, 0, `[Cmd="x"]`), spec(t, roost.MaxTasks+1, `[Cmd="x"]`), spec(t, 1, `[RequestMemory=-1]`), spec(t, 1, `[Band="vip"]`),
		spec(t, 1, `[JobPrio=2000]`), spec(t, 1, `[DependsOn={"@0"}]`), spec(t, 1, `[DependsOn={"9"}]`), spec(t, 1, `[Cmd="$(Nope)"]`),
		spec(t, 2, `[Cmd="x"]`, Column{"A", []string{"1"}}), spec(t, 1, `[Cmd="x"]`, Column{"RequestCpus", []string{"0"}}),
		spec(t, 1, `[Cmd="x"]`, Column{"Requirements", []string{"a &&"}}),
	} {
		if events, _, _, err := New("h").Submit(time.Unix(1, 0), alice, "k", []Spec{s}, Limits{}); err == nil || events != nil {
			t.Errorf("%v with %d tasks is taken", s.Ad, s.Count)
		}
	}
}

func FuzzDecodeEvent(f *testing.F) {
	f.Add(AppendEvent(nil, &Event{What: Ended, Job: 1, Attempt: 1, Exit: &Exit{Reason: "r"}}))
	f.Add(AppendEvent(nil, &Event{What: Submitted, Job: 1, Submission: &Submission{Ad: "[]", Count: 1, Columns: []Column{{"a", []string{"b"}}}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if e, err := DecodeEvent(b); err == nil {
			if again, err := DecodeEvent(AppendEvent(nil, &e)); err != nil || !reflect.DeepEqual(again, e) {
				t.Fatalf("%+v comes back as %+v (%v)", e, again, err)
			}
		}
		New("h").RestoreJob(b)
	})
}

func BenchmarkSubmit100k(b *testing.B) {
	s := spec(b, 100_000, `[Cmd="/bin/true"]`)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var q *Queue
	for b.Loop() {
		q = New("h")
		events, _, _, err := q.Submit(time.Unix(1, 0), alice, "k", []Spec{s}, Limits{})
		if err != nil {
			b.Fatal(err)
		}
		q.Apply(events[0])
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/100_000, "bytes/task")
	runtime.KeepAlive(q)
}

func BenchmarkCycle(b *testing.B) {
	q := New("h")
	events, _, _, _ := q.Submit(time.Unix(1, 0), alice, "k", []Spec{spec(b, 5_000_000, `[Cmd="/bin/true"]`)}, Limits{})
	q.Apply(events[0])
	now := time.Unix(2, 0)
	for b.Loop() {
		t, ok := q.Next(1)
		if !ok {
			b.Fatal("nothing is left")
		}
		e, a, _ := q.Assign(now, t, "n", "addr", 1)
		q.Apply(e)
		e, _ = q.Start(now, a)
		q.Apply(e)
		e, _ = q.End(now, a, &Exit{})
		q.Apply(e)
	}
}
