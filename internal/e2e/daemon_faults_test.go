package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/failpoint"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// script is run by every task of the fault test. Its lock detects two overlapping
// attempts of a task: any process of the attempt holds it (P4). Standard output is
// checked for completeness afterwards (P11).
const script = `exec 9>"$LEDGER/lock.$TASK"
flock -n 9 || { echo "overlap $TASK $ROOST_ATTEMPT" >> "$LEDGER/violations"; exit 99; }
echo "start $TASK $ROOST_ATTEMPT" >> "$LEDGER/runs"
sleep 0.$((RANDOM_TENTH))
i=0; while [ $i -lt 50 ]; do echo "line $i of $TASK"; i=$((i+1)); done
echo "end $TASK $ROOST_ATTEMPT" >> "$LEDGER/runs"
exit $CODE
`

// faultPool is a pool with injected faults, and what its users were told.
type faultPool struct {
	*testing.T
	ctx    context.Context
	pool   *Pool
	ledger string
	faults string
	rng    *rand.Rand

	mu            sync.Mutex
	acknowledged  map[string]int    // by job id: number of tasks
	idBySubmitKey map[string]string // by submit key: job id
	killed        map[string]int    // by target: number of kills
}

// TestKilledAtRandom checks every guarantee of DESIGN §5 about crashes. It kills daemons
// at random, as often as ROOST_KILLS says, and at every failpoint.
func TestKilledAtRandom(t *testing.T) {
	t.Parallel()
	kills := 60
	if n, err := strconv.Atoi(os.Getenv("ROOST_KILLS")); err == nil {
		kills = n
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute+time.Duration(kills)*time.Second)
	defer cancel()
	s := &faultPool{
		T: t, ctx: ctx, ledger: openDir(t), faults: t.TempDir(),
		rng:          rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1)),
		acknowledged: map[string]int{}, idBySubmitKey: map[string]string{}, killed: map[string]int{},
	}
	var err error
	s.pool, err = Start(ctx, PoolOptions{
		Roost: program(t, "faults"), Dir: filepath.Join(t.TempDir(), "pool"), Nodes: 2, CPUs: 8,
		Env: []string{"ROOST_FAULT_DIR=" + s.faults},
	})
	if err != nil {
		t.Fatal(err)
	}
	stopped := false
	defer func() {
		if !stopped {
			s.pool.Kill()
		}
	}()
	users, stopUsers := context.WithCancel(ctx)
	var all sync.WaitGroup
	for u := range 3 {
		all.Go(func() { s.runUser(users, u) })
	}
	s.injectFaults(kills)
	stopUsers()
	all.Wait()
	s.awaitFinal()
	s.auditJobs()
	if err := s.pool.Stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	stopped = true
	s.checkNoProcesses()
	t.Logf("killed: %v; %d jobs acknowledged", s.killed, len(s.acknowledged))
}

// runUser submits one job after the other, each with the same key until it is answered.
func (s *faultPool) runUser(ctx context.Context, u int) {
	for n := 0; ctx.Err() == nil; n++ {
		for ctx.Err() == nil && s.backlog() > maxBacklog {
			waitReal(ctx, 100*time.Millisecond)
		}
		key := fmt.Sprintf("user%d-%d-%d", u, n, os.Getpid())
		tasks := 1 + (n*7+u)%6
		spec := s.newJob(key, tasks)
		for {
			reply, err := s.pool.Client.Submit(s.ctx, &wire.SubmitRequest{Key: key, Jobs: []*wire.JobSpec{spec}})
			if err == nil {
				s.acknowledgedJobs(key, reply.Ids[0], tasks)
				if n%5 == 4 {
					s.holdJob(ctx, key, reply.Ids[0])
				}
				break
			}
			if err := rpc.FromStatus(err); !errors.Is(err, roost.Unavailable) {
				s.Errorf("submit %s: %v", key, err)
				return
			}
			waitReal(s.ctx, 20*time.Millisecond)
		}
		waitReal(ctx, 60*time.Millisecond)
	}
}

