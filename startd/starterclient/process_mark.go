package starterclient

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/startd/starter/proto"
)

// CookieEnvVar is the environment variable that marks the processes of a claim.
const CookieEnvVar = "ROOST_CLAIM"

// killRounds bounds how often Sweep scans again. Without a cgroup nothing can kill a
// process that forks faster than it is killed.
const killRounds = 200

// Sweep kills every process of a claim until none is left, and returns how many it
// killed. It finds what a task had forked when its starter was killed. It ignores a
// process that it may not inspect, as that is not ours.
//
// It identifies a process in a sandbox by its directory /dev/roost: the process belongs
// to the claim if that is sandbox. It identifies any other by ROOST_CLAIM=cookie in its
// environment. The cookie alone would not suffice: a restored task bears the mark of the
// claim on which it was saved, and may run in another claim on the same machine when the
// old claim is swept.
func Sweep(cookie, sandbox string) (killed int, err error) {
	if cookie == "" {
		return 0, fmt.Errorf("sweep: %w: no cookie", roost.Invalid)
	}
	return sweepMarked(processMark{[]byte(CookieEnvVar + "=" + cookie), mountPathOf(sandbox)})
}

// SweepVariable kills every process with a variable in its environment until none is
// left, and returns how many it killed. The variable is a secret of the caller, as
// NAME=value. A process that hides its environment is not found.
func SweepVariable(variable string) (killed int, err error) {
	return sweepMarked(processMark{variable: []byte(variable)})
}

func sweepMarked(mark processMark) (killed int, err error) {
	for range killRounds {
		pids, err := markedCmd(mark)
		if err != nil {
			return killed, fmt.Errorf("sweep: %w", err)
		}
		if len(pids) == 0 {
			return killed, nil
		}
		for _, pid := range pids {
			if killProcess(pid, mark) {
				killed++
			}
		}
	}
	return killed, fmt.Errorf("sweep: %w: processes with %s are still there after %d rounds", roost.Unavailable,
		mark.variable, killRounds)
}

// processMark identifies the processes of a claim.
type processMark struct {
	variable   []byte
	sandboxDir string // location of the directory of its sandboxes; empty: none
}

// markedCmd lists the living processes with the mark. Zombies have no environment.
func markedCmd(mark processMark) ([]int, error) {
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
		if err == nil && pid != os.Getpid() && mark.isMarked(pid) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// isMarked reports whether a process belongs to the claim.
func (s processMark) isMarked(pid int) bool {
	if sandbox := sandboxRootOf(pid); sandbox != "" && s.sandboxDir != "" {
		return sandbox == s.sandboxDir
	}
	return hasCookie(pid, s.variable)
}

// sandboxRootOf returns the location of the directory that a process sees as /dev/roost.
// It is empty for a process outside a sandbox.
func sandboxRootOf(pid int) (at string) {
	forEachMount(strconv.Itoa(pid), func(device, root, point string) {
		if point == proto.SandboxIODir {
			at = device + root
		}
	})
	return at
}

// mountPathOf returns the location of a directory in the form of sandboxRootOf: the
// device and the path on it.
func mountPathOf(dir string) (at string) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return ""
	}
	longest := 0
	forEachMount("self", func(device, root, point string) {
		rest, ok := strings.CutPrefix(dir, strings.TrimSuffix(point, "/"))
		if ok && (rest == "" || rest[0] == '/') && len(point) >= longest {
			longest, at = len(point), device+filepath.Join(root, rest)
		}
	})
	return at
}

// forEachMount calls tell with every mount that a process sees. The arguments are the
// mount's device, its root on the device and its mount point (proc(5), mountinfo).
func forEachMount(pid string, tell func(device, root, point string)) {
	text, err := os.ReadFile("/proc/" + pid + "/mountinfo")
	if err != nil {
		return
	}
	undo := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 4 {
			tell(fields[2], undo.Replace(fields[3]), undo.Replace(fields[4]))
		}
	}
}

func hasCookie(pid int, mark []byte) bool {
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

// killProcess sends SIGKILL through a pidfd and waits a moment for the process's end. A
// process with a reused pid is not hit.
func killProcess(pid int, mark processMark) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	if !mark.isMarked(pid) || unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) != nil {
		return false
	}
	unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 100)
	return true
}
