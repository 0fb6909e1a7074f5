package queue

import (
	"fmt"
	"testing"
	"time"

	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// TestEligible checks that a job is eligible while it waits for a machine. It is not
// while it is held, waits for its time, or runs; the time survives a restart.
func TestEligible(t *testing.T) {
	d := newTestQueue(t)
	id := d.submit(1, "HoldOnSubmit = true")
	later := d.submit(1, fmt.Sprintf("DeferralTime = %d", epoch.Unix()+100))
	want := func(what string, entered, waiting int64, waited time.Duration) {
		t.Helper()
		d.checkSame(d.restoredCopy())
		st, _ := d.queue.Status(id.Seq)
		at := func(second int64) int64 {
			if second < 0 {
				return 0
			}
			return epoch.Add(time.Duration(second) * time.Second).UnixNano()
		}
		if st.EligibleSince != at(entered) || st.WaitingSince != at(waiting) || time.Duration(st.Waited) != waited {
			t.Errorf("%s: eligible at %d, waits since %d, waited %v", what, st.EligibleSince, st.WaitingSince,
				time.Duration(st.Waited))
		}
	}
	after := func(seconds int) { d.now = epoch.Add(time.Duration(seconds) * time.Second) }
	do := func(events []eventlog.JobEvent, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		d.apply(events...)
	}
	whole := TaskSelector{Job: id}
	want("held", -1, -1, 0)
	after(10)
	do(d.queue.ReleaseTasks(d.now, alice, whole))
	want("released", 10, 10, 0)
	after(15)
	do(d.queue.HoldTasks(d.now, alice, whole, ""))
	want("held again", -1, -1, 5*time.Second)
	after(20)
	do(d.queue.ReleaseTasks(d.now, alice, whole))
	after(40)
	a := d.start()
	want("started", 20, -1, 25*time.Second)
	after(50)
	d.end(a, eventlog.AttemptExit{Cause: eventlog.CauseMachine})
	want("lost its machine", 20, 50, 25*time.Second)
	after(51)
	a = d.start()
	d.end(a, eventlog.AttemptExit{})
	want("ended", 20, -1, 26*time.Second)
	if st, _ := d.queue.Status(later.Seq); st.EligibleSince != 0 || st.WaitingSince != 0 {
		t.Errorf("what waits for its time says %+v", st)
	}
}
