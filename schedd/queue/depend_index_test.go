package queue

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// taskStates writes the states of the tasks of a job, each by its first letter.
func (d *testQueue) taskStates(id roost.JobID) (letters string) {
	d.Helper()
	d.follow()
	d.queue.EachTask(TaskSelector{Job: id}, func(s JobStatus) bool {
		letters += s.Task.State.String()[:1]
		return true
	})
	return letters
}

func (d *testQueue) checkTasks(what string, id roost.JobID, want string) {
	d.Helper()
	if got := d.taskStates(id); got != want {
		d.Fatalf("%s: the tasks are %q, want %q", what, got, want)
	}
}

// purge has a job leave the queue that has ended.
func (d *testQueue) purge(id roost.JobID) {
	d.Helper()
	d.follow()
	e, ok := d.queue.PurgeJob(d.now, id.Seq)
	if !ok {
		d.Fatalf("%v is not purged", id)
	}
	d.apply(e)
}

// TestAfterCorr has each task of an array wait for the one with its index. The others go
// when the other array has ended.
func TestAfterCorr(t *testing.T) { checkAfterCorr(t) }

func checkAfterCorr(t testing.TB) {
	d := newTestQueue(t)
	first := d.submit(4, `Array = true; ArrayIndexes = "1-4"`)
	waits := d.submit(4, `Array = true; ArrayIndexes = "2-5"; DependsOn = {"aftercorr:1"}`)
	d.checkTasks("at first", waits, "bbbb")
	one, two := d.run(), d.run()
	d.end(one, eventlog.AttemptExit{})
	d.checkTasks("index 1 has succeeded, and there is none", waits, "bbbb")
	d.end(two, eventlog.AttemptExit{})
	d.checkTasks("index 2 has succeeded", waits, "ibbb")
	d.queue = d.restoredCopy()
	d.checkTasks("after a restart of the schedd", waits, "ibbb")
	if got := d.queue.DependencyText(waits.Seq); len(got) != 1 || !strings.HasPrefix(got[0], "aftercorr:1.") {
		t.Errorf("the job says %q", got)
	}
	hold, err := d.queue.HoldTasks(d.now, alice, TaskSelector{Job: waits}, "")
	if err != nil {
		t.Fatal(err)
	}
	d.apply(hold...)
	release, err := d.queue.ReleaseTasks(d.now, alice, TaskSelector{Job: waits})
	if err != nil {
		t.Fatal(err)
	}
	d.apply(release...)
	d.checkTasks("held and released", waits, "ibbb")
	var rest []roost.AttemptID
	for len(rest) < 3 {
		rest = append(rest, d.run())
	}
	slices.SortFunc(rest, func(a, b roost.AttemptID) int {
		return int(a.Task.Job.Seq*10) + a.Task.Index - int(b.Task.Job.Seq*10) - b.Task.Index
	})
	d.end(rest[0], eventlog.AttemptExit{Code: 1})
	d.checkTasks("index 3 has failed, and may be run again", waits, "rbbb")
	d.end(rest[1], eventlog.AttemptExit{})
	d.checkTasks("all of the first have ended", waits, "rrir")
	d.end(rest[2], eventlog.AttemptExit{})
	d.purge(first)
	d.end(d.run(), eventlog.AttemptExit{})
	d.checkTasks("the rest has run", waits, "crcr")
	if s, _ := d.queue.TaskStatus(waits.Task(1)); !strings.Contains(s.Reason, "its index") {
		t.Errorf("the reason is %q", s.Reason)
	}
}

// TestAfterCorrWhole checks aftercorr where there is nothing to pair. A job without
// indexes waits for all tasks, and an array without any partner is dropped.
func TestAfterCorrWhole(t *testing.T) {
	d := newTestQueue(t)
	d.submit(2, `Array = true; ArrayIndexes = "1-2"`)
	single := d.submit(1, `DependsOn = {"aftercorr:1"}`)
	other := d.submit(2, `Array = true; ArrayIndexes = "7-8"; DependsOn = {"aftercorr:1"}`)
	both := d.submit(2, `Array = true; ArrayIndexes = "1-2"; DependsOn = {"aftercorr:1", "afterok:2"}`)
	a, b := d.run(), d.run()
	d.end(a, eventlog.AttemptExit{})
	d.checkTasks("one of two", single, "b")
	d.checkTasks("it waits for another, too", both, "bb")
	d.end(b, eventlog.AttemptExit{})
	d.checkTasks("both", single, "i")
	d.checkTasks("no partner", other, "rr")
	d.checkTasks("the other one has not run", both, "bb")
	d.end(d.run(), eventlog.AttemptExit{})
	d.checkTasks("it has", both, "ii")
}

