package queue

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/autoscale"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
	"github.com/roost-batch/roost/schedd/queue/update"
)

// sizedRun is a service whose tasks' size follows their use. Its machines give them what
// they ask for, unless they have no room.
type sizedRun struct {
	*updateRun
	cores  float64
	memory roost.Bytes
	noRoom bool
}

const sizedService = `RequestCpus = 2; RequestMemory = 1024; Update = [MinReady = 1]; ` +
	`VerticalAutoscale = [MaxCpus = 8; MaxMemory = 8192; Window = 600; Every = 60]`

func newSizedRun(t *testing.T, count int) *sizedRun {
	return &sizedRun{updateRun: newUpdateRun(t, count, sizedService)}
}

// use lets time pass, and returns the sizes that the service got with their reasons.
func (d *sizedRun) use(length time.Duration) (changes []string) {
	d.Helper()
	for end := d.now.Add(length); d.now.Before(end); d.pass(10 * time.Second) {
		for _, a := range d.queue.ActiveAttempts() {
			wall := time.Duration(d.now.Sub(epoch))
			d.queue.NoteUse(d.now, a.Attempt, time.Duration(d.cores*float64(wall)), wall, d.memory)
		}
		for _, e := range d.queue.DecideScaling(d.now) {
			e.Submission.DeferredAdmission = false
			d.apply(e)
			size := jobad.SizeOf(&d.job().spec.JobSpec)
			changes = append(changes, fmt.Sprintf("%v %v: %s", size.CPU, size.Memory, e.Reason))
		}
		d.pass(time.Second)
		for _, size := range d.queue.TakeResizes() {
			refusal := ""
			if d.noRoom {
				refusal = "its machine has no room"
			}
			if e, ok := d.queue.RecordResize(d.now, size.Attempt, size.Resources, refusal); ok {
				d.apply(e)
			}
		}
	}
	return changes
}

// tasks writes the size of each task and its attempt.
func (d *sizedRun) tasks() string {
	var all []string
	for i := range d.job().state {
		r := d.job().class(i).request.Resources
		all = append(all, fmt.Sprintf("%v %v attempt %d", r.CPU, r.Memory, d.job().records.Own(i).Attempt))
	}
	return strings.Join(all, ", ")
}

// TestVerticalAutoscale checks that tasks get the size that they use where they run. They
// shrink when a window has passed. A restart of the schedd forgets the window.
func TestVerticalAutoscale(t *testing.T) {
	d := newSizedRun(t, 2)
	d.cores, d.memory = 3, 2*roost.GiB
	got := d.use(5 * time.Minute)
	if len(got) != 1 || !strings.HasPrefix(got[0], "3.8 2.5GiB: its size follows its use: 3 cores are enough for 95%") {
		t.Fatalf("got %q", got)
	}
	if got, want := d.tasks(), "3.8 2.5GiB attempt 1, 3.8 2.5GiB attempt 1"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	if u := d.job().update; u.State != update.Done || u.To != 2 {
		t.Fatalf("the update is %+v", u)
	}
	d.cores, d.memory = 0.5, roost.GiB
	d.restart()
	if got := d.use(9 * time.Minute); len(got) > 0 {
		t.Fatalf("before the window has passed: %q", got)
	}
	d.use(5 * time.Minute)
	if got, want := d.tasks(), "0.7 1.25GiB attempt 1, 0.7 1.25GiB attempt 1"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	d.checkSame(d.restoredCopy())
	replayed := New("h")
	for _, e := range d.log {
		replayed.Apply(e)
	}
	replayed.Check()
	d.checkSame(replayed)
	st, _ := d.queue.Status(d.id.Seq)
	s := st.Service.Sizes
	if s == nil || s.Size != (autoscale.Size{CPU: 700, Memory: 1280 * roost.MiB}) || s.Decision.Wanted != s.Size ||
		s.Problem != "" || s.At == 0 {
		t.Fatalf("got %+v", s)
	}
}

// TestVerticalWithoutRoom checks that tasks are replaced within the budget where their
// machines have no room for more.
func TestVerticalWithoutRoom(t *testing.T) {
	d := newSizedRun(t, 3)
	d.cores, d.memory, d.noRoom = 3, 2*roost.GiB, true
	d.use(20 * time.Minute)
	if got, want := d.tasks(), "3.8 2.5GiB attempt 2, 3.8 2.5GiB attempt 2, 3.8 2.5GiB attempt 2"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	d.queue.Check()
}

