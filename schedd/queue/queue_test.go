package queue

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

var (
	alice = CallerIdentity{User: "alice", UID: 1000, GID: 1000}
	root  = CallerIdentity{User: "root", Admin: true}
	bob   = CallerIdentity{User: "bob", UID: 1001, GID: 1001}
	epoch = time.Unix(1_700_000_000, 0)
)

func parseTestAd(t testing.TB, src string) *classad.Ad {
	t.Helper()
	a, err := classad.Parse("[Cmd = \"/bin/true\"; " + src + "]")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// testQueue is a queue and its log.
type testQueue struct {
	testing.TB
	queue *Queue
	log   []eventlog.JobEvent
	keys  int
	now   time.Time
}

func newTestQueue(t testing.TB) *testQueue { return &testQueue{TB: t, queue: New("h"), now: epoch} }

func (d *testQueue) apply(events ...eventlog.JobEvent) {
	for _, e := range events {
		decoded, err := eventlog.DecodeEvent(eventlog.AppendEvent(nil, &e))
		if err != nil {
			d.Fatalf("%v: %v", e, err)
		}
		d.queue.Apply(decoded)
		d.log = append(d.log, e)
		if _, bench := d.TB.(*testing.B); !bench {
			d.queue.Check()
		}
	}
}

func (d *testQueue) submit(count int, src string) roost.JobID {
	d.Helper()
	d.keys++
	events, ids, _, err := d.queue.SubmitJobs(d.now, alice, "k"+strconv.Itoa(d.keys),
		[]jobad.SubmitSpec{{Ad: parseTestAd(d, src), Count: count}}, SubmitLimits{})
	if err != nil {
		d.Fatal(err)
	}
	d.apply(events...)
	return ids[0]
}

// start assigns the next task of the only request that has one.
func (d *testQueue) start() roost.AttemptID {
	d.Helper()
	for _, r := range d.queue.Requests() {
		t, ok := d.queue.NextTask(r)
		if !ok {
			continue
		}
		e, a, err := d.queue.AssignNext(d.now, t, "n", "unix:/n", 1)
		if err != nil {
			d.Fatal(err)
		}
		d.apply(e)
		return a
	}
	d.Fatal("nothing is ready")
	return roost.AttemptID{}
}

func (d *testQueue) end(a roost.AttemptID, x eventlog.AttemptExit) {
	d.Helper()
	e, err := d.queue.RecordEnded(d.now, a, &x)
	if err != nil {
		d.Fatal(err)
	}
	d.apply(e)
	d.apply(d.queue.Followups(d.now)...)
}

func (d *testQueue) checkState(id roost.JobID, want string) {
	d.Helper()
	s, _ := d.queue.Status(id.Seq)
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

// TestHoldAndRemoveWhileRunning checks that after a hold or a removal nothing starts.
// What ran ends as it was asked to.
func TestHoldAndRemoveWhileRunning(t *testing.T) {
	d := newTestQueue(t)
	id := d.submit(2, "")
	first, second := d.start(), d.start()
	hold, err := d.queue.HoldTasks(d.now, alice, TaskSelector{Job: id, Ranges: []eventlog.IndexRange{{First: 0,
		Last: 0}}}, "")
	if err != nil {
		t.Fatal(err)
	}
	d.apply(hold...)
	remove, err := d.queue.RemoveTasks(d.now, alice, TaskSelector{Job: id, Ranges: []eventlog.IndexRange{{First: 1,
		Last: 1}}}, "", false)
	if err != nil {
		t.Fatal(err)
	}
	d.apply(remove...)
	if v := d.queue.TakeVacates(); len(v) != 2 {
		t.Fatalf("got %v, want both attempts vacated", v)
	}
	d.end(first, eventlog.AttemptExit{Cause: eventlog.CauseRemoval, Signal: 15})
	d.end(second, eventlog.AttemptExit{Cause: eventlog.CauseRemoval, Signal: 15})
	d.checkState(id, "held 1 removed 1")
	if _, err := d.queue.RemoveTasks(d.now, bob, TaskSelector{Job: id}, "", false); !errors.Is(err,
		roost.PermissionDenied) {
		t.Fatalf("bob removes alice's job: %v", err)
	}
	release, err := d.queue.ReleaseTasks(d.now, alice, TaskSelector{Job: id,
		Ranges: []eventlog.IndexRange{{First: 0, Last: 0}}})
	if err != nil {
		t.Fatal(err)
	}
	d.apply(release...)
	if a := d.start(); a.Attempt != 2 {
		t.Fatalf("got attempt %d, want 2", a.Attempt)
	}
}

func TestOldEventsAreDropped(t *testing.T) {
	d := newTestQueue(t)
	d.submit(1, "MaxRetries = 5")
	first := d.start()
	d.end(first, eventlog.AttemptExit{Code: 1})
	second := d.start()
	if _, err := d.queue.RecordEnded(d.now, first, &eventlog.AttemptExit{}); !errors.Is(err, roost.Stale) {
		t.Fatalf("the end of the first attempt during the second: %v", err)
	}
	if _, ok := d.queue.RecordLost(d.now, first, "gone"); ok {
		t.Fatal("the first attempt was lost during the second")
	}
	if !d.queue.IsLive(second) {
		t.Fatal("the second attempt is not live")
	}
}

func TestDependencies(t *testing.T) {
	d := newTestQueue(t)
	parent := d.submit(2, "")
	ok := d.submit(1, `DependsOn = {"afterok:1"}`)
	notok := d.submit(1, `DependsOn = {"afternotok:1"}`)
	whatever := d.submit(1, `DependsOn = {"afterany:1"}`)
	chained := d.submit(1, `DependsOn = {"afterok:2"}`)
	d.checkState(ok, "blocked 1")
	d.end(d.start(), eventlog.AttemptExit{})
	d.checkState(ok, "blocked 1")
	d.end(d.start(), eventlog.AttemptExit{Code: 1})
	d.checkState(parent, "completed 2 failed 1")
	for events := d.queue.Followups(d.now); len(events) > 0; events = d.queue.Followups(d.now) {
		d.apply(events...)
	}
	d.checkState(ok, "removed 1")
	d.checkState(chained, "removed 1")
	d.checkState(notok, "idle 1")
	d.checkState(whatever, "idle 1")
}

func TestSameKeySameJob(t *testing.T) {
	d := newTestQueue(t)
	specs := []jobad.SubmitSpec{{Ad: parseTestAd(t, ""), Count: 1},
		{Ad: parseTestAd(t, `DependsOn = {"afterok:@0"}`), Count: 2}}
	events, first, _, err := d.queue.SubmitJobs(d.now, alice, "key", specs, SubmitLimits{})
	if err != nil {
		t.Fatal(err)
	}
	d.apply(events...)
	events, again, repeated, err := d.queue.SubmitJobs(d.now, alice, "key", specs, SubmitLimits{})
	if err != nil || !repeated || len(events) != 0 || len(again) != 2 || again[0] != first[0] || again[1] != first[1] {
		t.Fatalf("got %v, %v, %v, want %v again", again, repeated, err, first)
	}
	if _, ids, repeated, _ := d.queue.SubmitJobs(d.now, bob, "key", specs, SubmitLimits{}); repeated ||
		ids[0] == first[0] {
		t.Fatal("bob got alice's job by her key")
	}
}

func TestRefused(t *testing.T) {
	d := newTestQueue(t)
	for name, spec := range map[string]jobad.SubmitSpec{
		"no tasks":        {Ad: parseTestAd(t, ""), Count: 0},
		"too many tasks":  {Ad: parseTestAd(t, ""), Count: roost.MaxTasks + 1},
		"negative memory": {Ad: parseTestAd(t, "RequestMemory = -1"), Count: 1},
		"no cpus":         {Ad: parseTestAd(t, "RequestCpus = 0"), Count: 1},
		"priority":        {Ad: parseTestAd(t, "JobPrio = 5000"), Count: 1},
		"band":            {Ad: parseTestAd(t, `Band = "royal"`), Count: 1},
		"short column": {Ad: parseTestAd(t, ""), Count: 2, Columns: []jobad.TaskColumn{{Name: "A",
			Values: []string{"1"}}}},
		"bad override": {Ad: parseTestAd(t, ""), Count: 1,
			Columns: []jobad.TaskColumn{{Name: "RequestMemory", Values: []string{"lots"}}}},
		"unknown dependency":  {Ad: parseTestAd(t, `DependsOn = {"afterok:77"}`), Count: 1},
		"forward dependency":  {Ad: parseTestAd(t, `DependsOn = {"afterok:@0"}`), Count: 1},
		"type of dependency":  {Ad: parseTestAd(t, `DependsOn = {"whenever:1"}`), Count: 1},
		"transfer":            {Ad: parseTestAd(t, `Transfer = "maybe"`), Count: 1},
		"wrong type of value": {Ad: parseTestAd(t, `Walltime = "soon"`), Count: 1},
	} {
		if _, _, _, err := d.queue.SubmitJobs(d.now, alice, "k", []jobad.SubmitSpec{spec}, SubmitLimits{}); err == nil {
			t.Errorf("%s: it was taken", name)
		}
	}
	if d.queue.Len() != 0 {
		t.Fatal("the queue is not as before")
	}
}

func TestOrderAndLimits(t *testing.T) {
	d := newTestQueue(t)
	low, high := d.submit(2, "MaxRunning = 1"), d.submit(2, "JobPrio = 10; MaxRunning = 1")
	if a := d.start(); a.Task != high.Task(0) {
		t.Fatalf("got %v first, want the higher priority", a)
	}
	a := d.start()
	if a.Task != low.Task(0) {
		t.Fatalf("got %v, want the other job: the first may run one task at once", a)
	}
	if r, _ := d.queue.Request(1); r.Ready != 0 {
		t.Fatalf("%d tasks are ready, want none", r.Ready)
	}
	d.end(a, eventlog.AttemptExit{})
	if b := d.start(); b.Task != low.Task(1) {
		t.Fatalf("got %v, want the next task", b)
	}
}

func TestLaunch(t *testing.T) {
	d := newTestQueue(t)
	spec := jobad.SubmitSpec{
		Ad: parseTestAd(t,
			`Arguments = {"--n=$(TaskIndex)", "$(Seed)", "$$HOME", "5$"}; `+
				`Out = "$(JobSeq).$(JobHost).$(Seed).out"; Environment = {"ID=$(JobId)"}`),
		Count: 2, Columns: []jobad.TaskColumn{{Name: "Seed", Values: []string{"a", "$(x)"}}},
	}
	events, ids, _, err := d.queue.SubmitJobs(d.now, alice, "k", []jobad.SubmitSpec{spec}, SubmitLimits{})
	if err != nil {
		t.Fatal(err)
	}
	d.apply(events...)
	p, err := d.queue.Program(roost.AttemptID{Task: ids[0].Task(1), Attempt: 1})
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%s %v %s %v", p.Executable, p.Arguments, p.Out, p.Environment)
	if want := "/bin/true [--n=1 $(x) $HOME 5$] 1.h.$(x).out [ID=1.h]"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
}

// TestOutputSettings checks that the settings of a job miss no output that the program of
// a task names.
func TestOutputSettings(t *testing.T) {
	d := newTestQueue(t)
	for _, c := range []struct {
		ad   string
		want OutputSettings
	}{
		{`Transfer = "never"`, OutputSettings{Transfer: "never"}},
		{`FileSystemDomain = "cluster"; In = "i"; Out = ""`, OutputSettings{Transfer: "auto", Domain: "cluster"}},
		{`Out = "$(TaskIndex)"`, OutputSettings{Transfer: "auto", NamesFiles: true}},
		{`Err = "e"; RemoveOutput = "o"`, OutputSettings{Transfer: "auto", NamesFiles: true, RemovesFiles: true}},
		{`Name = "n"; Out = strcat(Name, ".o")`, OutputSettings{Transfer: "auto", NamesFiles: true}},
	} {
		for _, count := range []int{1, 3} {
			spec := jobad.SubmitSpec{Ad: parseTestAd(t, c.ad), Count: count}
			events, ids, _, err := d.queue.SubmitJobs(d.now, alice, fmt.Sprint(c.ad, count), []jobad.SubmitSpec{spec},
				SubmitLimits{})
			if err != nil {
				t.Fatal(err)
			}
			d.apply(events...)
			task := ids[0].Task(count - 1)
			got, ok := d.queue.OutputSettings(task)
			if !ok || got != c.want {
				t.Errorf("%s: got %+v, %v, want %+v", c.ad, got, ok, c.want)
			}
			p, err := d.queue.Program(roost.AttemptID{Task: task, Attempt: 1})
			if err != nil || (p.Out+p.Err != "") != got.NamesFiles || (p.RemoveOutput != "") != got.RemovesFiles {
				t.Errorf("%s: its program has %q, %q, %q, %v", c.ad, p.Out, p.Err, p.RemoveOutput, err)
			}
			if _, ok := d.queue.OutputSettings(ids[0].Task(count)); ok {
				t.Errorf("%s: task %d has settings", c.ad, count)
			}
		}
	}
}

func TestLaunchOfArray(t *testing.T) {
	d := newTestQueue(t)
	job := func(indexes string) jobad.SubmitSpec {
		return jobad.SubmitSpec{Ad: parseTestAd(t, `Arguments = {"$(ArrayIndex)"}; ArrayIndexes = "`+indexes+`"`),
			Count: 3}
	}
	events, ids, _, err := d.queue.SubmitJobs(d.now, alice, "k", []jobad.SubmitSpec{job("1-3:2,10")}, SubmitLimits{})
	if err != nil {
		t.Fatal(err)
	}
	d.apply(events...)
	for task, want := range []string{"1", "3", "10"} {
		p, err := d.queue.Program(roost.AttemptID{Task: ids[0].Task(task), Attempt: 1})
		if err != nil || p.Arguments[0] != want {
			t.Errorf("task %d has %v (%v), want %s", task, p.Arguments, err, want)
		}
	}
	for _, indexes := range []string{"7", "x", ""} {
		if _, _, _, err := d.queue.SubmitJobs(d.now, alice, "bad", []jobad.SubmitSpec{job(indexes)},
			SubmitLimits{}); !errors.Is(err, roost.Invalid) {
			t.Errorf("indexes %q for three tasks: %v", indexes, err)
		}
	}
	d.submit(1, "")
	_, err = d.queue.Program(roost.AttemptID{Task: roost.JobID{Seq: 2, Host: "h"}.Task(0), Attempt: 1})
	if err != nil {
		t.Error(err)
	}
}

func TestParseSelector(t *testing.T) {
	for in, want := range map[string]string{
		"12": "12.h", "12.other": "12.other", "12[]": "12.h", "12[3]": "12[3].h", "12[1-9:4].x": "12[1,5,9].x",
		"12[5,1-3,4]": "12[1-5].h", "12[": "", "x": "", "12[a]": "", "12[3-1]": "", "12[1-5:0]": "", "0": "",
	} {
		got, err := ParseSelector(in, "h")
		if (err == nil) != (want != "") || err == nil && got.String() != want {
			t.Errorf("%q: got %v, %v, want %q", in, got, err, want)
		}
	}
}
