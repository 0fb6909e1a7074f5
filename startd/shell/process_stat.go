package shell

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
)

// processStat is the content of /proc/PID/stat.
type processStat struct {
	pid, parent, session int
	state                byte
	// size of its initial environment in bytes; -1 during an exec, or if it has ended
	environment int
}

// readProcess reads the stat line of a process. The name in it may contain any character,
// so the fields are counted from the last parenthesis.
func readProcess(pid int) (processStat, error) {
	text, err := os.ReadFile(procFile(pid, "stat"))
	if err != nil {
		return processStat{}, err
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 4 {
		return processStat{}, fmt.Errorf("process %d: %w: its stat line is cut", pid, roost.Internal)
	}
	parent, _ := strconv.Atoi(string(fields[1]))
	session, _ := strconv.Atoi(string(fields[3]))
	p := processStat{pid, parent, session, fields[0][0], -1}
	if len(fields) > envEndField {
		first, _ := strconv.ParseUint(string(fields[envEndField-1]), 10, 64)
		end, _ := strconv.ParseUint(string(fields[envEndField]), 10, 64)
		if end > 0 {
			p.environment = int(end - first)
		}
	}
	return p, nil
}

// envEndField is the index of env_end after the name (proc(5)). It is 0 during an exec
// until the new program has its arguments.
const envEndField = 51 - 3

func procFile(pid int, name string) string { return filepath.Join("/proc", strconv.Itoa(pid), name) }

// processes lists the running processes by pid. It skips processes that end meanwhile.
func processes() ([]processStat, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var all []processStat
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if p, err := readProcess(pid); err == nil {
				all = append(all, p)
			}
		}
	}
	slices.SortFunc(all, func(a, b processStat) int { return a.pid - b.pid })
	return all, nil
}

// processStatus contains the needed fields of /proc/PID/status.
type processStatus struct {
	uid      uint32 // real
	umask    uint32
	bounding uint64 // the capability bounding set
}

func readStatus(pid int) (s processStatus, err error) {
	text, err := os.ReadFile(procFile(pid, "status"))
	if err != nil {
		return s, err
	}
	s.umask, s.bounding = 0o022, ^uint64(0)
	for line := range strings.SplitSeq(string(text), "\n") {
		name, value, _ := strings.Cut(line, ":")
		first, _, _ := strings.Cut(strings.TrimSpace(value), "\t")
		switch name {
		case "Uid":
			uid, err := strconv.ParseUint(first, 10, 32)
			if err != nil {
				return s, err
			}
			s.uid = uint32(uid)
		case "Umask":
			if mask, err := strconv.ParseUint(first, 8, 32); err == nil {
				s.umask = uint32(mask)
			}
		case "CapBnd":
			if set, err := strconv.ParseUint(first, 16, 64); err == nil {
				s.bounding = set
			}
		}
	}
	return s, nil
}

// killRounds bounds how often the members of a session are listed. A session that forks
// faster than it is killed ends with its task's cgroup.
const killRounds = 50

// killSession kills all processes of a session. Its number cannot be reused while its
// leader has not been waited for.
func killSession(sid int) {
	for range killRounds {
		all, err := processes()
		if err != nil {
			return
		}
		found := false
		for _, p := range all {
			if p.session == sid && p.state != 'Z' && p.state != 'X' {
				found = killProcess(p.pid, sid) || found
			}
		}
		if !found {
			return
		}
	}
}

// killProcess kills one process through a pidfd, if it still belongs to the session.
func killProcess(pid, sid int) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	if p, err := readProcess(pid); err != nil || p.session != sid {
		return false
	}
	if unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) != nil {
		return false
	}
	// milliseconds; the next scan finds it again if it is slower
	unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 100)
	return true
}
