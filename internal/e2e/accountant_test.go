package e2e

import (
	"compress/gzip"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/failpoint"
	"github.com/roost-batch/roost/internal/wire"
)

// accountedPool is a pool with an accountant, and how many tasks it was given.
type accountedPool struct {
	*testing.T
	ctx   context.Context
	pool  *Pool
	jobs  int
	tasks int
}

// TestAccountantKilled kills schedd and accountant at each point of the feed while tasks
// flow. Each attempt is accounted once, and a store that is lost comes back from the
// history.
func TestAccountantKilled(t *testing.T) {
	t.Parallel()
	roost := program(t, "faults") // it may have to be built, which takes minutes
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	faults, dir := t.TempDir(), filepath.Join(t.TempDir(), "pool")
	s := &accountedPool{T: t, ctx: ctx}
	options := PoolOptions{Roost: roost, Dir: dir, Nodes: 1, CPUs: 8,
		Env: []string{"ROOST_FAULT_DIR=" + faults}}
	s.start(options)
	points := append(failpoint.FeedNames(), failpoint.AccountantAfterMarks, failpoint.AccountantAfterMonth,
		failpoint.AccountantAfterNumber, failpoint.AccountantBeforeRoll)
	for _, point := range points {
		rounds := 40
		if point == failpoint.FeedAfterTruncate { // only a checkpoint passes it, if there is one
			rounds = 4
		}
		if !s.passes(filepath.Join(faults, point), rounds) && point != failpoint.FeedAfterTruncate {
			t.Errorf("%s was never passed", point)
		}
	}
	for _, role := range []string{"schedd", "accountant", "schedd"} {
		s.kill(role)
		s.submit(10)
	}
	want := s.awaitAttempts(nil)
	if err := s.pool.Stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "accountant")); err != nil {
		t.Fatal(err)
	}
	s.start(options)
	s.checkExports(len(s.awaitAttempts(want)))
	if err := s.pool.Stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// passes arms a failpoint, and submits jobs in rounds until a daemon has been killed at
// it. It reports whether one was.
func (s *accountedPool) passes(armed string, rounds int) (passed bool) {
	s.Helper()
	if err := os.WriteFile(armed, nil, 0o600); err != nil {
		s.Fatal(err)
	}
	for n := 0; n < rounds && !passed; n++ {
		s.submit(10)
		passed = pollUntil(s.ctx, 250*time.Millisecond, func() bool {
			_, err := os.Stat(armed)
			return err != nil
		})
	}
	os.Remove(armed)
	return passed
}

// checkExports holds that each export has all attempts. XDMoD takes only those that ran.
func (s *accountedPool) checkExports(attempts int) {
	s.Helper()
	for format, least := range map[string]int{"csv": attempts, "jsonl": attempts, "swf": attempts, "xdmod": s.tasks} {
		out, errs, code := s.pool.Command(s.ctx, "sacct", "--export", format)
		lines := 0
		for line := range strings.Lines(out) {
			if !strings.HasPrefix(line, ";") { // a comment of SWF
				lines++
			}
		}
		if format == "csv" {
			lines-- // its heading
		}
		if code != 0 || lines < least || lines > attempts {
			s.Errorf("export %s: %d lines, want %d to %d; exit %d: %s", format, lines, least, attempts, code, errs)
		}
	}
	s.checkDayFiles()
	s.checkTrace()
}

// checkTrace holds that a Borg trace has an end of each task that succeeded, and the
// machine. It writes over no file.
func (s *accountedPool) checkTrace() {
	s.Helper()
	dir := s.TempDir()
	s.command(0, "sacct", "--export", "borg", "--to", dir)
	finished := 0
	for table, least := range map[string]int{"collection_events": 2 * s.jobs, "instance_events": 3 * s.tasks,
		"instance_usage": 0, "machine_events": 1, "machine_attributes": 1} {
		f, err := os.Open(filepath.Join(dir, table+".csv.gz"))
		if err != nil {
			s.Fatal(err)
		}
		defer f.Close()
		packed, err := gzip.NewReader(f)
		if err != nil {
			s.Fatal(err)
		}
		rows, err := csv.NewReader(packed).ReadAll()
		if err != nil || len(rows)-1 < least {
			s.Errorf("%s has %d rows and a head, want %d or more; %v", table, len(rows)-1, least, err)
		}
		for _, row := range rows {
			if table == "instance_events" && row[1] == "6" { // FINISH
				finished++
			}
		}
	}
	if finished != s.tasks {
		s.Errorf("the trace has %d tasks that finished, want %d", finished, s.tasks)
	}
	s.command(73, "sacct", "--export", "borg", "--to", dir)
}

