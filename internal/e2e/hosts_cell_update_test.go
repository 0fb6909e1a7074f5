package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/replica"
)

// updatedTasks is how many tasks the service of a queueUpdate has.
const updatedTasks = 5

// updatedJob is a service whose tasks note their starts in a file. The n-th start of the
// second revision is not ready before the file step-n is there.
const updatedJob = `job "steps" {
  script = <<-END
    #!/usr/bin/python3 -SE
    import os, socket, time
    revision = os.environ["REVISION"]
    with open("%[1]s", "a") as f:
        f.write(os.environ["ROOST_TASK_INDEX"] + " " + revision + "\n")
    with open("%[1]s") as f:
        n = f.read().count(" 2\n")
    while revision == "2" and not os.path.exists("%[2]s/step-" + str(n)):
        time.sleep(0.05)
    server = socket.create_server(("", int(os.environ["ROOST_PORT_UP"])))
    while True:
        server.accept()
  END
  environment = { REVISION = "%[3]s" }
  count       = %[4]d
  memory      = "30MiB"

  service {}

  port "up" {}

  check "up" {
    tcp   = true
    every = "1s"
    fails = 20
  }

  update {
    at_once  = 1
    max_down = 1
    settle   = "0.5s"
  }
}
`

// queueUpdate is a rolling update of a service in the queue of the cell, while a user
// submits jobs.
type queueUpdate struct {
	*cellHostPool
	id string
	// in which the tasks note their starts
	starts string
	opened int // steps

	mu      sync.Mutex
	submits []timedSubmit
	refused []string // what the user read of the others
}

// timedSubmit is a job that the queue has acknowledged.
type timedSubmit struct {
	name, id string
	at       time.Time // of the acknowledgement
}

// updateOutlivesLeaders kills the leader of the queue twice in an update. It does so
// while a task of a step starts, and between two steps. Each time the next leader goes on
// with the update and takes jobs. Nothing that was acknowledged is lost, no task is
// restarted twice, and no more are down than max_down allows.
func (h *cellHostPool) updateOutlivesLeaders() {
	u := &queueUpdate{cellHostPool: h, starts: h.newTaskLog("steps")}
	u.id = strings.TrimSpace(h.mustAs("submit", "--quiet", "--cell", u.jobFile(1)))
	h.awaitTrue("all tasks of the service are ready", u.isAsWanted)
	ctx, cancel := context.WithCancel(h.Context())
	var user sync.WaitGroup
	user.Go(func() { u.submitUntil(ctx) })
	defer user.Wait()
	defer cancel()
	h.mustAs("update", "--job", u.id, u.jobFile(2))
	u.awaitSteps("the first task starts", func(tasks map[string]uint32) bool {
		return tasks["starting"]+tasks["unready"] > 0 && len(u.startsOf(2)) == 1
	})
	u.killLeader("a task starts")
	between := false
	for u.opened < updatedTasks-1 && !between {
		u.openStep()
		u.awaitSteps(fmt.Sprintf("step %d is over", u.opened), func(tasks map[string]uint32) bool {
			between = tasks["settling"] > 0 && tasks["starting"]+tasks["unready"]+tasks["stopping"] == 0
			return between || int(tasks["new"]) >= u.opened
		})
	}
	if !between {
		h.Error("the update was never seen between two steps")
	}
	u.killLeader("no task starts")
	for u.opened < updatedTasks {
		u.openStep()
	}
	h.mustAs("update", "--wait", "--job", u.id, u.jobFile(2))
	cancel()
	user.Wait()
	u.checkSteps()
	u.checkSubmits()
	h.mustAs("rm", u.id)
}

// jobFile writes the job with a revision.
func (u *queueUpdate) jobFile(revision int) string {
	u.Helper()
	return u.writeUserFile("steps.hcl", fmt.Sprintf(updatedJob, u.starts, u.home, fmt.Sprint(revision), updatedTasks),
		0o600)
}

// openStep lets the task of the next step become ready.
func (u *queueUpdate) openStep() {
	u.Helper()
	u.opened++
	u.writeUserFile(fmt.Sprint("step-", u.opened), "", 0o644)
}

// record reads what roost show says of the service.
func (u *queueUpdate) record() (job document.Job, events []document.Event) {
	var shown struct {
		Job    document.Job
		Events []document.Event
	}
	u.querySubmitNode(&shown, "show", "--events", "0", u.id)
	return shown.Job, shown.Events
}

// awaitSteps waits until the update has come so far. Tasks maps their states to numbers.
func (u *queueUpdate) awaitSteps(what string, is func(tasks map[string]uint32) bool) {
	u.Helper()
	u.awaitTrue(what, func() bool {
		job, _ := u.record()
		return job.Update != nil && is(job.Update.Tasks)
	})
}

// startsOf returns the indices of the tasks that have started in a revision, in order.
func (u *queueUpdate) startsOf(revision int) (indices []string) {
	text, _ := os.ReadFile(u.starts)
	for line := range strings.Lines(string(text)) {
		if index, of, _ := strings.Cut(strings.TrimSpace(line), " "); of == strconv.Itoa(revision) {
			indices = append(indices, index)
		}
	}
	return indices
}

// submitUntil submits jobs until the end of ctx. Every fourth one runs, and ends.
func (u *queueUpdate) submitUntil(ctx context.Context) {
	script := filepath.Join(u.home, "steps-true.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o644); err != nil {
		u.Error(err)
		return
	}
	for i := 0; ctx.Err() == nil; i++ {
		name := fmt.Sprint("during-", i)
		args := []string{"qsub", "--cell", "-N", name, "-l", "mem=10mb"}
		if i%4 > 0 {
			args = append(args, "-h")
		}
		stdout, stderr, code := u.runAs(someone, append(args, script)...)
		u.mu.Lock()
		if code == 0 {
			u.submits = append(u.submits, timedSubmit{name, strings.TrimSpace(stdout), time.Now()})
		} else {
			u.refused = append(u.refused, name+": "+strings.TrimSpace(stderr))
		}
		u.mu.Unlock()
	}
}

