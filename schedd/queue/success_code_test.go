package queue

import (
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// TestSuccessExitCode checks that a job's own exit code counts as success, and that 0
// does not then. A job behind it starts only after a success.
func TestSuccessExitCode(t *testing.T) {
	for _, c := range []struct {
		exit    eventlog.AttemptExit
		failed  bool
		behind  roost.TaskState
		retried bool
	}{
		{eventlog.AttemptExit{Code: 3}, false, roost.Idle, false},
		{eventlog.AttemptExit{Code: 0}, true, roost.Removed, true},
		{eventlog.AttemptExit{Code: 1}, true, roost.Removed, true},
		{eventlog.AttemptExit{Code: 3, Signal: 9}, true, roost.Removed, true},
	} {
		d := newTestQueue(t)
		submit := func(key, ad string) roost.JobID {
			events, ids, _, err := d.queue.SubmitJobs(d.now, alice, key,
				[]jobad.SubmitSpec{{Ad: parseTestAd(t, ad), Count: 1}}, SubmitLimits{})
			if err != nil {
				t.Fatal(err)
			}
			d.apply(events...)
			return ids[0]
		}
		first := submit("a", `JobSuccessExitCode = 3; MaxRetries = 1`)
		behind := submit("b", `DependsOn = { "afterok:`+first.String()+`" }`)
		attempts := 0
		for {
			s, _ := d.queue.Status(first.Seq)
			if s.Task.State != roost.Idle {
				break
			}
			e, a, err := d.queue.AssignNext(d.now, first.Task(0), "n1", "", 1)
			if err != nil {
				t.Fatal(err)
			}
			d.apply(e)
			exit := c.exit
			if e, err = d.queue.RecordEnded(d.now, a, &exit); err != nil {
				t.Fatal(err)
			}
			d.apply(e)
			d.apply(d.queue.Followups(d.now)...)
			attempts++
		}
		s, _ := d.queue.Status(first.Seq)
		b, _ := d.queue.Status(behind.Seq)
		if s.Task.State != roost.Completed || (s.Failed == 1) != c.failed || b.Task.State != c.behind ||
			(attempts == 2) != c.retried || s.Task.Exit.Code != c.exit.Code || s.Task.Exit.IsSuccess() == c.failed {
			t.Errorf("%+v: %d attempts, %v, %d failed, %+v; the job behind it is %v", c.exit, attempts, s.Task.State,
				s.Failed, s.Task.Exit, b.Task.State)
		}
	}
}
