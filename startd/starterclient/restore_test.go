package starterclient_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/startd/starter/proto"
)

// runRestorer is a helper of a restoration, whose task ends before it does. It writes the
// number of a process that is a zombie.
func runRestorer(pidFile, script string) {
	task, err := os.StartProcess("/bin/sh", []string{"sh", "-c", script}, &os.ProcAttr{})
	if err == nil { // it is left unreaped
		err = unix.Waitid(unix.P_PID, task.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
	}
	if err == nil {
		err = os.WriteFile(pidFile, []byte(strconv.Itoa(task.Pid)), 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// TestRestoredTaskThatEnds: a task ends while it is being restored. That is its end, and
// no failure of the restoration, after which it would run again.
func TestRestoredTaskThatEnds(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		dir := t.TempDir()
		b := spawn(t, time.Minute)
		o := shellCmd(1, "it is not run")
		o.Restore = proto.RestoreSpec{Input: filepath.Join(dir, "in"), Output: filepath.Join(dir, "out"),
			PID: filepath.Join(dir, "pid")}
		o.Restore.Helper = []string{"/usr/bin/env", "ROOST_TEST_BE=restorer", self, o.Restore.PID, "exit 7"}
		if err := os.WriteFile(o.Restore.Input, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		b.begin(o)
		if exit := b.end(); exit.Code != 7 || exit.Cause != proto.Exited || exit.Step != proto.StepNone {
			t.Fatalf("got %+v, want code 7", exit)
		}
	}
}