// holdJob holds a job for a moment. Between the acknowledgement and the release no
// attempt starts (P8), except those that had been assigned before.
func (s *faultPool) holdJob(ctx context.Context, key, id string) {
	if !s.changeJob(ctx, wire.ActRequest_HOLD, id) {
		return
	}
	if assigned, err := s.assigned(id); err == nil {
		waitReal(ctx, 300*time.Millisecond)
		for _, a := range s.startedAttempts(key) {
			if !assigned[a] {
				s.Errorf("P8: %s: attempt %d of task %d had not been assigned when it was held, and has started\n%s",
					id, a.number, a.index, s.jobLog(id))
			}
		}
	}
	s.changeJob(s.ctx, wire.ActRequest_RELEASE, id)
}

// assigned returns the attempts in a job's log; an error means that the schedd was killed
// meanwhile.
func (s *faultPool) assigned(id string) (map[attemptRecord]bool, error) {
	stream, err := s.pool.Client.Events(s.ctx, &wire.EventsRequest{Id: id})
	all := map[attemptRecord]bool{}
	for err == nil {
		var e *wire.JobEvent
		if e, err = stream.Recv(); err == nil && e.GetWhat() == "assigned" {
			all[attemptOfEvent(e)] = true
		}
	}
	if err == io.EOF {
		err = nil
	}
	return all, err
}

// changeJob acts on a job until that is acknowledged. It reports whether it was: an ended
// job cannot be held.
func (s *faultPool) changeJob(ctx context.Context, verb wire.ActRequest_Verb, id string) bool {
	for again := false; ctx.Err() == nil; again = true { // an answer may be lost after what it reports is durable
		reply, err := s.pool.Client.Act(s.ctx,
			&wire.ActRequest{Verb: verb, Selection: &wire.Selection{Selectors: []string{id}}, Again: again})
		if err == nil {
			return reply.Results[0].Error == ""
		}
		waitReal(ctx, 20*time.Millisecond)
	}
	return false
}

// startedAttempts returns the attempts of a job that have written that they began.
func (s *faultPool) startedAttempts(key string) (all []attemptRecord) {
	for line := range s.countRuns() {
		var a attemptRecord
		if of, ok := strings.CutPrefix(line, "start "+key+"-"); ok {
			if _, err := fmt.Sscan(of, &a.index, &a.number); err != nil {
				s.Errorf("%q: %v", line, err)
			}
			all = append(all, a)
		}
	}
	return all
}

func (s *faultPool) acknowledgedJobs(key, id string, tasks int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if other, ok := s.idBySubmitKey[key]; ok && other != id {
		s.Errorf("P2: key %s made %s and %s", key, other, id)
	}
	s.idBySubmitKey[key] = id
	s.acknowledged[id] = tasks
}

// newJob returns a job whose task i exits with i%3.
func (s *faultPool) newJob(key string, tasks int) *wire.JobSpec {
	ad := classad.New()
	ad.SetString(roost.AttrMyType, "Job")
	ad.SetString(roost.AttrJobName, key)
	ad.SetString(roost.AttrScript, script)
	ad.SetString(roost.AttrShell, "/bin/sh")
	ad.SetString(roost.AttrIwd, s.ledger)
	ad.SetInt(roost.AttrRequestMemory, 16)
	ad.SetStrings(roost.AttrEnvironment, []string{
		"PATH=/usr/bin:/bin", "LEDGER=" + s.ledger, "TASK=" + key + "-$(TaskIndex)", "CODE=$(Code)",
		"RANDOM_TENTH=$(Tenth)",
	})
	code, tenth := &wire.Column{Name: "Code"}, &wire.Column{Name: "Tenth"}
	for i := range tasks {
		code.Values = append(code.Values, strconv.Itoa(i%3))
		tenth.Values = append(tenth.Values, strconv.Itoa(i%4))
	}
	return &wire.JobSpec{Ad: ad.String(), Count: uint32(tasks), Columns: []*wire.Column{code, tenth}}
}

