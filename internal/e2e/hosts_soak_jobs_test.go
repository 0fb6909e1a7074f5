package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// soakScript is run by a task. Its lock detects two overlapping attempts, and its lines
// say which attempt ran when and where. Attempts on servers and on desktops run under
// different accounts, so everybody may open the lock. The output has the requested
// length, unless the task was told that its machine's disk is full.
const soakScript = `#!/bin/bash
key=$1 ledger=$2 lock=$3 seconds=$4 lines=$5 codes=$6
index=${ROOST_TASK_INDEX:-0}
tell() { echo "$1 $index $ROOST_ATTEMPT ${EPOCHREALTIME/./}000 $ROOST_NODE" >>"$ledger"; }
[ -e "$lock.$index" ] || (umask 0 && : >>"$lock.$index")
exec 9<"$lock.$index"
flock -n 9 || { tell overlap; exit 99; }
tell start
for ((i = 0; i < lines; i++)); do echo "line $i of $key $index" || full=1; done
sleep "$seconds"
[ "$codes" != 1 ] || echo "$key $index $ROOST_ATTEMPT" >"out-$key.$index" || full=1
[ -z "$full" ] || tell full
tell end
exit $((index % codes))
`

// maxQueuedTasks bounds how many tasks of the users are in the queues.
const maxQueuedTasks = 30

// soakJob is a job of the soak, and what its owner was told about it.
type soakJob struct {
	key, id        string
	user           *soakUser
	submitNode     string // submit node of the job
	count          int
	lines          int
	codes          int // task i exits with i modulo this
	dependsOn      *soakJob
	countsSteps    bool // it counts, and leaves machines with its progress
	requestedAt    time.Time
	acknowledgedAt time.Time // when its id was returned

	removed time.Time // when a removal was acknowledged; zero: none
	holds   []holdInterval

	isFinal bool
	state   string // state of the job
}

// holdInterval is from the acknowledgement of a hold to the request of the release.
type holdInterval struct{ from, to time.Time }

// runUser submits jobs and acts on them until the round is over. It returns when all its
// requests have been acknowledged.
func (s *soakPool) runUser(ctx context.Context, u *soakUser, round int, rng *rand.Rand) {
	var last *soakJob
	for n := 0; ctx.Err() == nil && !s.Failed(); n++ {
		s.pollJobs()
		if s.maxActiveTasks() >= maxQueuedTasks {
			waitReal(ctx, 500*time.Millisecond)
			n--
			continue
		}
		w := &soakJob{
			key: fmt.Sprintf("soak%d-%d-%d", u.uid-someone.uid, round, n), user: u,
			submitNode: soakSubmits[rng.IntN(len(soakSubmits))],
			count:      1 + rng.IntN(8), lines: 10 + rng.IntN(200), codes: 1 + rng.IntN(3), requestedAt: time.Now(),
		}
		seconds := rng.Float64() * 4
		act := rng.IntN(20)
		switch {
		case act < 3: // it spans faults
			w.count, seconds = 1, 5+15*rng.Float64()
		case act < 6 && last != nil && last.codes == 1 && last.removed.IsZero() && !last.countsSteps:
			w.dependsOn, w.submitNode = last, last.submitNode
		case act < 12 && s.counting != nil && u.commandUser == someone:
			w.countsSteps, w.count = true, 1
			if act >= 9 { // it leaves with its progress
				act = 14
			}
		}
		if !s.submitJob(w, seconds) {
			return
		}
		switch {
		case act >= 17:
			waitReal(ctx, randomMillis(rng, 0, 1500))
			s.changeJob(w, wire.ActRequest_REMOVE, &w.removed)
		case act >= 14:
			waitReal(ctx, randomMillis(rng, 0, 3000))
			var h holdInterval
			if s.changeJob(w, wire.ActRequest_HOLD, &h.from) {
				waitReal(ctx, randomMillis(rng, 200, 3000))
				h.to = time.Now()
				w.holds = append(w.holds, h)
				s.changeJob(w, wire.ActRequest_RELEASE, new(time.Time))
			}
		}
		last = w
		waitReal(ctx, randomMillis(rng, 100, 1200))
	}
}

// submitJob submits a job, repeatedly with the same key, until it has an id; sometimes
// once more after that (P2).
func (s *soakPool) submitJob(w *soakJob, seconds float64) bool {
	ledger := s.hostPool.newTaskLog(w.key)
	more := "checkpoint { enabled = false }\n"
	command := fmt.Sprintf(`"/bin/bash", %q, %q, %q, %q, "%.2f", "%d", "%d"`, filepath.Join(s.dir, "task.sh"), w.key,
		ledger, filepath.Join(s.dir, "locks", w.key), seconds, w.lines, w.codes)
	if w.dependsOn != nil {
		more += fmt.Sprintf("  depends_on = [%q]", w.dependsOn.id)
	}
	if w.countsSteps {
		command = fmt.Sprintf(`%q, %q, %q, "%d"`, s.counting.worker, ledger, filepath.Join(s.dir, "gate-"+w.key),
			s.counterSteps(seconds))
		more = "checkpoint { every = \"10s\" }"
		if s.fewSteps { // tasks on a desktop get no CPU while the machine is busy
			more += fmt.Sprintf("\n  requirements = %q", fmt.Sprintf("TARGET.Name != %q", s.desk.name))
		}
	}
	text := fmt.Sprintf(`job %q {
  command = [%s]
  count   = %d
  memory  = "64MiB"
  lease   = %q
  environment = { ROOST_SOAK = %q }
  %s
}`, w.key, command, w.count, shortLease, s.taskMarker(w.key), more)
	path := filepath.Join(w.user.home, w.key+".hcl")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		s.Error(err)
		return false
	}
	again := w.lines%4 == 0
	for late := time.Now().Add(5 * time.Minute); ; {
		id, why := s.submitFile(w, path)
		if id != "" && w.id != "" && id != w.id {
			s.Errorf("P2: the key %s made %s and %s", w.key, w.id, id)
		}
		if id != "" && w.id == "" {
			w.id, w.acknowledgedAt = id, time.Now()
			s.mu.Lock()
			s.jobs = append(s.jobs, w)
			s.mu.Unlock()
		}
		if id != "" && !again {
			return true
		}
		if again = again && id == ""; time.Now().After(late) || s.Failed() {
			s.Errorf("P9: for five minutes nobody has taken %s at %s: %s", w.key, w.submitNode, why)
			return false
		}
		s.mu.Lock()
		s.totals.askedAgain++
		s.mu.Unlock()
		waitReal(s.Context(), 100*time.Millisecond)
	}
}

