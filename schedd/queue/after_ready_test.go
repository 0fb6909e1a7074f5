package queue

import (
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// follow applies what follows from what has happened.
func (d *testQueue) follow() {
	d.Helper()
	for _, e := range d.queue.Followups(d.now) {
		d.apply(e)
	}
}

// checkBlocked checks whether a job waits for others.
func (d *testQueue) checkBlocked(what string, id roost.JobID, want bool) {
	d.Helper()
	d.follow()
	s, _ := d.queue.Status(id.Seq)
	if got := s.Counts[roost.Blocked] > 0; got != want {
		d.Fatalf("%s: blocked %v, want %v", what, got, want)
	}
}

// TestAfterReady has a job wait until all tasks of a service are ready.
func TestAfterReady(t *testing.T) {
	d := newTestQueue(t)
	d.submit(2, "Service = []; Checks = {[Name = \"up\"; Kind = \"exec\"; Command = {\"true\"}]}")
	waits := d.submit(1, `DependsOn = {"afterready:1"}`)
	d.checkBlocked("before its start", waits, true)
	if got := d.queue.DependencyText(waits.Seq); len(got) != 1 || !strings.HasPrefix(got[0], "afterready:1.") {
		t.Errorf("the job says %q", got)
	}
	a, b := d.run(), d.run()
	d.checkBlocked("both run", waits, true)
	d.health(a, roost.ServiceReady, "", "")
	d.checkBlocked("one is ready", waits, true)
	d.health(a, roost.ServiceUnready, "up", "refused")
	d.health(b, roost.ServiceReady, "", "")
	d.checkBlocked("the other one is", waits, true)
	d.queue = d.restoredCopy()
	d.checkBlocked("after a restart of the schedd", waits, true)
	d.now = d.now.Add(time.Second)
	d.health(a, roost.ServiceReady, "", "")
	d.checkBlocked("both are ready", waits, false)
	d.health(a, roost.ServiceUnready, "up", "refused")
	d.checkBlocked("later one is not", waits, false)
	d.checkSame(d.restoredCopy())
	unready := d.submit(1, `DependsOn = {"afterready:1"}`)
	d.checkBlocked("a new job", unready, true)
	d.health(a, roost.ServiceReady, "", "")
	d.checkBlocked("ready again", unready, false)
	atOnce := d.submit(1, `DependsOn = {"afterready:1"}`)
	d.checkBlocked("submitted when it is ready", atOnce, false)
}

// TestAfterReadyRefusals checks what can never become ready.
func TestAfterReadyRefusals(t *testing.T) {
	d := newTestQueue(t)
	batch := d.submit(1, "")
	submit := func(specs ...string) error {
		var list []jobad.SubmitSpec
		for _, s := range specs {
			list = append(list, jobad.SubmitSpec{Ad: parseTestAd(t, s), Count: 1})
		}
		d.keys++
		_, _, _, err := d.queue.SubmitJobs(d.now, alice, "refused"+string(rune('a'+d.keys)), list, SubmitLimits{})
		return err
	}
	for name, err := range map[string]error{
		"a batch job":              submit(`DependsOn = {"afterready:1"}`),
		"an earlier one beside it": submit("", `DependsOn = {"afterready:@0"}`),
	} {
		if err == nil || !strings.Contains(err.Error(), "is no service") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := submit("Service = []", `DependsOn = {"afterready:@0"}`); err != nil {
		t.Errorf("a service of the same file: %v", err)
	}
	if err := submit(`DependsOn = {"afterreadyarray:1[][3]"}`); err == nil {
		t.Error("a number of ready tasks is taken")
	}
	w := eventlog.JobDependency{Type: eventlog.AfterReady, Job: batch.Seq}
	if !w.Type.Blocks() || w.Type.AllowsCount() || w.Type.MirroredType() != 0 || w.Type.MirrorOf() != 0 {
		t.Error("afterready is another kind of dependency than it should be")
	}
}

// TestAfterReadyOfEndedService drops a job whose service has ended.
func TestAfterReadyOfEndedService(t *testing.T) {
	d := newTestQueue(t)
	service := d.submit(1, "Service = []; Checks = {[Name = \"up\"; Kind = \"exec\"; Command = {\"true\"}]}")
	waits := d.submit(1, `DependsOn = {"afterready:1"}`)
	d.checkBlocked("before its end", waits, true)
	d.deleteTasks(alice, service)
	d.follow()
	if s, _ := d.queue.Status(waits.Seq); s.Counts[roost.Removed] != 1 {
		t.Errorf("the service has ended: %+v", s.Counts)
	}
}
