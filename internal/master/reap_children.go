package master

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// exitStatus is the exit status of a reaped child.
type exitStatus struct {
	pid    int
	status unix.WaitStatus
}

// describe describes how a process ended.
func (e exitStatus) describe() string {
	if e.status.Signaled() {
		return "killed by " + unix.SignalName(e.status.Signal())
	}
	return "exit status " + strconv.Itoa(e.status.ExitStatus())
}

// reapChildren reaps every ended child, including inherited ones.
func reapChildren() []exitStatus {
	var all []exitStatus
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return all
		}
		all = append(all, exitStatus{pid, status})
	}
}

// killDescendants kills all descendants of this process. As a subreaper it inherits the
// children of those it kills, so it repeats until there are none. Only this process reaps
// them, so their pids cannot be reused meanwhile.
func killDescendants(bound time.Duration) (killed int) {
	deadline := time.Now().Add(bound)
	seen := map[int]bool{}
	for time.Now().Before(deadline) {
		reapChildren()
		pids := childPIDs(os.Getpid())
		if len(pids) == 0 {
			break
		}
		for _, pid := range pids {
			unix.Kill(pid, unix.SIGKILL)
			seen[pid] = true
		}
		time.Sleep(2 * time.Millisecond)
	}
	return len(seen)
}

// childPIDs lists the processes whose parent is pid (proc(5), /proc/PID/stat field 4).
func childPIDs(pid int) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var found []int
	for _, e := range entries {
		child, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		// The name in field 2 may contain anything, even ")": count from the last one.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			found = append(found, child)
		}
	}
	return found
}
