package schedd

import (
	"fmt"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/metrics"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/dispatch"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/queue/update"
)

// TestCauseNumbers checks that the metrics have a label for each cause of the wire.
func TestCauseNumbers(t *testing.T) {
	if len(wire.Cause_name) != metrics.LostCause || int(queue.CausePrologue) != metrics.LostCause-1 {
		t.Errorf("%d causes on the wire, %d in the metrics", len(wire.Cause_name), metrics.LostCause)
	}
	if dispatch.Exited != 3 || len(metrics.ScheddSnapshot{}.Claims) != int(dispatch.Exited)+2 {
		t.Errorf("the metrics have %d states of claims", len(metrics.ScheddSnapshot{}.Claims))
	}
}

// TestSnapshotOfManyJobs makes a snapshot of 100,000 jobs of 1,000 users. It counts every
// task, and takes no longer than what the loop does in a turn.
func TestSnapshotOfManyJobs(t *testing.T) {
	const jobs, users = 100_000, 1000
	q := queue.New("s")
	at := time.Unix(1_000_000, 0)
	for i := range jobs {
		band := roost.PriorityBand(i % metrics.BandCount)
		ad := classad.New()
		ad.SetString(roost.AttrCmd, "/bin/true")
		ad.SetString(roost.AttrBand, band.String())
		ad.SetInt(roost.AttrRequestCpus, int64(1+i%4))
		q.Apply(queue.JobEvent{Type: queue.Submitted, Time: at.UnixNano(), Job: uint64(i + 1),
			Submission: &queue.SubmittedJob{Owner: fmt.Sprintf("user%d", i%users), UID: uint32(1000 + i%users),
				Ad: ad.String(), Count: 1}})
	}
	h := &steppedSchedd{TB: t, at: ClockReading{at.Add(time.Minute), time.Hour}}
	h.core = NewCore("s", "domain", 40*time.Minute, 0, q, 1, 0, h.at.Now, h)
	h.core.setClock(h.at)
	var s metrics.ScheddSnapshot
	took := time.Hour
	for range 10 { // the machine has other things to do
		began := time.Now()
		s = h.core.schedd.metrics.snapshot()
		took = min(took, time.Since(began))
	}
	idle := 0
	for band := range s.Tasks {
		if n := s.Tasks[band][roost.Idle]; n != jobs/metrics.BandCount {
			t.Errorf("%v: %d tasks are idle", roost.PriorityBand(band), n)
		}
		idle += s.Tasks[band][roost.Idle]
		if s.OldestWaiting[band] != time.Minute {
			t.Errorf("%v: the oldest has waited for %v", roost.PriorityBand(band), s.OldestWaiting[band])
		}
	}
	if waiting := s.WaitingTasks[metrics.UnexplainedWait]; idle != jobs || waiting != jobs {
		t.Errorf("%d tasks are idle, and %d wait unexplained", idle, waiting)
	}
	t.Logf("a snapshot of %d jobs in %d requests takes %v", jobs, len(q.Requests()), took)
	if took > 10*time.Millisecond {
		t.Errorf("a snapshot takes %v", took)
	}
}

// TestServiceNumbers checks that labels have a value for each state of a service's task.
// Updates and restarts have theirs, too.
func TestServiceNumbers(t *testing.T) {
	s := metrics.ScheddSnapshot{}
	if n := metrics.ServiceFirstState + int(roost.ServiceLost); len(s.ServiceTasks) != n {
		t.Errorf("%d states of tasks of services, want %d", len(s.ServiceTasks), n)
	}
	if n := int(update.UndoPaused-update.Rolling) + 1; len(s.Updates) != n {
		t.Errorf("%d states of updates, want %d", len(s.Updates), n)
	}
	r := metrics.NewRegistry("schedd")
	metrics.NewSchedd(r, t.TempDir())
	for _, f := range r.Families() {
		want := map[string]int{"roost_schedd_service_restarts_total": int(queue.RestartAfterOther) + 1,
			"roost_schedd_service_updates_ended_total": int(update.Done-update.Undone) + 1}[f.Name]
		if want > 0 && len(f.Labels[0].Values) != want {
			t.Errorf("%s has %d values, want %d", f.Name, len(f.Labels[0].Values), want)
		}
	}
}

// TestUsersSnapshot checks what the metrics by user say of tasks that wait.
func TestUsersSnapshot(t *testing.T) {
	q := queue.New("s")
	at := time.Unix(1_000_000, 0)
	for i := range 30 {
		ad := classad.New()
		ad.SetString(roost.AttrCmd, "/bin/true")
		ad.SetInt(roost.AttrRequestCpus, int64(1+i%4))
		q.Apply(queue.JobEvent{Type: queue.Submitted, Time: at.UnixNano(), Job: uint64(i + 1),
			Submission: &queue.SubmittedJob{Owner: fmt.Sprintf("user%d", i%3), UID: uint32(1000 + i%3),
				Ad: ad.String(), Count: 2}})
	}
	h := &steppedSchedd{TB: t, at: ClockReading{at.Add(time.Minute), time.Hour}}
	h.core = NewCore("s", "domain", 40*time.Minute, 0, q, 1, 0, h.at.Now, h)
	h.core.setClock(h.at)
	got := h.core.schedd.metrics.usersSnapshot()
	if len(got) != 3 {
		t.Fatalf("%d users", len(got))
	}
	for name, a := range got {
		if *a != (metrics.UserAmounts{WaitingTasks: 20}) {
			t.Errorf("%s has %+v", name, *a)
		}
	}
}
