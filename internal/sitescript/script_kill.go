package sitescript

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
)

// markVariable is in the environment of a script and of what it starts. Its value is
// another one for each run.
const markVariable = "ROOST_SCRIPT"

// killRounds bounds how often killAllMarked looks for processes. Each round kills all
// that the one before has not seen yet.
const killRounds = 100

// emptyRounds is how many rounds in a row must find nothing. The kernel lists processes
// one by one, so that one round can miss a child whose parent ends meanwhile.
const emptyRounds = 3

// killScript kills the leader of a session and all that it has started. That is what is
// in its session, in whatever process group, and what has left it and has the mark in its
// environment. The leader is stopped first and killed last, so that no other session has
// its number meanwhile. What has left the session and has a new environment, as a
// service that the system started for it, lives on.
func killScript(leader int, mark string) error {
	if err := syscall.Kill(leader, syscall.SIGSTOP); err != nil {
		return err
	}
	err := killAllMarked(leader, mark)
	return errors.Join(err, syscall.Kill(leader, syscall.SIGKILL))
}

// killAllMarked kills the processes of a script beside its leader until none is left. The
// leader must not have been reaped; 0 stands for no session.
func killAllMarked(leader int, mark string) error {
	empty := 0 // rounds in a row
	for range killRounds {
		if killMarked(leader, mark) {
			empty = 0
		} else if empty++; empty == emptyRounds {
			return nil
		}
	}
	return fmt.Errorf("processes that the script has started: %w: they are still there after %d rounds of SIGKILL",
		roost.Unavailable, killRounds)
}

// killMarked kills the processes of a script beside its leader, and reports whether it
// found any.
func killMarked(leader int, mark string) (found bool) {
	proc, err := os.Open("/proc")
	if err != nil {
		return false
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == leader || pid == os.Getpid() || !isOfScript(pid, leader, mark) {
			continue
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		if isOfScript(pid, leader, mark) && unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) == nil {
			found = true
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 100) // milliseconds, for its end
		}
		unix.Close(fd)
	}
	return found
}

// isOfScript reports whether a living process is in a session or has a mark. That is the
// beginning of a variable in its environment. Session 0, the kernel's, is none.
func isOfScript(pid, session int, mark string) bool {
	dir := "/proc/" + strconv.Itoa(pid)
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return false
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // state, parent, group, session: proc_pid_stat(5)
	if len(fields) < 4 || fields[0][0] == 'Z' || fields[0][0] == 'X' {
		return false
	}
	if session != 0 && string(fields[3]) == strconv.Itoa(session) {
		return true
	}
	environment, err := os.ReadFile(dir + "/environ")
	return err == nil && (bytes.HasPrefix(environment, []byte(mark)) ||
		bytes.Contains(environment, []byte("\x00"+mark)))
}
