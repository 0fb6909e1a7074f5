package meter

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/roost-batch/roost/startd/starter/proto"
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

// TestTaskProcesses checks that the process that creates sandboxes counts for no task,
// and that no user's process passes for it.
func TestTaskProcesses(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root has that process")
	}
	program, err := os.ReadFile("/bin/sleep")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "roost-meter-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	os.Chmod(dir, 0o755)
	for _, name := range []string{proto.SandboxServer, "other"} {
		if err := os.WriteFile(filepath.Join(dir, name), program, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		what, name string
		uid        uint32
		spaces     uintptr
		counts     bool
	}{
		{"the process itself", proto.SandboxServer, 0, 0, false},
		{"a user's", proto.SandboxServer, 65534, 0, true},
		{"the first of a sandbox", proto.SandboxServer, 0, syscall.CLONE_NEWPID, true},
		{"another one", "other", 0, 0, true},
	} {
		c := exec.Command(filepath.Join(dir, test.name), "100")
		c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: test.spaces,
			Credential: &syscall.Credential{Uid: test.uid, Gid: test.uid}}
		if err := c.Start(); err != nil {
			t.Skipf("SKIPPED: %s cannot be started: %v", test.what, err)
		}
		if got := slices.Contains(taskProcesses(os.Getpid()), c.Process.Pid); got != test.counts {
			t.Errorf("%s counts: %v, want %v", test.what, got, test.counts)
		}
		c.Process.Kill()
		c.Wait()
	}
}
