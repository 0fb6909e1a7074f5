package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/wire"
)

// soakPool is a pool of three central managers, two submit nodes, three servers and a
// desktop. Its users work while everything that can fail does. It records both.
//
//	central1 10.111.0.1, central2 .3, central3 .4   collector, negotiator
//	submit   10.111.0.2, submit2 .6                 schedd
//	exec1    10.111.0.11, exec2 .12, exec3 .13      startd
//	desk1    10.111.0.21                            startd, guard
type soakPool struct {
	*cellHostPool
	desk     *ownedDesktop
	clients  map[string]wire.ScheddClient // by submit node
	users    []*soakUser
	counting *desktopPool // for the checkpointed tasks; nil where checkpoints are not possible
	fewSteps bool         // these tasks count less far
	seed     uint64
	began    time.Time
	faultLog *os.File // the injected faults, a line each

	mu                sync.Mutex
	lockedHosts       map[string]bool // hosts whose processes a fault is handling
	faults            map[string]int  // by kind
	skipped           int
	jobs              []*soakJob // of this round
	absences          []hostSilence
	lastSeen          map[heartbeatSpan]time.Time // by attempt: when a process of it was last seen
	totals            soakTotals
	slowestCompletion time.Duration
	faultTime         time.Duration      // how long faults were injected
	lastUsed          map[string]float64 // core-hours
}

// soakTotals are the totals of all rounds.
type soakTotals struct {
	rounds, jobs, tasks, attempts, restarted, removed, held, restored, askedAgain int

	// errors found: lost or wrong tasks, tasks that ran twice or overlapped, and others
	lostTasks, duplicateTasks, otherErrors int
}

// longestRound is how long faults are injected before they stop, everything ends and is
// audited.
const longestRound = time.Minute

// TestSoak does to real processes what the simulator does to simulated ones, with
// hundreds of faults an hour, for ROOST_SOAK_MINUTES. Daemons, starters and machines are
// killed, stopped or suspended, or crash at each failpoint. Links are cut, cut in one
// direction, between some hosts or repeatedly. Networks lose, delay, duplicate and
// reorder frames. Disks are full, and an owner comes and goes. After each minute of that
// the faults stop, and everything must end within a minute (P9). Then the guarantees of
// the design, §5, are checked against what the tasks have written, the logs of the jobs,
// the replicas, and the remaining processes.
//
// ROOST_SOAK_SEED repeats the faults of an earlier run: the same ones in the same order
// at the same times, as far as the processes permit. Wall clocks are not set, because all
// hosts share one; internal/sim does that.
func TestSoak(t *testing.T) {
	minutes, err := strconv.ParseFloat(os.Getenv("ROOST_SOAK_MINUTES"), 64)
	if err != nil {
		t.Skip("SKIPPED: minutes of a whole machine's time, and what is found takes longer: make soak MINUTES=2")
	}
	s := startSoak(t)
	defer s.saveEvidence()
	defer s.printTable()
	total := time.Duration(minutes * float64(time.Minute))
	// then this round is the last, and shorter
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	s.printLine("seed %d: %v of faults, drawn anew for each round of a minute; ROOST_SOAK_SEED=%d draws them again",
		s.seed, total, s.seed)
	for n := 1; total > 0 && ctx.Err() == nil && !t.Failed(); n++ {
		length := min(longestRound, total)
		s.runRound(ctx, n, length, s.runFaults)
		total -= length
	}
	s.finishSoak()
}

// runRound injects faults for a while, then waits without faults, and then audits
// everything. The function that injects them ends the round when it returns.
func (s *soakPool) runRound(ctx context.Context, n int, length time.Duration,
	inject func(context.Context, *rand.Rand)) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	s.jobs, s.absences, s.lastSeen = nil, nil, map[heartbeatSpan]time.Time{}
	watching, stopWatching := context.WithCancel(s.Context())
	var working, breaking, looking sync.WaitGroup
	looking.Go(func() { s.recordProcesses(watching) })
	for i, u := range s.users {
		rng := rand.New(rand.NewPCG(s.seed, uint64(1000*n+i)))
		working.Go(func() { s.runUser(ctx, u, n, rng) })
	}
	breaking.Go(func() { inject(ctx, rand.New(rand.NewPCG(s.seed, uint64(n)))) })
	breaking.Wait()
	cancel()
	calm := time.Now()
	s.logLine("round %d: the last fault is over", n)
	working.Wait() // all users have their answers
	s.awaitRoundEnd(max(0, time.Since(calm)), calm)
	recovered := time.Since(calm)
	stopWatching()
	looking.Wait()
	if s.Failed() {
		return
	}
	s.awaitThreeVoters()
	s.awaitAgreement()
	s.auditRound(calm)
	s.slowestCompletion = max(s.slowestCompletion, recovered)
	s.totals.rounds++
	s.faultTime += calm.Sub(began)
	s.printLine("minute %.1f: %d faults, %d tasks in %d jobs done, all within %.1f s of the last fault, %s; load %.1f",
		s.faultTime.Minutes(), s.faultCount(), s.totals.tasks, s.totals.jobs, recovered.Seconds(),
		map[bool]string{true: "NOT CLEAN", false: "clean"}[s.Failed()], loadAverage())
}