// injectFaults kills a random process the given number of times, and arms every failpoint
// at least once.
func (s *faultPool) injectFaults(kills int) {
	points := failpoint.Names()
	var over time.Time // when all kills were done
	for n := 0; n < kills || !s.unusedFailpoints(); n++ {
		if n == kills {
			over = time.Now()
		}
		if n > kills && time.Since(over) > time.Minute {
			s.Fatalf("these points were not passed within a minute: %v", s.armedFailpoints())
		}
		if n%2 == 0 && len(points) > 0 {
			s.armFailpoint(points[0])
			points = points[1:]
		} else if n < kills {
			s.killRandom()
		}
		waitReal(s.ctx, time.Duration(100+s.rng.IntN(200))*time.Millisecond)
	}
}

func (s *faultPool) armFailpoint(point string) {
	if err := os.WriteFile(filepath.Join(s.faults, point), nil, 0o600); err != nil {
		s.Fatal(err)
	}
	s.killed[point]++
}

func (s *faultPool) armedFailpoints() []string {
	files, _ := filepath.Glob(filepath.Join(s.faults, "*"))
	return files
}

func (s *faultPool) unusedFailpoints() bool { return len(s.armedFailpoints()) == 0 }

// killRandom kills a daemon, all daemons, or a starter.
func (s *faultPool) killRandom() {
	state, err := s.pool.State()
	if err != nil {
		s.Fatal(err)
	}
	switch choice := s.rng.IntN(10); {
	case choice == 0:
		for _, d := range state.Daemons {
			killProcess(d.PID)
		}
		s.killed["everything"]++
	case choice == 1:
		if pids := s.starters(); len(pids) > 0 {
			killProcess(pids[s.rng.IntN(len(pids))])
			s.killed["starter"]++
		}
	default:
		d := state.Daemons[s.rng.IntN(len(state.Daemons))]
		killProcess(d.PID)
		s.killed[d.Role]++
	}
}

