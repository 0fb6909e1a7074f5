package jobs

import (
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/cli/clitest"
	"github.com/roost-batch/roost/internal/wire"
)

// serviceJob is a service of two tasks, some of which are ready.
func serviceJob(ready uint32) *wire.JobStatus {
	return &wire.JobStatus{Id: "71.pool", Name: "hub", Tasks: 2, Counts: clitest.TaskCounts("running", 2),
		Service: &wire.ServiceHealth{Wanted: 2, States: map[string]uint32{"ready": ready, "starting": 2 - ready}}}
}

// TestServiceWait checks the exit status of waits for services, and what they print.
func TestServiceWait(t *testing.T) {
	removed := serviceJob(0)
	removed.Counts, removed.Service.Wanted = clitest.TaskCounts("removed", 2), 0
	updated := func(state string) *wire.JobStatus {
		s := serviceJob(2)
		s.Update = &wire.UpdateProgress{State: state, Revision: 2, Tasks: map[string]uint32{"new": 1, "old": 1}}
		return s
	}
	for _, c := range []struct {
		name, flag string
		job        *wire.JobStatus
		code       int
		output     string
	}{
		{"ready", "--ready", serviceJob(2), 0, "71.pool: 2 of 2 ready"},
		{"not ready", "--ready", serviceJob(1), exitTimedOut, "71.pool: 1 of 2 ready, 1 starting"},
		{"removed", "--ready", removed, 1, "71.pool: removed"},
		{"no service", "--ready", singleJob("running", nil), 64, "is no service"},
		{"never updated", "--update", serviceJob(1), 0, "never updated"},
		{"rolling", "--update", updated("rolling"), exitTimedOut, "rolling, to revision 2, 1 new, 1 old"},
		{"done", "--update", updated("done"), 0, "done"},
		{"closed", "--update", updated("closed"), 0, "closed"},
		{"undone", "--update", updated("undone"), 1, "undone"},
		{"waits for its user", "--update", updated("waiting-promote"), 1, "waiting-promote"},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			f := &clitest.FakeSchedd{Jobs: []*wire.JobStatus{c.job}}
			args := []string{"roost", "wait", c.flag, c.job.GetId()}
			if c.code == exitTimedOut {
				args = append(args, "--timeout", "700ms")
			}
			a, _, stderr := newJobsApp(t, f.Serve(t))
			if code := a.Run(t.Context(), args); code != c.code || !strings.Contains(stderr.String(), c.output) {
				t.Errorf("exit status %d, want %d: %s", code, c.code, stderr)
			}
		})
	}
}

// TestServiceWaitOfTask checks that a wait for a task looks at that task alone.
func TestServiceWaitOfTask(t *testing.T) {
	s := serviceJob(1)
	s.Id, s.State, s.Service.State = "71[0].pool", "running", "unready"
	if v, err := untilReady.verdict(s); v != verdictOpen || err != nil || untilReady.text(s) != "unready" {
		t.Errorf("got %v, %v, %s", v, err, untilReady.text(s))
	}
	s.Service.State = "ready"
	if v, err := untilReady.verdict(s); v != verdictMet || err != nil {
		t.Errorf("got %v, %v", v, err)
	}
	s.Tasks, s.Service.Wanted = 1, 1 // of a job of one task, its row is that of the job
	if v, err := untilReady.verdict(s); v != verdictMet || err != nil {
		t.Errorf("got %v, %v", v, err)
	}
}
