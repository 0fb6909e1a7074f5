package queue

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// FuzzRestore checks that whatever is taken for a job can be written and read again.
func FuzzRestore(f *testing.F) {
	d := newTestQueue(f)
	d.submit(4, "MaxRetries = 1; MaxRunning = 2")
	d.end(d.start(), eventlog.AttemptExit{Wall: 5, MaxRSS: 1 << 20})
	d.end(d.start(), eventlog.AttemptExit{Code: 1})
	a := d.start()
	retained, err := d.queue.RecordCheckpoint(d.now, a, eventlog.CheckpointImage{Sequence: 2, Size: 9, Node: "n"})
	if err != nil {
		f.Fatal(err)
	}
	d.apply(retained)
	hold, err := d.queue.HoldTasks(d.now, alice, TaskSelector{Job: roost.JobID{Seq: 1, Host: "h"}}, "no")
	if err != nil {
		f.Fatal(err)
	}
	d.apply(hold...)
	d.submit(2, `DependsOn = {"afterok:1"}`)
	altered := d.submit(3, "JobPrio = 9")
	for d.queue.jobs[altered.Seq].active == 0 {
		d.start()
	}
	changes, err := d.queue.AlterJob(d.now, alice, TaskSelector{Job: altered},
		JobAlteration{Changes: alteredAd(d, "RequestMemory = 512"), ExpectedVersion: -1}, SubmitLimits{})
	if err != nil {
		f.Fatal(err)
	}
	d.apply(changes...)
	for seq := range d.queue.jobs {
		b, _ := d.queue.Snapshot(seq)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		q := New("h")
		if q.RestoreSnapshot(b) != nil {
			return
		}
		var seq uint64
		for seq = range q.jobs {
		}
		once, _ := q.Snapshot(seq)
		again := New("h")
		if err := again.RestoreSnapshot(once); err != nil {
			t.Fatal(err)
		}
		if twice, _ := again.Snapshot(seq); !bytes.Equal(once, twice) {
			t.Fatalf("%x became %x", once, twice)
		}
	})
}

// FuzzParseTarget checks that what a selector prints is read as the same selector. Its
// ranges are in order and apart.
func FuzzParseTarget(f *testing.F) {
	for _, s := range []string{"12", "12.other", "12[]", "12[3]", "12[1-9:4].x", "12[5,1-3,4]", "12[3-1]", "12[", "x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseSelector(s, "h")
		if err != nil {
			return
		}
		for i, r := range got.Ranges {
			if r.First < 0 || r.Last < r.First || i > 0 && r.First <= got.Ranges[i-1].Last+1 {
				t.Fatalf("%q: ranges %v", s, got.Ranges)
			}
		}
		again, err := ParseSelector(got.String(), "h")
		if err != nil || fmt.Sprint(again) != fmt.Sprint(got) {
			t.Fatalf("%q became %v, and that %v, %v", s, got, again, err)
		}
	})
}
