package queue

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/update"
)

// scaleSome has machines say what tasks use, and the queue decide about them.
func (d *testQueue) scaleSome(rng *rand.Rand) (events []eventlog.JobEvent) {
	for _, a := range d.queue.ActiveAttempts() {
		span := time.Duration(d.now.UnixNano())
		d.queue.NoteUse(d.now, a.Attempt, time.Duration(float64(span)*rng.Float64()), span, roost.GiB)
	}
	for _, e := range d.queue.DecideScaling(d.now) {
		e.Submission.DeferredAdmission = false
		events = append(events, e)
	}
	return events
}

// scaleRun is a service that is scaled by a metric. Each task that runs has its part of a
// load.
type scaleRun struct {
	*updateRun
	load   float64
	silent bool // nothing is measured
}

const scaledService = `Ports = {[Name = "http"]}; Autoscale = [Min = 1; Max = 8; Metric = "in_flight"; Port = "http"; ` +
	`Target = 10; DownWindow = 60]`

func newScaleRun(t *testing.T, src string) *scaleRun {
	return &scaleRun{updateRun: newUpdateRun(t, 1, src)}
}

// passLoad lets time pass, and returns the reasons of the changes.
func (d *scaleRun) passLoad(length time.Duration) (reasons []string) {
	d.Helper()
	for end := d.now.Add(length); d.now.Before(end); {
		running := serviceTasks{d.job()}.status().ByState[roost.ServiceReady]
		for _, a := range d.queue.ActiveAttempts() {
			if !d.silent {
				d.queue.NoteMetric(d.now, a.Attempt, d.load/float64(running))
			}
		}
		for _, e := range d.queue.DecideScaling(d.now) {
			d.apply(e)
			reasons = append(reasons, fmt.Sprintf("%d: %s", e.Submission.Count, e.Reason))
		}
		d.pass(time.Second)
	}
	return reasons
}

func (d *scaleRun) expectCount(want int) {
	d.Helper()
	d.queue.Check()
	if got := d.services(d.id); !strings.HasSuffix(got, fmt.Sprintf("; %d of %d", want, want)) {
		d.Fatalf("got %s, want %d tasks: %+v", got, want, serviceTasks{d.job()}.autoscaleStatus())
	}
}

// TestAutoscale checks that the number of tasks follows a load up and down. A restart of
// the schedd in between changes nothing, and shrinks nothing.
func TestAutoscale(t *testing.T) {
	d := newScaleRun(t, scaledService)
	d.load = 35
	if got := d.passLoad(time.Minute); len(got) != 1 ||
		got[0] != "4: in_flight is 35 in 1 ready tasks, 35 each, and 10 is the target: 4 wanted" {
		t.Fatalf("got %q", got)
	}
	d.expectCount(4)
	d.load = 500
	d.passLoad(2 * time.Minute)
	d.expectCount(8)
	d.load = 12
	d.restart()
	if got := d.passLoad(50 * time.Second); len(got) > 0 {
		t.Fatalf("right after a restart: %q", got)
	}
	d.passLoad(time.Minute)
	d.expectCount(2)
	d.checkSame(d.restoredCopy())
	d.silent, d.load = true, 0
	if got := d.passLoad(10 * time.Minute); len(got) > 0 {
		t.Fatalf("without data: %q", got)
	}
	s := serviceTasks{d.job()}.autoscaleStatus()
	if want := "in_flight of no ready task is known"; s.Decision.Reason != want || len(s.Changes) < 3 || s.At == 0 {
		t.Fatalf("got %+v, want %s", s, want)
	}
	replayed := New("h")
	for _, e := range d.log {
		replayed.Apply(e)
	}
	replayed.Check()
	d.checkSame(replayed)
}

