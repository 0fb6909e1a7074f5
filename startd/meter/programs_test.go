package meter

import (
	"os"
	"os/exec"
	"testing"
)

// TestOwnPrograms holds that what runs a program of Roost's is told from what runs the
// task's.
func TestOwnPrograms(t *testing.T) {
	other := exec.CommandContext(t.Context(), "sleep", "100")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer other.Wait()
	defer other.Process.Kill()
	for _, tt := range []struct {
		name         string
		starter, pid int
		want         bool
	}{
		{"the startd's own", 0, os.Getpid(), true},
		{"the starter's", other.Process.Pid, other.Process.Pid, true},
		{"the task's", os.Getpid(), other.Process.Pid, false},
		{"one that is gone", os.Getpid(), 1 << 30, false},
	} {
		if got := runsProgram(tt.pid,
			(&attemptMeter{Attempt: Attempt{Starter: tt.starter}}).startupPrograms()); got != tt.want {
			t.Errorf("%s: got %v", tt.name, got)
		}
	}
}