// checkDayFiles holds that the log of PBS is files named by days. They have an end of
// each task that ran, and none of them is overwritten.
func (s *accountedPool) checkDayFiles() {
	s.Helper()
	dir := s.TempDir()
	if _, errs, code := s.pool.Command(s.ctx, "sacct", "--export", "pbs", "--to", dir); code != 0 {
		s.Fatalf("export pbs: exit %d: %s", code, errs)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		s.Fatalf("export pbs: %d files, %v", len(files), err)
	}
	ends := 0
	for _, file := range files {
		if _, err := time.Parse("20060102", filepath.Base(file)); err != nil {
			s.Errorf("export pbs: %v", err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			s.Fatal(err)
		}
		ends += strings.Count(string(text), ";E;")
	}
	if ends < s.tasks {
		s.Errorf("export pbs: %d ends of %d tasks", ends, s.tasks)
	}
	if _, errs, code := s.pool.Command(s.ctx, "sacct", "--export", "pbs", "--to", dir); code == 0 {
		s.Errorf("export pbs over files that are there: exit 0: %s", errs)
	}
}

func (s *accountedPool) start(options PoolOptions) {
	s.Helper()
	var err error
	if s.pool, err = Start(s.ctx, options); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(s.pool.Kill)
}

// submit submits a job, until a schedd answers that may be about to be restarted.
func (s *accountedPool) submit(tasks int) {
	s.Helper()
	s.jobs++
	spec := &wire.JobSpec{Ad: `[Cmd = "/bin/true"; Iwd = "/"; RequestMemory = 1]`, Count: uint32(tasks)}
	request := &wire.SubmitRequest{Key: fmt.Sprint("accounted ", s.jobs), Jobs: []*wire.JobSpec{spec}}
	for s.ctx.Err() == nil {
		if _, err := s.pool.Client.Submit(s.ctx, request); err == nil {
			s.tasks += tasks
			return
		}
		waitReal(s.ctx, 20*time.Millisecond)
	}
	s.Fatal("the job is never taken")
}

// kill kills a daemon, which its master starts again.
func (s *accountedPool) kill(role string) {
	s.Helper()
	state, err := s.pool.State()
	if err != nil {
		s.Fatal(err)
	}
	for _, d := range state.Daemons {
		if d.Role == role && d.PID > 0 {
			syscall.Kill(d.PID, syscall.SIGKILL)
		}
	}
}

// awaitAttempts waits until the accounts have an attempt of each task that succeeded, and
// none twice. It returns them, and compares them with those that are wanted.
func (s *accountedPool) awaitAttempts(want map[string]string) (got map[string]string) {
	s.Helper()
	lines, succeeded := 0, 0
	for s.ctx.Err() == nil {
		out, _, code := s.pool.Command(s.ctx, "sacct", "--export", "jsonl")
		got, lines, succeeded = map[string]string{}, 0, 0
		for line := range strings.Lines(out) {
			var a struct {
				Job            string
				Index, Attempt int
				Cause          string
				ExitCode       int `json:"exit_code"`
			}
			if err := json.Unmarshal([]byte(line), &a); err != nil {
				s.Fatalf("%q: %v", line, err)
			}
			lines++
			if a.Cause == "exit" && a.ExitCode == 0 {
				succeeded++
			}
			got[fmt.Sprint(a.Job, ".", a.Index, "/", a.Attempt)] = line
		}
		if code == 0 && succeeded >= s.tasks && (want == nil || maps.Equal(got, want)) {
			break // the machines' own events, which tell their class, come after those of the attempts
		}
		waitReal(s.ctx, 200*time.Millisecond)
	}
	if succeeded != s.tasks || len(got) != lines {
		s.Errorf("%d attempts are accounted, %d different ones; %d succeeded, want %d", lines, len(got), succeeded,
			s.tasks)
	}
	for key := range want {
		if got[key] != want[key] {
			s.Errorf("attempt %s is accounted as\n%s\nand was\n%s", key, got[key], want[key])
		}
	}
	return got
}