// TestAutoscaleAndUsers checks what becomes of what users say of the number of tasks.
func TestAutoscaleAndUsers(t *testing.T) {
	d := newScaleRun(t, scaledService)
	d.load = 30
	d.passLoad(time.Minute)
	d.expectCount(3)
	d.reviseCount(1, scaledService+`; Arguments = {"2"}`) // the count of a file is for the beginning
	d.passLoad(2 * time.Minute)
	d.expect("222 done")
	scale := func(count int) error {
		events, _, err := d.queue.ReviseJob(d.now, alice, TaskSelector{Job: d.id},
			JobRevision{CountOnly: true, Count: count}, SubmitLimits{})
		d.apply(events...)
		return err
	}
	if err := scale(6); err != nil {
		t.Fatal(err)
	}
	d.passLoad(50 * time.Second) // stays for the window
	d.expectCount(6)
	d.passLoad(time.Minute)
	d.expectCount(3)
	if err := scale(9); err == nil || !strings.Contains(err.Error(), "allows 1 to 8 tasks, and 9 are wanted") {
		t.Fatalf("got %v", err)
	}
	d.revise(strings.ReplaceAll(scaledService, "Max = 8", "Max = 2") + `; Arguments = {"2"}`)
	d.pass(time.Second)
	d.expectCount(2)
	d.revise(`Ports = {[Name = "http"]}; Arguments = {"2"}`)
	d.load = 500
	d.passLoad(time.Minute)
	d.expectCount(2)
	if serviceTasks(serviceTasks{d.job()}).autoscaleStatus() != nil || len(d.queue.scaled) > 0 {
		t.Fatal("it is scaled without an autoscale block")
	}
}

// TestAutoscaleAndUpdates checks that a service is not scaled while its update waits. An
// undo leaves its number of tasks alone.
func TestAutoscaleAndUpdates(t *testing.T) {
	d := newScaleRun(t, scaledService)
	d.load = 30
	d.passLoad(time.Minute)
	d.revise(scaledService + `; Arguments = {"2"}`)
	d.command(update.Pause)
	d.load = 60
	d.passLoad(time.Minute)
	d.expectCount(3)
	if s := (serviceTasks{d.job()}).autoscaleStatus(); !strings.Contains(s.Problem, "its update is paused") ||
		s.Decision.Wanted != 6 {
		t.Fatalf("got %+v", s)
	}
	d.command(update.Resume)
	d.passLoad(3 * time.Minute)
	d.expect("222222 done")
	d.command(update.Undo)
	d.passLoad(3 * time.Minute)
	d.expect("111111 undone")
}

// TestAutoscaleQuota checks that a refused growth is tried in smaller steps, and told.
func TestAutoscaleQuota(t *testing.T) {
	d := newScaleRun(t, scaledService)
	d.load = 70
	const quota = 4 // tasks
	for range 30 {
		for _, a := range d.queue.ActiveAttempts() {
			d.queue.NoteMetric(d.now, a.Attempt, d.load/float64(d.job().active))
		}
		for _, e := range d.queue.DecideScaling(d.now) {
			if !e.Submission.DeferredAdmission {
				t.Fatalf("%+v asks for no more quota", e.Submission)
			}
			d.queue.AskQuota(&eventlog.JobEvent{Type: eventlog.Scaled, Job: d.id.Seq})
			if again := d.queue.DecideScaling(d.now.Add(time.Hour)); len(again) > 0 {
				t.Fatalf("while the quota is asked: %v", again)
			}
			refusal := ""
			if e.Submission.Count > quota {
				refusal = "quota: 4 cores"
			}
			d.apply(d.queue.QuotaAnswered(d.now, e, refusal)...)
		}
		d.pass(20 * time.Second)
	}
	d.expectCount(quota)
	if s := (serviceTasks{d.job()}).autoscaleStatus(); s.Problem != "its quota does not let it grow: quota: 4 cores" {
		t.Fatalf("got %+v", s)
	}
	d.load = 40
	d.passLoad(time.Minute)
	if s := (serviceTasks{d.job()}).autoscaleStatus(); s.Problem != "" {
		t.Fatalf("got %+v", s)
	}
}

