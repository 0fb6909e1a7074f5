package queue

import (
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// TestWaitOutlivesPurge checks a job that waits for two others when the first has ended
// and left the queue. It is neither dropped nor unblocked.
func TestWaitOutlivesPurge(t *testing.T) {
	for _, c := range []struct {
		name, waits string
		first, last eventlog.AttemptExit
		want        string
	}{
		{"both succeed", `"afterok:1", "afterok:2"`, eventlog.AttemptExit{}, eventlog.AttemptExit{}, "idle 1"},
		{"the second fails", `"afterok:1", "afterok:2"`, eventlog.AttemptExit{}, eventlog.AttemptExit{Code: 1},
			"removed 1"},
		{"the first fails as wanted", `"afternotok:1", "afterany:2"`, eventlog.AttemptExit{Code: 1},
			eventlog.AttemptExit{}, "idle 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newTestQueue(t)
			first, second := d.submit(1, ""), d.submit(1, "")
			id := d.submit(1, "DependsOn = {"+c.waits+"}")
			d.end(d.start(), c.first)
			e, ok := d.queue.PurgeJob(d.now, first.Seq)
			if !ok {
				t.Fatal("the first job is not final")
			}
			d.apply(e)
			d.apply(d.queue.Followups(d.now)...)
			d.checkState(id, "blocked 1")
			d.queue = d.restoredCopy() // a restart
			d.apply(d.queue.Followups(d.now)...)
			d.checkState(id, "blocked 1")
			a := d.start()
			if a.Task.Job != second {
				t.Fatalf("%v was started", a)
			}
			d.end(a, c.last)
			d.checkState(id, c.want)
		})
	}
}

// TestPurgedIsUnsaved checks that a purged job counts as unsaved, since its snapshot is
// to be deleted.
func TestPurgedIsUnsaved(t *testing.T) {
	d := newTestQueue(t)
	id := d.submit(1, "")
	d.end(d.start(), eventlog.AttemptExit{})
	d.queue.TakeUnsaved()
	e, _ := d.queue.PurgeJob(d.now, id.Seq)
	d.apply(e)
	if got := d.queue.TakeUnsaved(); len(got) != 1 || got[0] != id.Seq {
		t.Fatalf("got %v, want %d", got, id.Seq)
	}
}

// TestReadyWithinLimit checks that of a job with a limit only those tasks count as ready
// that could start. That holds whatever different requests they make.
func TestReadyWithinLimit(t *testing.T) {
	d := newTestQueue(t)
	spec := jobad.SubmitSpec{Ad: parseTestAd(t, "MaxRunning = 3"), Count: 12, Columns: []jobad.TaskColumn{
		{Name: roost.AttrRequestMemory, Values: []string{"1048576", "1048576", "1048576", "1048576", "1048576",
			"1048576", "2097152",
			"2097152", "2097152", "2097152", "2097152", "2097152"}},
		// of the same request
		{Name: roost.AttrWalltime, Values: []string{"10", "20", "10", "20", "10", "20", "10", "20", "10", "20",
			"10", "20"}},
	}}
	events, _, _, err := d.queue.SubmitJobs(d.now, alice, "k", []jobad.SubmitSpec{spec}, SubmitLimits{})
	if err != nil {
		t.Fatal(err)
	}
	d.apply(events...)
	for room := 3; room >= 0; room-- {
		for _, id := range d.queue.Requests() {
			if r, _ := d.queue.Request(id); r.Ready != room {
				t.Errorf("request %d has %d tasks ready, want %d", id, r.Ready, room)
			}
		}
		if room > 0 {
			d.start()
		}
	}
}