// TestVerticalWaitsForRoom checks that a task goes on while its machine has no room for
// more. It gets that there as soon as there is room.
func TestVerticalWaitsForRoom(t *testing.T) {
	d := newSizedRun(t, 1)
	d.cores, d.memory, d.noRoom = 3, 2*roost.GiB, true
	for len(d.use(10*time.Second)) == 0 {
	}
	d.use(roomRetry)
	task := statusView{d.queue.jobTable}.task(d.job(), 0)
	if want := "it waits for room for 3.8 cores and 2.5GiB of memory where it runs: its machine has no room; " +
		"its machine is asked again at "; !strings.HasPrefix(task.Resize, want) {
		t.Fatalf("it says %q, want %q", task.Resize, want)
	}
	if got := (serviceTasks{d.job()}).sizeStatus().Problem; got != "task 0: "+task.Resize {
		t.Fatalf("the service says %q, want what its task says", got)
	}
	d.noRoom = false
	d.use(2 * time.Minute)
	if got, want := d.tasks(), "3.8 2.5GiB attempt 1"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	d.queue.Check()
}

// TestVerticalAndUsers checks that a job file does not take back a size, and that its
// bounds do.
func TestVerticalAndUsers(t *testing.T) {
	d := newSizedRun(t, 1)
	d.cores, d.memory = 3, 2*roost.GiB
	d.use(5 * time.Minute)
	d.revise(sizedService + `; Arguments = {"2"}`)
	if got := d.use(time.Minute); len(got) > 0 {
		t.Fatalf("got %q", got)
	}
	if got, want := d.tasks(), "3.8 2.5GiB attempt 2"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	d.revise(strings.Replace(sizedService, "MaxMemory = 8192", "MaxMemory = 2048", 1) + `; Arguments = {"2"}`)
	d.use(time.Minute)
	if got, want := d.tasks(), "3.8 2GiB attempt 2"; got != want {
		t.Fatalf("with another bound: got %s, want %s", got, want)
	}
}

// TestVerticalQuota checks that a size that the quota does not allow stays, and that this
// is told.
func TestVerticalQuota(t *testing.T) {
	d := newSizedRun(t, 1)
	d.cores, d.memory = 3, 2*roost.GiB
	var asked eventlog.JobEvent
	for asked.Job == 0 {
		for _, a := range d.queue.ActiveAttempts() {
			wall := time.Duration(d.now.Sub(epoch))
			d.queue.NoteUse(d.now, a.Attempt, time.Duration(d.cores*float64(wall)), wall, d.memory)
		}
		for _, e := range d.queue.DecideScaling(d.now) {
			asked = e
		}
		d.pass(10 * time.Second)
	}
	if !asked.Submission.DeferredAdmission {
		t.Fatalf("no quota is asked about %+v", asked)
	}
	d.queue.AskQuota(&asked)
	d.now = d.now.Add(time.Hour)
	if got := d.queue.DecideScaling(d.now); len(got) > 0 {
		t.Fatalf("while it is asked: %+v", got)
	}
	if got := d.queue.QuotaAnswered(d.now, asked, "alice has 4 cores"); len(got) > 0 {
		t.Fatalf("refused, and %+v", got)
	}
	st, _ := d.queue.Status(d.id.Seq)
	if want := "its quota does not let it grow: alice has 4 cores"; st.Service.Sizes.Problem != want {
		t.Fatalf("got %q, want %q", st.Service.Sizes.Problem, want)
	}
	d.queue.AskQuota(&asked)
	got := d.queue.QuotaAnswered(d.now, asked, "")
	if len(got) != 1 || got[0].Submission.DeferredAdmission {
		t.Fatalf("allowed, and %+v", got)
	}
	d.apply(got...)
	if size := jobad.SizeOf(&d.job().spec.JobSpec); size != (autoscale.Size{CPU: 3800, Memory: 2560 * roost.MiB}) {
		t.Fatalf("got %+v", size)
	}
}
