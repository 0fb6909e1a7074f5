package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/checkpoint/criu"
	"github.com/roost-batch/roost/internal/identity/peer"
)

// root is the user that needs no user namespace.
var root = commandUser{0, 0}

// checkpointPool is a pool whose tasks lose their machines repeatedly, with the state of
// these tasks.
type checkpointPool struct {
	*hostPool
	tasks []*checkpointedTask
	rng   *rand.Rand
}

// checkpointedTask is one of the pool's tasks.
type checkpointedTask struct {
	id, name string
	who      commandUser
	home     string
	gate     *taskGate
	attempt  int // the last attempt seen running
}

// TestCheckpoints checkpoints real programs of root and of another user, all at once. It
// takes their machines away in every possible way. Each program must end with the right
// answer, without losing checkpointed work or repeating any. ROOST_CHECKPOINT_ROUNDS sets
// the number of rounds.
func TestCheckpoints(t *testing.T) {
	t.Parallel()
	for _, grouped := range []bool{true, false} {
		t.Run(map[bool]string{true: "with control groups", false: "without"}[grouped], func(t *testing.T) {
			t.Parallel()
			checkpointRounds(t, grouped)
		})
	}
}

func checkpointRounds(t *testing.T, grouped bool) {
	if _, err := criu.Find(""); err != nil {
		t.Skipf("SKIPPED: no checkpoint is taken, and nothing is restored: %v", err)
	}
	rounds := 7
	if n, err := strconv.Atoi(os.Getenv("ROOST_CHECKPOINT_ROUNDS")); err == nil {
		rounds = n
	}
	seed := uint64(time.Now().UnixNano())
	s := &checkpointPool{hostPool: startHostsAs(t, hostPoolOptions{sharesCgroups: grouped, root: true}),
		rng: rand.New(rand.NewPCG(seed, 1))}
	t.Logf("seed %d", seed)
	t.Cleanup(s.endAll)
	s.addExecuteNode("exec3", "10.111.0.13",
		s.issueCertificate(filepath.Join(s.dir, "ca"), "exec3", peer.Startd)).start()
	s.awaitTrue("three execute nodes", func() bool { return len(s.machineNames()) == 3 })
	programs := s.writeCheckpointPrograms()
	for name, command := range programs {
		s.submitTask(name+"-root", command, root, filepath.Join(s.dir, "root"))
		s.submitTask(name+"-user", command, someone, s.home)
	}
	for _, task := range s.tasks {
		s.awaitRunning(task)
	}
	kinds := []struct {
		name string
		run  func()
	}{
		{"a host is lost", s.hostIsLost}, {"a host is stopped", s.hostIsStopped},
		{"startd, starters and tasks are killed", s.startdAndTasksAreKilled},
		{"starters are killed", s.startersAreKilled}, {"startd is killed while it saves", s.startdIsKilledAtCheckpoint},
		{"jobs are held", s.heldJobsAreCheckpointed}, {"jobs are suspended and saved", s.suspendedJobIsCheckpointed},
	}
	for n := range rounds {
		kind := kinds[n%len(kinds)]
		began := time.Now()
		kind.run()
		t.Logf("round %d: %s: %v", n+1, kind.name, time.Since(began).Round(time.Millisecond))
		if t.Failed() {
			break
		}
	}
	s.finishTasks()
}

// endAll ends all hosts before their directories are removed.
func (h *hostPool) endAll() {
	for _, name := range slices.Sorted(maps.Keys(h.nodes)) {
		h.nodes[name].endProcesses()
	}
}

