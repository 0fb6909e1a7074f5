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

// killRounds bounds how often Sweep looks again: a process that forks faster than it is
// killed is out of anybody's hands without a cgroup.
const killRounds = 200

// Sweep kills every process of a claim, until none is left, and says how many it killed.
// It finds what a task had forked when its starter was killed. A process that may not be
// looked into is not ours and is left alone.
//
// A process in a sandbox is known by the directory that it sees as /dev/roost: it is the
// claim's if that is box. Any other is known by ROOST_CLAIM=cookie in its environment.
// That alone would not do: what was restored from a checkpoint bears the mark of the
// claim that it was saved on, and may run on the same machine, on another claim, when the
// old one is swept.
func Sweep(cookie, sandbox string) (killed int, err error) {
	if cookie == "" {
		return 0, fmt.Errorf("sweep: %w: no cookie", roost.Invalid)
	}
	mark := processMark{[]byte(CookieEnvVar + "=" + cookie), mountPathOf(sandbox)}
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
	return killed, fmt.Errorf("sweep: %w: processes of claim %s are still there after %d rounds", roost.Unavailable,
		cookie, killRounds)
}

// processMark is what the processes of a claim are known by.
type processMark struct {
	variable   []byte
	sandboxDir string // where the directory of its sandboxes is; empty: it has none
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

// isMarked reports whether a process is the claim's.
func (s processMark) isMarked(pid int) bool {
	if sandbox := sandboxRootOf(pid); sandbox != "" && s.sandboxDir != "" {
		return sandbox == s.sandboxDir
	}
	return hasCookie(pid, s.variable)
}

// sandboxRootOf says where the directory is that a process sees as /dev/roost, empty for
// one in no sandbox.
func sandboxRootOf(pid int) (at string) {
	forEachMount(strconv.Itoa(pid), func(device, root, point string) {
		if point == proto.SandboxIODir {
			at = device + root
		}
	})
	return at
}

// mountPathOf says where a directory is, in the way of sandboxRootOf: on which device,
// and by which path there.
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

// forEachMount tells of every mount that a process sees the device, what of it is
// mounted, and where (proc(5), mountinfo).
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

// killProcess sends SIGKILL through a descriptor of the process, so that a number that
// was given to another one meanwhile does no harm, and waits a moment for its end.
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
