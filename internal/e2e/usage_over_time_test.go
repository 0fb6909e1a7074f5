package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/startd/meter"
)

// taskUsage is what roost usage --task and the API say.
type taskUsage struct {
	State   string
	Missing string
	Windows []struct {
		Begin   time.Time
		Attempt int
		CPUs    float64
		CPUsMax float64 `json:"cpus_max"`
		Memory  int64   `json:"memory_bytes"`
	}
}

// TestUsageOverTime runs a task over several windows, which a build for tests makes
// short. Its usage can be read while it runs, also after the schedd was killed, and from
// the accounts when it has ended. A task that is shorter than a window has no windows.
func TestUsageOverTime(t *testing.T) {
	t.Parallel()
	roost := program(t, "faults")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	s := &accountedPool{T: t, ctx: ctx}
	s.start(PoolOptions{Roost: roost, Dir: t.TempDir(), Nodes: 1, CPUs: 2,
		Env: []string{meter.WindowVariable + "=5s"}})
	id := s.submitCommand("sh", "-c", `i=0; while [ ! -e "$0" ]; do i=$((i+1)); done`, s.pool.Dir+"/stop")
	short := s.submitCommand("sleep", "1")
	before := s.awaitUsage(id, "windows of the task", func(u *taskUsage) bool { return len(u.Windows) >= 2 })
	s.kill("schedd")
	after := s.awaitUsage(id, "a window after the schedd was killed", func(u *taskUsage) bool {
		n := len(u.Windows)
		return n > 0 && u.Windows[n-1].Begin.After(before.Windows[len(before.Windows)-1].Begin)
	})
	if got, want := after.Windows[0], before.Windows[0]; got != want { // its node sends them again
		t.Errorf("after the schedd was killed the first window is %+v, and was %+v", got, want)
	}
	busiest := 0.0
	for _, w := range after.Windows {
		if busiest = max(busiest, w.CPUs); w.CPUs > 1.5 || w.CPUsMax < w.CPUs-0.001 || w.Attempt != 1 {
			t.Errorf("a window is %+v", w)
		}
	}
	if busiest < 0.02 {
		t.Errorf("a task that always computes has %+v", after.Windows)
	}
	if _, errs, code := s.pool.Command(ctx, "run", "--", "touch", s.pool.Dir+"/stop"); code != 0 {
		t.Fatalf("stop the task: %s", errs)
	}
	ended := s.awaitUsage(id, "windows in the accounts", func(u *taskUsage) bool {
		return u.State == "completed" && len(u.Windows) > 0
	})
	for _, w := range ended.Windows {
		if w.Begin.Unix()%300 != 0 || w.CPUs <= 0 || w.Memory <= 0 {
			t.Errorf("the accounts have %+v", w)
		}
	}
	if u := s.awaitUsage(short, "the end of the short task", func(u *taskUsage) bool {
		return u.State == "completed" && u.Missing == ""
	}); len(u.Windows) != 0 {
		t.Errorf("a short task has %+v", u.Windows)
	}
	if err := s.pool.Stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// submitCommand submits a job of one command and returns its id.
func (s *accountedPool) submitCommand(command ...string) string {
	s.Helper()
	argv, err := json.Marshal(command)
	if err != nil {
		s.Fatal(err)
	}
	file := filepath.Join(s.T.TempDir(), "job.hcl")
	text := fmt.Sprintf("job \"a\" {\n  command = %s\n  memory = \"64MiB\"\n}\n", argv)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
	out, errs, code := s.pool.Command(s.ctx, "submit", "--json", file)
	var answer struct{ Jobs []struct{ ID string } }
	if err := json.Unmarshal([]byte(out), &answer); code != 0 || err != nil || len(answer.Jobs) != 1 {
		s.Fatalf("submit: %d %v: %s %s", code, err, out, errs)
	}
	return answer.Jobs[0].ID
}

// awaitUsage asks until a task's usage is as wanted.
func (s *accountedPool) awaitUsage(id, what string, is func(*taskUsage) bool) (u taskUsage) {
	s.Helper()
	text := ""
	if !pollUntil(s.ctx, awaitTimeout, func() bool {
		out, errs, code := s.pool.Command(s.ctx, "usage", "--task", id, "--json")
		text, u = strings.TrimSpace(out+errs), taskUsage{}
		return code == 0 && json.Unmarshal([]byte(out), &u) == nil && is(&u)
	}) {
		s.Fatalf("%s: got %s", what, text)
	}
	return u
}
