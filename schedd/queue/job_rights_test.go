package queue

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// jobRights does to a job what the table RIGHTS OVER JOBS of roost-security(7) names.
var jobRights = map[string]func(d *testQueue, who CallerIdentity, t TaskSelector) error{
	"alter": func(d *testQueue, who CallerIdentity, t TaskSelector) error {
		return second(d.queue.AlterJob(d.now, who, t, JobAlteration{Changes: classad.New(), ExpectedVersion: -1},
			SubmitLimits{}))
	},
	"checkpoint": func(d *testQueue, who CallerIdentity, t TaskSelector) error {
		return second(d.queue.CheckpointTargets(d.now, who, t))
	},
	"force a rerun": func(d *testQueue, who CallerIdentity, t TaskSelector) error {
		return second(d.queue.RerunTasks(d.now, who, t, true))
	},
	"hold": func(d *testQueue, who CallerIdentity, t TaskSelector) error {
		return second(d.queue.HoldTasks(d.now, who, t, ""))
	},
	"hold as administrator": func(d *testQueue, who CallerIdentity, t TaskSelector) error {
		return second(d.queue.LockTasks(d.now, who, t, ""))
	},
	"hold its checks": func(d *testQueue, who CallerIdentity, t TaskSelector) error {
		return second(d.queue.CheckedAttempts(d.now, who, t))
	},
	"message": func(d *testQueue, who CallerIdentity, t TaskSelector) error {
		return second(d.queue.OutputMessageTargets(d.now, who, t))
	},
	"order": func(d *testQueue, who CallerIdentity, t TaskSelector) error {
		return second(d.queue.SwapOrder(d.now, who, t, t))
	},
	"release": func(d *testQueue, who CallerIdentity, t TaskSelector) error {
		return second(d.queue.ReleaseTasks(d.now, who, t))
	},
	"release as administrator": func(d *testQueue, who CallerIdentity, t TaskSelector) error {
		return second(d.queue.UnlockTasks(d.now, who, t))
	},
	"release its nodes": func(d *testQueue, who CallerIdentity, t TaskSelector) error {
		return second(d.queue.ReleaseNodes(d.now, who, t, NodeRelease{}))
	},
	"remove": func(d *testQueue, who CallerIdentity, t TaskSelector) error {
		return second(d.queue.RemoveTasks(d.now, who, t, "", false))
	},
	"rerun": func(d *testQueue, who CallerIdentity, t TaskSelector) error {
		return second(d.queue.RerunTasks(d.now, who, t, false))
	},
	"resume": func(d *testQueue, who CallerIdentity, t TaskSelector) error {
		return second(d.queue.ResumeTasks(d.now, who, t))
	},
	"retry": func(d *testQueue, who CallerIdentity, t TaskSelector) error {
		return second(d.queue.RetryTasks(d.now, who, t))
	},
	"run out of turn": func(d *testQueue, who CallerIdentity, t TaskSelector) error {
		return second(d.queue.RunNow(d.now, who, t, nil))
	},
	"signal": func(d *testQueue, who CallerIdentity, t TaskSelector) error {
		_, _, err := d.queue.SignalTasks(d.now, who, t, "TERM")
		return err
	},
	"suspend": func(d *testQueue, who CallerIdentity, t TaskSelector) error {
		return second(d.queue.SuspendTasks(d.now, who, t, ""))
	},
	"update": func(d *testQueue, who CallerIdentity, t TaskSelector) error {
		_, _, err := d.queue.ReviseJob(d.now, who, t, JobRevision{}, SubmitLimits{})
		return err
	},
}

func second[T any](_ T, err error) error { return err }

// TestJobRights compares the table in roost-security(7) with who may do what to a job.
// They are its owner, somebody else, and who has the capability for all jobs.
func TestJobRights(t *testing.T) {
	page, err := os.ReadFile("../../man/roost-security.7")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), ".SH RIGHTS OVER JOBS\n")
	section, _, _ = strings.Cut(section, "\n.SH")
	stated := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z][a-z ]*[a-z])   *((?:owner, )?administrator)$`).
		FindAllStringSubmatch(section, -1) {
		stated[m[1]] = m[2]
	}
	if len(stated) != len(jobRights) {
		t.Errorf("the page has %d rights, and this test %d", len(stated), len(jobRights))
	}
	for name, do := range jobRights {
		allowed := map[string]bool{}
		for role, who := range map[string]CallerIdentity{"owner": alice, "other": {User: "bob", UID: 77},
			"administrator": {User: "carol", UID: 78, Admin: true}} {
			d := newTestQueue(t)
			id := d.submit(1, "")
			e, _, err := d.queue.AssignNext(d.now, id.Task(0), "n1", "n1:1", 1)
			if err != nil {
				t.Fatal(err)
			}
			d.apply(e)
			allowed[role] = !errors.Is(do(d, who, TaskSelector{Job: id}), roost.PermissionDenied)
		}
		got := "administrator"
		if allowed["owner"] {
			got = "owner, administrator"
		}
		if got != stated[name] || allowed["other"] || !allowed["administrator"] {
			t.Errorf("%s: the page says %q, and who may is %v", name, stated[name], fmt.Sprint(allowed))
		}
	}
}