// submitTask submits a task that is to be checkpointed.
func (s *checkpointPool) submitTask(name, command string, who commandUser, home string) {
	s.Helper()
	if who == root {
		if err := os.MkdirAll(home, 0o700); err != nil {
			s.Fatal(err)
		}
	}
	g := s.newGate(name)
	task := &checkpointedTask{name: name, who: who, home: home, gate: g}
	text := fmt.Sprintf(`job %q {
  command    = [%s, %q, "grown-%s"]
  lease      = "10s"
  outputs    = ["grown-%s"]
  environment = { GODEBUG = "multipathtcp=0" }
  checkpoint { every = "never" }
}`, name, command, g.path, name, name)
	path := filepath.Join(home, name+".hcl")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		s.Fatal(err)
	}
	out := s.mustAsOwner(task, "submit", "--json", path)
	var reply struct{ Jobs []struct{ ID string } }
	if json.Unmarshal([]byte(out), &reply) != nil || len(reply.Jobs) != 1 {
		s.Fatalf("submit printed %q", out)
	}
	task.id = reply.Jobs[0].ID
	s.tasks = append(s.tasks, task)
}

// mustAsOwner runs a command as a task's owner, in the owner's directory.
func (s *checkpointPool) mustAsOwner(task *checkpointedTask, args ...string) string {
	s.Helper()
	cmd := s.command(s.Context(), task.who, args...)
	cmd.Dir = task.home
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.printLogs()
		s.Fatalf("%s: roost %s: %v\n%s", task.name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// printedLines counts the lines that the present attempt of a task has printed on its
// host. It returns -1 if there is no file yet.
func (s *checkpointPool) printedLines(task *checkpointedTask, attempt int, node string) int {
	claims, _ := filepath.Glob(filepath.Join(s.dir, node, "startd", node, "claims", "*", "attempt"))
	for _, path := range claims {
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		var on struct {
			Job     int
			Attempt int
			IO      string
		}
		err = json.NewDecoder(f).Decode(&on)
		f.Close()
		if err != nil || !strings.HasPrefix(task.id, fmt.Sprintf("%d.", on.Job)) || on.Attempt != attempt {
			continue
		}
		if text, err := os.ReadFile(filepath.Join(on.IO, "stdout")); err == nil {
			return strings.Count(string(text), "\n")
		}
	}
	return -1
}

// awaitTask waits for something that a task is to do. A failing test ends with what the
// pool says of the task.
func (s *checkpointPool) awaitTask(task *checkpointedTask, limit time.Duration, what string, is func() bool) {
	s.Helper()
	if pollUntil(s.Context(), limit, is) {
		return
	}
	s.printLogs()
	shown, _, _ := s.runAs(task.who, "show", "--events", "0", task.id)
	why, _, _ := s.runAs(task.who, "why", task.id)
	s.Fatalf("%s\n%s\nafter %v still not: %s %s", shown, why, limit, task.name, what)
}

// awaitRunning waits until a task runs and progresses. It returns its host and the number
// of its lines.
func (s *checkpointPool) awaitRunning(task *checkpointedTask) (node string, lines int) {
	s.Helper()
	s.awaitTask(task, 2*awaitTimeout, "runs", func() bool {
		now := s.showTask(task.id)
		node, task.attempt = now.Node, now.Attempt
		lines = s.printedLines(task, now.Attempt, now.Node)
		return now.State == "running" && lines > 0
	})
	s.awaitTask(task, awaitTimeout, "gets on", func() bool {
		return s.printedLines(task, task.attempt, node) > lines
	})
	return node, lines
}

// tasksOn lists the tasks that run on a host.
func (s *checkpointPool) tasksOn(node string) (list []*checkpointedTask) {
	for _, task := range s.tasks {
		if at, _ := s.awaitRunning(task); at == node {
			list = append(list, task)
		}
	}
	return list
}

// busyHost chooses a host with tasks.
func (s *checkpointPool) busyHost() (node string, list []*checkpointedTask) {
	task := s.tasks[s.rng.IntN(len(s.tasks))]
	node, _ = s.awaitRunning(task)
	return node, s.tasksOn(node)
}

// takeCheckpoints checkpoints tasks, and returns for each a lower bound of its lines at
// the checkpoint.
func (s *checkpointPool) takeCheckpoints(list []*checkpointedTask) map[*checkpointedTask]int {
	s.Helper()
	least := map[*checkpointedTask]int{}
	for _, task := range list {
		least[task] = s.printedLines(task, task.attempt, s.showTask(task.id).Node)
		s.mustAsOwner(task, "checkpoint", task.id)
	}
	return least
}

// checkResumed checks that tasks run in a new attempt with all checkpointed work. They
// must not run on the node not, unless it is empty.
func (s *checkpointPool) checkResumed(least map[*checkpointedTask]int, not string) {
	s.Helper()
	for _, task := range s.tasks {
		saved, ok := least[task]
		if !ok {
			continue
		}
		before := task.attempt
		var now shownTask
		s.awaitTask(task, 3*awaitTimeout, "runs again", func() bool {
			now = s.showTask(task.id)
			return now.State == "running" && now.Attempt > before
		})
		if now.Node == not {
			s.Errorf("%s runs on %s, which was taken away", task.name, not)
		}
		if _, lines := s.awaitRunning(task); lines < saved {
			s.Errorf("%s goes on from line %d, and %d were saved", task.name, lines, saved)
		}
	}
}

type shownTask = taskRecord

// finishTasks opens all gates and checks what the tasks have done.
func (s *checkpointPool) finishTasks() {
	for _, task := range s.tasks {
		task.gate.openGate()
	}
	var frozen, restored []time.Duration
	for _, task := range s.tasks {
		s.awaitTask(task, 2*awaitTimeout, "ends", func() bool { return s.showTask(task.id).State == "completed" })
		grown, _ := os.ReadFile(filepath.Join(task.home, "grown-"+task.name))
		if why := outputErrors(s.mustAsOwner(task, "logs", task.id), string(grown)); why != "" {
			s.Errorf("%s: %s\n%s", task.name, why, s.mustAsOwner(task, "show", "--events", "0", task.id))
		}
		f, r := s.checkLog(task)
		frozen, restored = append(frozen, f...), append(restored, r...)
	}
	s.Logf("frozen: %s; from assigned to started from a checkpoint: %s", medianAndMax(frozen), medianAndMax(restored))
}

// checkLog checks a task's log: each attempt resumes from the last checkpoint before it.
// It returns how long the task was frozen each time, and how long each restore took.
func (s *checkpointPool) checkLog(task *checkpointedTask) (frozen, restored []time.Duration) {
	var all struct {
		Events []struct {
			Time       time.Time
			Attempt    int
			What, Text string
		}
	}
	if err := json.Unmarshal([]byte(s.mustAsOwner(task, "show", "--json", "--events", "0", task.id)),
		&all); err != nil {
		s.Fatal(err)
	}
	last := ""
	var assigned time.Time
	for _, e := range all.Events {
		text, still, _ := strings.Cut(e.Text, ":")
		switch e.What {
		case "checkpointed":
			last = text
			_, still, _ = strings.Cut(still, "stood still for ")
			if d, err := time.ParseDuration(strings.TrimSpace(still)); err == nil {
				frozen = append(frozen, d)
			}
		case "assigned":
			assigned = e.Time
		case "started":
			if from := strings.TrimPrefix(e.Text, "from "); e.Attempt > 1 && from != last {
				s.Errorf("%s: attempt %d went on from %q, and the last checkpoint was %q", task.name, e.Attempt,
					from, last)
			}
			if last != "" {
				restored = append(restored, e.Time.Sub(assigned))
			}
		case "unrestored", "checkpoint-bad", "checkpoint-failed":
			s.Logf("%s: attempt %d: %s: %s", task.name, e.Attempt, e.What, e.Text)
		}
	}
	return frozen, restored
}

// medianAndMax formats the median and the largest of some durations.
func medianAndMax(all []time.Duration) string {
	if len(all) == 0 {
		return "never"
	}
	slices.Sort(all)
	return fmt.Sprintf("%d times, median %v, 95%% below %v, at most %v", len(all), all[len(all)/2],
		all[len(all)*95/100], all[len(all)-1])
}