// counterSteps returns how far a counting task counts.
func (s *soakPool) counterSteps(seconds float64) int {
	if s.fewSteps {
		return 50 + int(50*seconds)
	}
	return 200 + int(150*seconds)
}

// taskMarker returns a text that a task's processes have in their environment.
func (s *soakPool) taskMarker(key string) string { return s.dir + "/" + key }

// submitFile submits a job file, and returns the id or the reason of a failure.
func (s *soakPool) submitFile(w *soakJob, path string) (id, why string) {
	ctx, cancel := context.WithTimeout(s.Context(), 20*time.Second)
	defer cancel()
	out, errs, code := s.runCommand(ctx, w.user, w.submitNode, "submit", "--json", "--key", w.key, path)
	if mayFail := []int{0, -1, roost.Unavailable.ExitCode(), roost.Exhausted.ExitCode(),
		roost.NoOutput.ExitCode()}; !slices.Contains(mayFail, code) {
		s.Errorf("%s at %s: exit code %d: %s", w.key, w.submitNode, code, errs)
	}
	var reply struct{ Jobs []struct{ ID string } }
	if code != 0 || json.Unmarshal([]byte(out), &reply) != nil || len(reply.Jobs) != 1 {
		return "", out + errs
	}
	return reply.Jobs[0].ID, ""
}

// runOutput runs a command, and returns its output and exit code.
func runOutput(cmd *exec.Cmd) (stdout, stderr string, code int) {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		return "", err.Error(), -1
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// changeJob acts on a job until that is acknowledged, and records when. It returns false
// if it was no longer possible.
func (s *soakPool) changeJob(w *soakJob, verb wire.ActRequest_Verb, acknowledged *time.Time) bool {
	for late := time.Now().Add(5 * time.Minute); ; {
		ctx, cancel := context.WithTimeout(s.Context(), 20*time.Second)
		reply, err := s.clients[w.submitNode].Act(ctx,
			&wire.ActRequest{Verb: verb, Selection: &wire.Selection{Selectors: []string{w.id}}, Again: true})
		cancel()
		if err == nil && len(reply.Results) == 1 {
			if s.logLine("%v %s: %q", verb, w.id, reply.Results[0].Error); reply.Results[0].Error != "" {
				return false
			}
			*acknowledged = time.Now()
			return true
		}
		if time.Now().After(late) || s.Failed() {
			s.Errorf("P9: for five minutes nobody has answered %v of %s: %v", verb, w.id, err)
			return false
		}
		waitReal(s.Context(), 100*time.Millisecond)
	}
}

// pollJobs finds out which jobs are over.
func (s *soakPool) pollJobs() {
	for name, client := range s.clients {
		var ids []string
		open := map[string]*soakJob{}
		s.mu.Lock()
		for _, w := range s.jobs {
			if w.submitNode == name && !w.isFinal {
				ids = append(ids, w.id)
				open[w.id] = w
			}
		}
		s.mu.Unlock()
		if len(ids) == 0 {
			continue
		}
		rows, err := s.queryRows(client, &wire.QueryRequest{Selection: &wire.Selection{Selectors: ids}, History: true})
		s.mu.Lock()
		for _, row := range rows {
			if w := open[jobOf(row.Id)]; w != nil {
				w.isFinal = row.Counts["completed"]+row.Counts["removed"] == row.Tasks
				w.state = fmt.Sprint(row.Counts, " ", row.Reason)
			}
		}
		if err != nil {
			for _, w := range open {
				w.state = err.Error()
			}
		}
		s.mu.Unlock()
	}
}

// jobOf returns the job of an id, which may be that of a task.
func jobOf(id string) string {
	before, after, found := strings.Cut(id, "[")
	if !found {
		return id
	}
	_, host, _ := strings.Cut(after, "]")
	return before + host
}

// maxActiveTasks returns an upper bound of the unfinished tasks of this round.
func (s *soakPool) maxActiveTasks() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.jobs {
		if !w.isFinal {
			n += w.count
		}
	}
	return n
}

// queryRows queries a schedd.
func (s *soakPool) queryRows(client wire.ScheddClient, q *wire.QueryRequest) (rows []*wire.JobStatus, err error) {
	ctx, cancel := context.WithTimeout(s.Context(), 20*time.Second)
	defer cancel()
	stream, err := client.Query(ctx, q)
	for err == nil {
		var row *wire.JobStatus
		if row, err = stream.Recv(); err == nil {
			rows = append(rows, row)
		}
	}
	if err == io.EOF {
		err = nil
	}
	return rows, err
}