// killLeader kills the leader of the queue, and waits for the next one. That takes a job
// and goes on with the update before the host is started again. The first time a task
// becomes ready while nobody leads.
func (u *queueUpdate) killLeader(when string) {
	u.Helper()
	killed := u.queueLeader()
	at := time.Now()
	u.nodes[killed].killMaster()
	if u.opened == 0 {
		u.openStep()
	}
	var acknowledged, step time.Duration
	u.awaitTrue("the next leader takes a job and goes on with the update", func() bool {
		acknowledged, step = u.acknowledgedAfter(at), u.stepAfter(at)
		return acknowledged > 0 && step > 0
	})
	u.Logf("the leader of the queue (%s) was killed in an update while %s: the next one has acknowledged a job "+
		"after %v, and the update went on after %v", killed, when, acknowledged.Round(time.Millisecond), step)
	u.nodes[killed].start()
	u.awaitTrue(killed+" is back", func() bool { return u.nodes[killed].daemonPID("cell-queue") != 0 })
}

// acknowledgedAfter is how long after the end of a leader the next one acknowledged a
// job; 0: it has not. No member takes over within the time that it waits for a leader.
func (u *queueUpdate) acknowledgedAfter(end time.Time) (first time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, s := range u.submits {
		if after := s.at.Sub(end); after > replica.DefaultElectionTimeout/2 && (first == 0 || after < first) {
			first = after
		}
	}
	return first
}

// stepAfter is how long after the end of a leader another one went on with the update. It
// has stopped or placed a task then; 0: it has not.
func (u *queueUpdate) stepAfter(end time.Time) time.Duration {
	_, events := u.record()
	for _, e := range events {
		at, err := time.Parse(time.RFC3339, e.Time)
		if err == nil && at.After(end) && (e.What == "leaving" || e.What == "assigned") {
			return at.Sub(end).Round(time.Millisecond)
		}
	}
	return 0
}

// tasksOf returns the indices of the tasks in an id, as in 7[0-2,4].physics; none for a
// job.
func tasksOf(id string) (tasks []string) {
	_, ranges, _ := strings.Cut(id, "[")
	ranges, _, _ = strings.Cut(ranges, "]")
	for part := range strings.SplitSeq(ranges, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, err := strconv.Atoi(first)
		to, lerr := strconv.Atoi(last)
		for index := from; err == nil && lerr == nil && index <= to; index++ {
			tasks = append(tasks, strconv.Itoa(index))
		}
	}
	return tasks
}

// checkSteps checks that each task was replaced once, and one at a time.
func (u *queueUpdate) checkSteps() {
	u.Helper()
	for revision := 1; revision <= 2; revision++ {
		started := slices.Sorted(slices.Values(u.startsOf(revision)))
		if want := strings.Fields("0 1 2 3 4"); !slices.Equal(started, want) {
			u.Errorf("the tasks that were started in revision %d: %v, want %v", revision, started, want)
		}
	}
	_, events := u.record()
	// a task whose check fails on a slow machine is down anyway, and costs nothing
	ready, failed, assigned, isUpdated := map[string]bool{}, map[string]bool{}, map[string]int{}, false
	for _, e := range events {
		isUpdated = isUpdated || e.What == "revised"
		for _, task := range tasksOf(e.ID) {
			switch e.What {
			case "ready":
				ready[task] = true
				delete(failed, task)
			case "unready":
				delete(ready, task)
				failed[task] = true
			case "assigned":
				assigned[task]++
				delete(ready, task)
			case "leaving", "ended":
				delete(ready, task)
			}
		}
		if isUpdated && len(ready)+len(failed) < updatedTasks-1 {
			u.Errorf("%d tasks are ready at event %d, %+v", len(ready), e.Sequence, e)
		}
	}
	for id, times := range assigned {
		if times != 2 {
			u.Errorf("%s was assigned %d times", id, times)
		}
	}
	if job, _ := u.record(); !isUpdated || len(ready) != updatedTasks || len(assigned) != updatedTasks ||
		job.Update.State != "done" {
		u.Errorf("the update is %+v; ready are %v, assigned %v", job.Update, ready, assigned)
	}
}

// checkSubmits checks that each job that was acknowledged is there once, and that no
// other one is there twice.
func (u *queueUpdate) checkSubmits() {
	u.Helper()
	var list struct {
		Jobs        []document.Job
		Unreachable []any
	}
	if !u.queryJSON(&list, "jobs", "--history", "--limit", "0") || len(list.Unreachable) > 0 {
		u.Fatalf("roost jobs: %+v", list.Unreachable)
	}
	ids := map[string][]string{}
	for _, job := range list.Jobs {
		ids[job.Name] = append(ids[job.Name], job.ID)
	}
	for name, all := range ids {
		if strings.HasPrefix(name, "during-") && len(all) > 1 {
			u.Errorf("%s was submitted once, and is there as %v", name, all)
		}
	}
	for _, s := range u.submits {
		if !slices.Equal(ids[s.name], []string{s.id}) {
			u.Errorf("%s was acknowledged as %s, and is there as %v", s.name, s.id, ids[s.name])
		}
	}
	u.Logf("%d jobs were acknowledged, and %d refused: %.500q", len(u.submits), len(u.refused), u.refused)
}