// TestAlternatives has a job wait for one of several others.
func TestAlternatives(t *testing.T) {
	d := newTestQueue(t)
	d.submit(1, "")
	d.submit(1, "")
	one := d.submit(1, `DependsOn = {"?afterok:1", "?afterok:2"}`)
	none := d.submit(1, `DependsOn = {"?afternotok:1", "?afternotok:2"}`)
	d.checkTasks("at first", one, "b")
	if got := strings.Join(d.queue.DependencyText(one.Seq), " "); got != "?afterok:1.h ?afterok:2.h" {
		t.Errorf("the job says %q", got)
	}
	a, b := d.run(), d.run()
	d.end(a, eventlog.AttemptExit{Code: 1})
	d.checkTasks("the first one has failed", one, "b")
	d.checkTasks("which another waited for", none, "i")
	d.end(b, eventlog.AttemptExit{})
	d.checkTasks("the second has not", one, "i")
	d.end(d.run(), eventlog.AttemptExit{Code: 1})
	d.end(d.run(), eventlog.AttemptExit{})
	d.submit(1, "")
	dead := d.submit(1, fmt.Sprintf(`DependsOn = {"?afterok:%d", "?afterok:5"}`, one.Seq))
	d.checkTasks("one is over, one may come", dead, "b")
	d.end(d.run(), eventlog.AttemptExit{Code: 1})
	d.checkTasks("neither comes", dead, "r")
	over := d.submit(1, fmt.Sprintf(`DependsOn = {"?afterok:5", "?afterok:%d"}`, none.Seq))
	d.checkTasks("one had come", over, "i")
	d.keys++
	_, _, _, err := d.queue.SubmitJobs(d.now, alice, "over", []jobad.SubmitSpec{{Ad: parseTestAd(t,
		`DependsOn = {"?afterok:5", "?afterok:3"}`), Count: 1}}, SubmitLimits{})
	if err == nil || !strings.Contains(err.Error(), "ended otherwise") {
		t.Errorf("alternatives that are over: %v", err)
	}
}

// TestAfterDelay has a job wait some time after another has started, which may end and
// leave the queue meanwhile.
func TestAfterDelay(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		d := newTestQueue(t)
		first := d.submit(1, "")
		waits := d.submit(1, `DependsOn = {"after:1+5"}`)
		seconds := d.submit(1, `DependsOn = {"after:1+90s"}`)
		if got := strings.Join(append(d.queue.DependencyText(waits.Seq), d.queue.DependencyText(seconds.Seq)...),
			" "); got != "after:1.h+5m after:1.h+90s" {
			t.Errorf("the jobs say %q", got)
		}
		d.now = d.now.Add(time.Hour)
		d.checkTasks("an hour before its start", waits, "b")
		a := d.run()
		d.checkTasks("it runs", waits, "b")
		if due := d.queue.NextDue(); !due.Equal(d.now.Add(90 * time.Second)) {
			t.Errorf("due at %v, want 90 s after %v", due, d.now)
		}
		late := d.submit(1, `DependsOn = {"after:1+1m"}`)
		d.checkTasks("submitted later", late, "b")
		if leaves {
			d.end(a, eventlog.AttemptExit{})
			d.purge(first)
			d.queue = d.restoredCopy()
		}
		d.now = d.now.Add(90 * time.Second)
		d.checkTasks("90 s later", seconds, "i")
		d.checkTasks("90 s later", late, "i")
		d.checkTasks("90 s later", waits, "b")
		d.now = d.now.Add(209 * time.Second)
		d.checkTasks("299 s later", waits, "b")
		d.now = d.now.Add(time.Second)
		d.checkTasks("300 s later", waits, "i")
		d.checkSame(d.restoredCopy())
	}
}

// TestDependencyRefusals checks what cannot be waited for so.
func TestDependencyRefusals(t *testing.T) {
	d := newTestQueue(t)
	d.submit(1, "")
	for text, want := range map[string]string{
		"afterok:1+5m": "start of a job only", "after:1+x": "no time to wait", "after:1+-5m": "no time to wait",
		"after:1+9000h": "a year", "?aftercorr:1": "alternatives", "?runone:1": "alternatives",
		"?before:1": "alternatives", "afterstartarray:1[][1]+5": "start of a job only",
	} {
		_, _, _, err := d.queue.SubmitJobs(d.now, alice, "no", []jobad.SubmitSpec{{Ad: parseTestAd(t,
			fmt.Sprintf("DependsOn = {%q}", text)), Count: 1}}, SubmitLimits{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