func killProcess(pid int) {
	if pid > 1 {
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

// starters finds the starters of this pool by the directory in their arguments.
func (s *faultPool) starters() []int {
	return s.processes(func(args, _ string) bool {
		return strings.HasPrefix(args, "roost-starter") || strings.Contains(args, "/roost-starter")
	})
}

// processes finds the processes that mention the pool's directory or ledger in their
// arguments or environment.
func (s *faultPool) processes(want func(args, env string) bool) []int {
	var pids []int
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		args, _ := os.ReadFile(dir + "/cmdline")
		env, _ := os.ReadFile(dir + "/environ")
		if !strings.Contains(string(args), s.pool.Dir) && !strings.Contains(string(env), s.ledger) {
			continue
		}
		if want(string(args), string(env)) {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			pids = append(pids, pid)
		}
	}
	return pids
}

// awaitFinal waits until every acknowledged job is final, within a minute of the last
// fault (P9).
func (s *faultPool) awaitFinal() {
	deadline := time.Now().Add(time.Minute)
	for id := range s.acknowledged {
		for {
			st, err := s.status(id)
			if err == nil && st.Counts["completed"]+st.Counts["removed"] == st.Tasks {
				break
			}
			if time.Now().After(deadline) {
				s.Fatalf("P9: a minute after the last fault %s stands at %v (%v)\n%s", id, st, err, s.jobLog(id))
			}
			waitReal(s.ctx, 20*time.Millisecond)
		}
	}
}

func (s *faultPool) status(id string) (*wire.JobStatus, error) {
	rows, err := s.rows(&wire.QueryRequest{Selection: &wire.Selection{Selectors: []string{id}}, History: true})
	if err != nil || len(rows) != 1 {
		return nil, fmt.Errorf("%s: %d rows: %w", id, len(rows), err)
	}
	return rows[0], nil
}

func (s *faultPool) rows(q *wire.QueryRequest) (rows []*wire.JobStatus, err error) {
	stream, err := s.pool.Client.Query(s.ctx, q)
	for err == nil {
		var row *wire.JobStatus
		if row, err = stream.Recv(); err == nil {
			rows = append(rows, row)
		}
	}
	if err == io.EOF {
		return rows, nil
	}
	return nil, rpc.FromStatus(err)
}

// jobLog returns the log of a job, for error messages.
func (s *faultPool) jobLog(id string) string {
	stream, err := s.pool.Client.Events(s.ctx, &wire.EventsRequest{Id: id})
	var b strings.Builder
	for err == nil {
		var e *wire.JobEvent
		if e, err = stream.Recv(); err == nil {
			fmt.Fprintf(&b, "%d %s/%d %s %s %s\n", e.Sequence, e.Id, e.Attempt, e.What, e.Node, e.Text)
		}
	}
	return b.String()
}

// auditJobs compares the reports of the daemons with what the tasks wrote.
func (s *faultPool) auditJobs() {
	if text, err := os.ReadFile(filepath.Join(s.ledger, "violations")); err == nil {
		s.Errorf("P4: %s", text)
	}
	ends := s.countRuns()
	byID := map[string]string{}
	for key, id := range s.idBySubmitKey {
		byID[id] = key
	}
	for id, tasks := range s.acknowledged {
		rows, err := s.rows(&wire.QueryRequest{Selection: &wire.Selection{Selectors: []string{id}}, History: true,
			Tasks: true})
		if err != nil || len(rows) != tasks {
			s.Errorf("P1: %s has %d tasks, want %d (%v)", id, len(rows), tasks, err)
			continue
		}
		for _, row := range rows {
			s.auditTask(row, byID[id], ends)
		}
		s.auditLog(id, tasks)
	}
}

func (s *faultPool) auditTask(row *wire.JobStatus, key string, ends map[string]int) {
	task := fmt.Sprintf("%s-%d", key, row.Index)
	if got, want := row.Exit.GetCode(), int32(row.Index%3); row.State != "completed" || got != want {
		s.Errorf("%s (%s): state %s, exit code %d, want completed with %d\n%s", row.Id, task, row.State, got, want,
			s.jobLog(row.Id))
	}
	if ends[fmt.Sprintf("end %s %d", task, row.Attempt)] != 1 {
		s.Errorf("P3: %s (%s): attempt %d is recorded as complete, and it did not write its end\n%s", row.Id, task,
			row.Attempt, s.jobLog(row.Id))
	}
	if ends[fmt.Sprintf("start %s %d", task, row.Attempt+1)] != 0 {
		s.Errorf("P3: %s (%s): attempt %d started after attempt %d was complete", row.Id, task, row.Attempt+1,
			row.Attempt)
	}
	var want strings.Builder
	for i := range 50 {
		fmt.Fprintf(&want, "line %d of %s\n", i, task)
	}
	if got := s.checkOutput(row.Id); got != want.String() {
		s.Errorf("P11: %s (%s): output of %d bytes, want %d", row.Id, task, len(got), want.Len())
	}
}

func (s *faultPool) checkOutput(id string) string {
	stream, err := s.pool.Client.Logs(s.ctx, &wire.LogsRequest{Id: id})
	var b strings.Builder
	for err == nil {
		var chunk *wire.LogChunk
		if chunk, err = stream.Recv(); err == nil {
			b.Write(chunk.Data)
		}
	}
	if err != io.EOF {
		s.Errorf("logs %s: %v", id, err)
	}
	return b.String()
}

// auditLog counts the completions in the job's log.
func (s *faultPool) auditLog(id string, tasks int) {
	stream, err := s.pool.Client.Events(s.ctx, &wire.EventsRequest{Id: id})
	completed := map[string]int{}
	for err == nil {
		var e *wire.JobEvent
		if e, err = stream.Recv(); err == nil && e.What == "completed" {
			completed[e.Id]++
		}
	}
	for task, n := range completed {
		if n != 1 {
			s.Errorf("P3: %s is recorded as completed %d times\n%s", task, n, s.jobLog(id))
		}
	}
	if err != io.EOF || len(completed) != tasks {
		s.Errorf("P3: %s: %d of %d tasks have a completion in the log (%v)", id, len(completed), tasks, err)
	}
}

// checkNoProcesses checks that no process of the pool or a task is left after the pool
// was stopped (P10).
func (s *faultPool) checkNoProcesses() {
	if pids := s.processes(func(string, string) bool { return true }); len(pids) > 0 {
		for _, pid := range pids {
			args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			s.Errorf("P10: process %d is left: %q", pid, args)
			killProcess(pid)
		}
	}
}

// waitReal waits in real time, in which the tested processes live.
func waitReal(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