// TestAutoscaleBySources checks the sources that no task reports of itself.
func TestAutoscaleBySources(t *testing.T) {
	d := newUpdateRun(t, 1, "RequestCpus = 2; RequestMemory = 1024; Autoscale = [Max = 8; CPU = 0.5]")
	for range 30 {
		for _, a := range d.queue.ActiveAttempts() { // 3 cores in all
			wall := time.Duration(d.now.UnixNano())
			d.queue.NoteUse(d.now, a.Attempt, 3*wall/time.Duration(d.job().active), wall, 0)
		}
		d.apply(d.queue.DecideScaling(d.now)...)
		d.pass(10 * time.Second)
	}
	if n := taskCount(d.job()); n != 3 {
		t.Errorf("by cores: %d tasks: %+v", n, serviceTasks{d.job()}.autoscaleStatus())
	}
	d = newUpdateRun(t, 1, "RequestMemory = 1024; Autoscale = [Max = 8; Memory = 0.8]")
	for range 10 {
		for _, a := range d.queue.ActiveAttempts() {
			d.queue.NoteUse(d.now, a.Attempt, 0, 0, 2*roost.GiB/roost.Bytes(d.job().active))
		}
		d.apply(d.queue.DecideScaling(d.now)...)
		d.pass(20 * time.Second)
	}
	if n := taskCount(d.job()); n != 3 {
		t.Errorf("by memory: %d tasks: %+v", n, serviceTasks{d.job()}.autoscaleStatus())
	}
	d = newUpdateRun(t, 1, `Autoscale = [Max = 8; WaitingJob = "frames"; Target = 5]`)
	d.submit(17, `JobName = "frames"; HoldOnSubmit = true`)
	d.submit(30, `JobName = "others"; HoldOnSubmit = true`)
	all := []CallerIdentity{alice}
	for seq := range d.queue.jobs {
		events, _ := d.queue.ReleaseTasks(d.now, all[0], TaskSelector{Job: roost.JobID{Seq: seq, Host: "h"}})
		d.apply(events...)
	}
	d.apply(d.queue.DecideScaling(d.now)...)
	if n := taskCount(d.job()); n != 4 {
		t.Errorf("by waiting tasks: %d tasks: %+v", n, serviceTasks{d.job()}.autoscaleStatus())
	}
}

// TestAutoscaleSpec checks what an ad may say of it.
func TestAutoscaleSpec(t *testing.T) {
	for src, want := range map[string]string{
		"Autoscale = 3":                                                           "an ad is wanted",
		"Autoscale = [CPU = 0.5]":                                                 "max",
		"Autoscale = [Max = 3]":                                                   "by what the service is scaled",
		"Autoscale = [Min = 4; Max = 3; CPU = 1]":                                 "4 is more than max",
		"Autoscale = [Max = 3; CPU = 1; Memory=1]":                                "scaled by one thing",
		"Autoscale = [Max = 3; Metric = \"a b\"]":                                 "no name of a metric",
		"Autoscale = [Max = 3; Metric = \"a\"; Target = 1; Port = \"x\"]":         "no port",
		"Autoscale = [Max = 3; Metric = \"a\"; Target = -1; Port = \"x\"]":        "Target",
		"Autoscale = [Max = 3; CPU = 1; Tolerance = 2]":                           "Tolerance",
		"Autoscale = [Max = 3; CPU = 1; UpBy = \"0\"]":                            "never grow",
		"Autoscale = [Max = 3; CPU = 1; Every = 0]":                               "every",
		"Autoscale = [Max = 3; CPU = 1; DownWindow = 1e9]":                        "is no window",
		"Autoscale = [Max = 3; CPU = 1]; Update = [Failures = 1]":                 "with min = 1",
		`Autoscale = [Max = 3; Metric = "a"; Target = 1; Port = "x"; Path = "x"]`: "a path begins with /",
	} {
		d := newTestQueue(t)
		spec := SubmitSpec{Ad: parseTestAd(t, "Service = []; "+src), Count: 3}
		_, _, _, err := d.queue.SubmitJobs(d.now, alice, "k", []SubmitSpec{spec}, SubmitLimits{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", src, err, want)
		}
	}
}
