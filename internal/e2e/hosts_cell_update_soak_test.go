package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	soakedTasks   = 10
	soakedMaxDown = 3
)

// soakedJob is a service whose tasks are ready at once.
const soakedJob = `job "soaked" {
  command     = ["/bin/sh", "-c", "echo $ROOST_TASK_INDEX $REVISION >> %s; exec sleep 1000"]
  environment = { REVISION = "%d" }
  count       = %d
  memory      = "10MiB"

  service {}

  update {
    at_once  = %[4]d
    max_down = %[4]d
    settle   = "0.1s"
  }
}
`

// TestUpdatesSoak gives a service in the queue of the cell ROOST_SOAK_UPDATES revisions,
// one after another. Meanwhile a user submits jobs, and leaders of the queue are killed
// every few seconds. Each task is started once in each revision, never are more down than
// max_down allows, and no job that was acknowledged is lost.
func TestUpdatesSoak(t *testing.T) {
	updates, err := strconv.Atoi(os.Getenv("ROOST_SOAK_UPDATES"))
	if err != nil {
		t.Skip("SKIPPED: it takes seconds for each update: scripts/soak-updates.sh 100")
	}
	h := makeCellQueue(t)
	h.startAll()
	h.awaitTrue("the queue of the cell", func() bool { return h.queueLeader() != "" })
	u := &queueUpdate{cellHostPool: h, starts: h.newTaskLog("soaked")}
	jobFile := func(revision int) string {
		text := fmt.Sprintf(soakedJob, u.starts, revision, soakedTasks, soakedMaxDown)
		return h.writeUserFile("soaked.hcl", text, 0o600)
	}
	first := jobFile(1)
	h.awaitTrue("the submit node knows the queue, which takes the service", func() bool {
		stdout, _, code := h.runAs(someone, "submit", "--quiet", "--cell", first)
		u.id = strings.TrimSpace(stdout)
		return code == 0
	})
	h.awaitTrue("all tasks of the service are ready", u.isAsWanted)
	ctx, cancel := context.WithCancel(h.Context())
	var others sync.WaitGroup
	var kills int
	others.Go(func() { u.submitUntil(ctx) })
	others.Go(func() { kills = u.killLeadersUntil(ctx) })
	defer others.Wait()
	defer cancel()
	var took []time.Duration
	for revision := 2; revision <= updates+1 && !t.Failed(); revision++ {
		began := time.Now()
		file := jobFile(revision)
		var stdout, stderr string
		var code int
		h.awaitTrue(fmt.Sprintf("the update to revision %d is over", revision), func() bool {
			stdout, stderr, code = h.runAs(someone, "update", "--wait", "--job", u.id, file)
			return code != 69 // nobody led the queue for longer than the command waits
		})
		if code != 0 {
			t.Errorf("update to revision %d: exit status %d\n%s%s", revision, code, stdout, stderr)
		}
		took = append(took, time.Since(began))
		started := slices.Sorted(slices.Values(u.startsOf(revision)))
		if want := strings.Fields("0 1 2 3 4 5 6 7 8 9"); !slices.Equal(started, want) {
			t.Errorf("the tasks that were started in revision %d: %v, want %v", revision, started, want)
		}
		u.checkDown(revision)
	}
	cancel()
	others.Wait()
	u.checkSubmits()
	t.Logf("%d updates, of which the median took %v and the longest %v; %d leaders were killed", len(took),
		median(took), slices.Max(took).Round(time.Millisecond), kills)
}

// isAsWanted reports whether all tasks of the service are ready.
func (u *queueUpdate) isAsWanted() bool {
	job, _ := u.record()
	return job.Service != nil && job.Service.IsAsWanted()
}

// killLeadersUntil kills the leader of the queue every few seconds, and starts it again
// when there is another one. It returns how many it has killed.
func (u *queueUpdate) killLeadersUntil(ctx context.Context) (kills int) {
	for {
		waitReal(ctx, 2*time.Second+time.Duration(rand.Int64N(int64(6*time.Second))))
		killed := u.queueLeader()
		if ctx.Err() != nil {
			return kills
		}
		if killed == "" {
			continue
		}
		u.nodes[killed].killMaster()
		pollUntil(u.Context(), awaitTimeout, func() bool {
			now := u.queueLeader()
			return now != "" && now != killed
		})
		u.nodes[killed].start()
		pollUntil(u.Context(), awaitTimeout, func() bool { return u.nodes[killed].daemonPID("cell-queue") != 0 })
		kills++
	}
}

// checkDown checks that no more tasks were down in the update to a revision than
// max_down allows.
func (u *queueUpdate) checkDown(revision int) {
	u.Helper()
	_, events := u.record()
	ready, revised := map[string]bool{}, 1
	for _, e := range events {
		if e.What == "revised" {
			revised++
		}
		for _, task := range tasksOf(e.ID) {
			switch e.What {
			case "ready":
				ready[task] = true
			case "assigned", "unready", "leaving", "ended":
				delete(ready, task)
			}
		}
		if revised == revision && len(ready) < soakedTasks-soakedMaxDown {
			u.Errorf("%d tasks are ready at event %d, %+v", len(ready), e.Sequence, e)
		}
	}
	if revised != revision || len(ready) != soakedTasks {
		u.Errorf("after the update to revision %d: %d revisions, and ready are %v", revision, revised, ready)
	}
}
