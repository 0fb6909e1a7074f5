package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/roost-batch/roost/checkpoint/criu"
)

// images lists the checkpoints of a task in the schedd's spool, the oldest first.
func (s *checkpointPool) images(task *checkpointedTask) []string {
	seq, _, _ := strings.Cut(task.id, ".")
	all, _ := filepath.Glob(filepath.Join(s.dir, "submit", "schedd", "checkpoints", seq, "0.*"))
	slices.Sort(all) // few: the numbers have one digit
	return all
}

// TestSpoiledImages edits a checkpoint in the schedd's spool, and replaces one by another
// task's. Both are refused, the tasks' logs say so, and the tasks resume from earlier
// checkpoints.
func TestSpoiledImages(t *testing.T) {
	t.Parallel()
	if _, err := criu.Find(""); err != nil {
		t.Skipf("SKIPPED: no checkpoint is taken, and nothing is restored: %v", err)
	}
	s := &checkpointPool{hostPool: startHostsAs(t, hostPoolOptions{sharesCgroups: true, root: true})}
	t.Cleanup(s.endAll)
	command := s.writeCheckpointPrograms()["shell"]
	s.submitTask("edited", command, someone, s.home)
	s.submitTask("exchanged", command, someone, s.home)
	for range 2 {
		for _, task := range s.tasks {
			s.awaitRunning(task)
		}
		s.takeCheckpoints(s.tasks)
	}
	edited, exchanged := s.images(s.tasks[0]), s.images(s.tasks[1])
	if len(edited) != 2 || len(exchanged) != 2 {
		t.Fatalf("images: %q, %q", edited, exchanged)
	}
	text, err := os.ReadFile(edited[1])
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)/2] ^= 1
	if err := os.WriteFile(edited[1], text, 0o600); err != nil {
		t.Fatal(err)
	}
	older, err := os.ReadFile(exchanged[0])
	if err == nil {
		err = os.WriteFile(exchanged[1], older, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range []string{"exec1", "exec2"} {
		for _, pid := range s.starters(node) {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	for _, task := range s.tasks {
		s.awaitFor(3*awaitTimeout, task.name+" goes on from the checkpoint before", func() bool {
			return s.showTask(task.id).State == "running" &&
				strings.Contains(s.mustAsOwner(task, "show", task.id), "from checkpoint 1 of attempt 1")
		})
		s.awaitRunning(task)
		shown := s.mustAsOwner(task, "show", "--events", "0", task.id)
		if !strings.Contains(shown, "unrestored") && !strings.Contains(shown, "checkpoint-bad") {
			t.Errorf("%s: nothing is said of the image that was refused\n%s", task.name, shown)
		}
		t.Log(shown)
		task.gate.openGate()
		s.awaitTrue(task.name+" ends", func() bool { return s.showTask(task.id).State == "completed" })
		grown, _ := os.ReadFile(filepath.Join(task.home, "grown-"+task.name))
		if why := outputErrors(s.mustAsOwner(task, "logs", task.id), string(grown)); why != "" {
			t.Errorf("%s: %s", task.name, why)
		}
	}
}

// unsavable listens on Multipath TCP, as Go does by default, and prints lines.
const unsavable = `import socket, sys, os, time
s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
s.bind(("127.0.0.1", 0)); s.listen(5)
while not os.path.exists(sys.argv[1]):
    print("line", flush=True)
    time.sleep(0.03)
`

// TestUndumpable requests checkpoints of a program that cannot be dumped. It runs on
// unharmed, and its owner gets the reason without asking.
func TestUndumpable(t *testing.T) {
	t.Parallel()
	if _, err := criu.Find(""); err != nil {
		t.Skipf("SKIPPED: no checkpoint is taken, and nothing is restored: %v", err)
	}
	if fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 262); err != nil {
		t.Skipf("SKIPPED: this kernel has no Multipath TCP: %v", err)
	} else {
		syscall.Close(fd)
	}
	s := &checkpointPool{hostPool: startHostsAs(t, hostPoolOptions{sharesCgroups: true, root: true})}
	t.Cleanup(s.endAll)
	path := filepath.Join(s.dir, "unsavable.py")
	if err := os.WriteFile(path, []byte(unsavable), 0o644); err != nil {
		t.Fatal(err)
	}
	s.submitTask("unsavable", fmt.Sprintf("%q, %q", "/usr/bin/python3", path), someone, s.home)
	task := s.tasks[0]
	s.awaitRunning(task)
	s.awaitTrue("it is said that it cannot be dumped", func() bool {
		return strings.Contains(s.mustAsOwner(task, "show", task.id), "it has a Multipath TCP socket")
	})
	for range 3 {
		cmd := s.command(s.Context(), someone, "checkpoint", task.id)
		cmd.Dir = s.home
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "Multipath TCP") {
			t.Errorf("roost checkpoint: %v: %s", err, out)
		}
		s.awaitRunning(task)
	}
	if task.attempt != 1 {
		t.Errorf("it is in attempt %d", task.attempt)
	}
	task.gate.openGate()
	s.awaitTrue("it ends", func() bool { return s.showTask(task.id).State == "completed" })
}
