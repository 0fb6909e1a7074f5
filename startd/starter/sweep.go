package starter

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
)

// CookieVariable is the environment variable that marks the processes of a claim.
const CookieVariable = "ROOST_CLAIM"

// rounds bounds how often Sweep looks again: a process that forks faster than it is killed is out of anybody's hands without a cgroup.
const rounds = 200

// Sweep kills every process whose environment holds ROOST_CLAIM=cookie, until none is left, and says how many it killed. It finds what a
// task had forked when its starter was killed. A process that may not be looked into is not ours and is left alone.
func Sweep(cookie string) (killed int, err error) {
	if cookie == "" {
		return 0, fmt.Errorf("sweep: %w: no cookie", roost.Invalid)
	}
	mark := []byte(CookieVariable + "=" + cookie)
	for range rounds {
		pids, err := marked(mark)
		if err != nil {
			return killed, fmt.Errorf("sweep: %w", err)
		}
		if len(pids) == 0 {
			return killed, nil
		}
		for _, pid := range pids {
			if kill(pid, mark) {
				killed++
			}
		}
	}
	return killed, fmt.Errorf("sweep: %w: processes of claim %s are still there after %d rounds", roost.Unavailable, cookie, rounds)
}

// marked lists the living processes with the mark. Zombies have no environment.
func marked(mark []byte) ([]int, error) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer proc.Close()
	names, err := proc.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err == nil && pid != os.Getpid() && hasMark(pid, mark) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

func hasMark(pid int, mark []byte) bool {
	environ, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	for variable := range bytes.SplitSeq(environ, []byte{0}) {
		if bytes.Equal(variable, mark) {
			return true
		}
	}
	return false
}

// kill sends SIGKILL through a descriptor of the process, so that a number that was given to another one meanwhile does no harm, and
// waits a moment for its end.
func kill(pid int, mark []byte) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	if !hasMark(pid, mark) || unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) != nil {
		return false
	}
	unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 100)
	return true
}
