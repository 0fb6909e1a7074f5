package criu

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/cgroup"
)

// TestRepairKilledTask repairs a task whose first process was killed while an agent had
// it frozen in version 1. The task must not run any further.
func TestRepairKilledTask(t *testing.T) {
	dir := fmt.Sprintf("/sys/fs/cgroup/freezer/roost-criu-%d", os.Getpid())
	if os.Geteuid() != 0 || os.Mkdir(dir, 0o755) != nil {
		t.Skip("SKIPPED: only root can freeze in version 1, where there is one")
	}
	path := filepath.Join(t.TempDir(), "lines")
	c := exec.Command("/bin/sh", "-c",
		`read word; for i in 1 2 3 4 5 6 7 8; do while :; do echo line; done >>"$1" & done; wait`, "sh", path)
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	in, err := c.StdinPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	await := func(what string, is func() bool) {
		t.Helper()
		tick, late := time.NewTicker(2*time.Millisecond), time.After(30*time.Second)
		defer tick.Stop()
		for !is() {
			select {
			case <-tick.C:
			case <-late:
				t.Fatalf("%s: it does not come", what)
			}
		}
	}
	t.Cleanup(func() {
		c.Process.Kill()
		thawCgroup(dir)
		c.Wait()
		await("an empty group", func() bool { return os.Remove(dir) == nil })
	})
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(c.Process.Pid)), 0); err != nil {
		t.Fatal(err)
	}
	io.WriteString(in, "go\n")
	size := func() int64 {
		info, err := os.Stat(path)
		if err != nil {
			return 0
		}
		return info.Size()
	}
	group := cgroup.TaskDir(dir)
	await("nine that write", func() bool { return size() > 0 && len(group.Processes()) == 9 })
	if err := group.Freeze(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	before := size()
	c.Process.Kill()
	repairTask(&DumpSpec{Group: dir}, false)
	c.Wait()
	if after := size(); after != before {
		t.Errorf("%d bytes were written after the first process was killed", after-before)
	}
}