// scaledTimeout is how long something may take that takes at most a minute on an idle
// machine (P9). It grows with the load of this machine, up to three times.
func scaledTimeout() time.Duration {
	return time.Duration(float64(time.Minute) * min(max(1, loadAverage()/float64(2*runtime.NumCPU())), 3))
}

// awaitRoundEnd waits until every job of the round has ended without help (P9).
func (s *soakPool) awaitRoundEnd(after time.Duration, calm time.Time) {
	late := calm.Add(after + scaledTimeout())
	for {
		s.pollJobs()
		var open []*soakJob
		for _, w := range s.jobs {
			if !w.isFinal {
				open = append(open, w)
			}
		}
		if len(open) == 0 {
			return
		}
		if time.Now().After(late) {
			for _, w := range open[:min(len(open), 5)] {
				s.Errorf("P9: %v after the last fault %s (%s) has not ended: %s\n%s",
					time.Since(calm).Round(time.Second), w.id, w.key, w.state,
					jobLogText(s.jobEvents(s.clients[w.submitNode], w.id)))
			}
			for _, w := range open {
				s.totals.lostTasks += w.count
			}
			s.Errorf("P9: %d jobs have not ended", len(open))
			return
		}
		waitReal(s.Context(), 250*time.Millisecond)
	}
}

// faultCount returns the number of faults.
func (s *soakPool) faultCount() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.faults {
		n += k
	}
	return n
}

// printLine prints a line at once.
func (s *soakPool) printLine(format string, args ...any) {
	fmt.Fprintf(s.Output(), format+"\n", args...)
	s.logLine(format, args...)
}

// logLine writes a line into the fault log.
func (s *soakPool) logLine(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.faultLog, "%s %9.3fs "+format+"\n",
		append([]any{clockText(time.Now()), time.Since(s.began).Seconds()}, args...)...)
}

// finishSoak stops the pool, checks that no process is left (P10), and prints what
// happened.
func (s *soakPool) finishSoak() {
	if s.Failed() {
		return
	}
	names := slices.Sorted(maps.Keys(s.nodes))
	for _, name := range names {
		s.nodes[name].stopMaster()
	}
	for _, name := range names {
		for _, pid := range namespaceProcesses(s.net.namespaceName(name)) {
			args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			s.Errorf("P10: on %s process %d is left: %q", name, pid, args)
		}
		for line := range strings.Lines(s.nodes[name].logText()) {
			if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") ||
				strings.Contains(line, "some goroutines have not ended") {
				s.Errorf("%s: %s", name, line)
			}
		}
	}
}

// printTable prints what happened.
func (s *soakPool) printTable() {
	total, hours := s.faultCount(), s.faultTime.Hours()
	var b strings.Builder
	fmt.Fprintf(&b, "\n%-44s %8s\n", "faults", "times")
	for _, kind := range slices.Sorted(maps.Keys(s.faults)) {
		fmt.Fprintf(&b, "  %-42s %8d\n", kind, s.faults[kind])
	}
	fmt.Fprintf(&b, "  %-42s %8d   (%.0f an hour; %d more met a host that another had its hands on)\n", "all", total,
		float64(total)/max(hours, 1e-9), s.skipped)
	fmt.Fprintf(&b, "  %-42s %8d   of %d\n\n", "frames lost", s.newSwitch().lost.Load(),
		s.newSwitch().carried.Load()+s.newSwitch().lost.Load())
	for _, row := range []struct {
		what string
		n    int
	}{
		{"rounds", s.totals.rounds}, {"jobs", s.totals.jobs}, {"tasks done", s.totals.tasks - s.totals.removed},
		{"tasks removed", s.totals.removed},
		{"attempts", s.totals.attempts}, {"attempts that were lost, and made again", s.totals.restarted},
		{"tasks that went on from an image", s.totals.restored},
		{"jobs held and released", s.totals.held}, {"submits asked for again with the same key", s.totals.askedAgain},
		{"tasks lost", s.totals.lostTasks}, {"tasks done twice", s.totals.duplicateTasks},
		{"other promises broken", s.totals.otherErrors},
	} {
		fmt.Fprintf(&b, "%-44s %8d\n", row.what, row.n)
	}
	fmt.Fprintf(&b, "%-44s %7.1fs\n", "slowest recovery after the last fault", s.slowestCompletion.Seconds())
	fmt.Fprint(&b, "clocks on the wall were not set: all hosts share the machine's\n")
	fmt.Fprint(s.Output(), b.String())
}

// saveEvidence saves the data of a failed soak where it outlives the test.
func (s *soakPool) saveEvidence() {
	if !s.Failed() {
		return
	}
	to := fmt.Sprintf("/var/tmp/roost-soak-%d", s.seed)
	if err := os.MkdirAll(to, 0o700); err != nil {
		s.Error(err)
		return
	}
	all, _ := filepath.Glob(filepath.Join(s.dir, "*", "log"))
	for _, path := range all {
		exec.Command("cp", "-r", path, filepath.Join(to, filepath.Base(filepath.Dir(path)))).Run()
	}
	more, _ := filepath.Glob(filepath.Join(s.dir, "ledger-*"))
	exec.Command("cp", append(append([]string{"-t", to}, more...), s.faultLog.Name())...).Run()
	s.printLine("what the daemons, the tasks and the faults have said is in %s", to)
}
