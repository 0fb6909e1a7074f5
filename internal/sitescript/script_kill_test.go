package sitescript

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// writeScript writes a program that the daemon may run.
func writeScript(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(path, []byte("#!/bin/bash\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestKilledWhole has scripts go on beyond their time with children. These have left the
// process group and the session, and ignore signals. None is left when Run returns.
func TestKilledWhole(t *testing.T) {
	for name, text := range map[string]string{
		"same group":     "sleep 1000 & echo $! >>$PIDS; echo $$ >>$PIDS; wait",
		"own group":      "set -m; sleep 1000 & echo $! >>$PIDS; wait",
		"own session":    "setsid sh -c 'echo $$ >>$PIDS; trap \"\" TERM HUP; sleep 1000' & wait",
		"left by parent": "(setsid sh -c 'echo $$ >>$PIDS; sleep 1000' &) ; sleep 1000",
		"many": "for i in $(seq 20); do set -m; (echo $BASHPID >>$PIDS; sleep 1000) & done; " +
			"trap '' TERM INT HUP; while :; do sleep 1000; done",
		"forks on": "f() { echo $BASHPID >>$PIDS; sleep 0.01; f & }; f & sleep 1000",
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			pids := filepath.Join(t.TempDir(), "pids")
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			_, err := Run(ctx, Script{Path: writeScript(t, text), MaxOutput: 100,
				Environment: []string{"PATH=/usr/bin:/bin", "PIDS=" + pids}})
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("got %v", err)
			}
			written, err := os.ReadFile(pids)
			if err != nil || len(written) == 0 {
				t.Fatalf("nothing was started: %v", err)
			}
			for word := range strings.FieldsSeq(string(written)) {
				if pid, _ := strconv.Atoi(word); isAlive(pid) {
					t.Errorf("process %d is still there", pid)
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			}
		})
	}
}

// isAlive reports whether a process is there and no zombie.
func isAlive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ") && !strings.Contains(string(stat), ") X ")
}

// TestLeftBehind has what a script leaves behind as it ends live on. A prologue may start
// a service that its epilogue ends.
func TestLeftBehind(t *testing.T) {
	out, err := Run(t.Context(), Script{Path: writeScript(t, "sleep 1000 >/dev/null 2>&1 & echo $!"),
		MaxOutput: 100, Lingers: true, Environment: []string{"PATH=/usr/bin:/bin"}})
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(out.Text)))
	if err != nil || !isAlive(pid) {
		t.Fatalf("process %q is not there: %v", out.Text, err)
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
}
