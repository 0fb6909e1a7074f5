package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/kernfs"
)

// freezeTimeout bounds how long Freeze and Thaw wait for the kernel. A process in an
// uninterruptible system call delays a freeze.
const freezeTimeout = 5 * time.Second

// Freeze freezes all processes of the task, and returns when they are frozen. Without a
// task directory, or after five seconds, the error is roost.Unavailable; in the latter
// case the kernel continues to freeze.
func (g *ClaimGroup) Freeze() error { return g.freeze(true, freezeTimeout) }

// Thaw thaws the task, unless FreezeForOwner has frozen it: then it resumes when that
// ends.
func (g *ClaimGroup) Thaw() error { return g.freeze(false, freezeTimeout) }

func (g *ClaimGroup) freeze(want bool, within time.Duration) error {
	if g.taskDir == "" {
		return fmt.Errorf("control group %s: %w: nothing can be frozen on this machine", g.path, roost.Unavailable)
	}
	end := time.Now().Add(within)
	for wait := 50 * time.Microsecond; ; wait = min(2*wait, 5*time.Millisecond) {
		// In version 1 the command must be repeated, for processes that were forked
		// during the freeze.
		if err := g.setFrozen(want); err != nil {
			return fmt.Errorf("control group %s: %w: %w", g.path, roost.Unavailable, err)
		}
		if g.frozen() == want || !want && g.isHeld() {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("control group %s: %w: it is not frozen=%v after %v", g.path, roost.Unavailable,
				want, within)
		}
		time.Sleep(wait)
	}
}

func (g *ClaimGroup) setFrozen(want bool) error { return g.setFrozenDir(g.taskDir, want) }

// setFrozenDir freezes or thaws a directory. A thawed one stays frozen while a directory
// above it is.
func (g *ClaimGroup) setFrozenDir(dir string, want bool) error {
	name, word := "cgroup.freeze", "0"
	switch {
	case g.isVersion1 && want:
		name, word = "freezer.state", "FROZEN"
	case g.isVersion1:
		killFrozenInits(dir)
		name, word = "freezer.state", "THAWED"
	case want:
		word = "1"
	}
	return kernfs.WriteFile(filepath.Join(dir, name), []byte(word))
}

// frozen reports whether all processes of the task are frozen.
func (g *ClaimGroup) frozen() bool { return g.isQuiesced(g.taskDir) }

// isQuiesced reports whether all processes in a directory and below it are frozen.
func (g *ClaimGroup) isQuiesced(dir string) bool {
	if g.isVersion1 {
		text, _ := kernfs.ReadFile(filepath.Join(dir, "freezer.state"))
		return strings.TrimSpace(string(text)) == "FROZEN"
	}
	n, _ := readNumber(filepath.Join(dir, "cgroup.events"), "frozen")
	return n == 1
}

// Kill kills all processes of the task at once, frozen or not, even if they fork
// meanwhile. When it returns they are dying, and their parents may not have been notified
// yet.
func (g *ClaimGroup) Kill() error {
	if g.taskDir == "" {
		return fmt.Errorf("control group %s: %w: there is no directory for tasks on this machine", g.path,
			roost.Unavailable)
	}
	if !g.isVersion1 {
		err := kernfs.WriteFile(filepath.Join(g.taskDir, "cgroup.kill"), []byte("1"))
		if err == nil || isGone(err) {
			return nil
		}
		if _, there := os.Stat(filepath.Join(g.taskDir, "cgroup.kill")); there == nil {
			return fmt.Errorf("control group %s: %w: %w", g.path, roost.Unavailable, err)
		}
	}
	return g.killFrozen() // before Linux 5.14, and in version 1
}

// killFrozen kills processes that cannot fork, because they are frozen.
func (g *ClaimGroup) killFrozen() error {
	if err := g.Freeze(); err != nil && !isGone(err) {
		killEach(g.taskDir)
	}
	killEach(g.taskDir)
	err := g.setFrozen(false)
	if g.isVersion1 { // in version 1 no frozen process dies; a killed one executes nothing else after the thaw
		err = errors.Join(err, g.FreezeForOwner(false))
	}
	if err != nil && !isGone(err) {
		return fmt.Errorf("control group %s: %w: %w", g.path, roost.Unavailable, err)
	}
	return nil
}

// killEach kills the processes of a directory and of those below it. It checks each again
// after opening its pidfd, so that the next process with the same pid is not killed.
func killEach(dir string) {
	fds := map[int]int{}
	for _, pid := range processes(dir) {
		if fd, err := unix.PidfdOpen(pid, 0); err == nil {
			fds[pid] = fd
		}
	}
	if len(fds) > 0 {
		for _, pid := range processes(dir) {
			if fd, ok := fds[pid]; ok {
				unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
			}
		}
	}
	for _, fd := range fds {
		unix.Close(fd)
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() {
			killEach(filepath.Join(dir, e.Name()))
		}
	}
}

// killFrozenInits kills all frozen processes in a directory of version 1 whose PID
// namespace has lost its first process. That happens when the starter of a task ends with
// its lease. In version 1 no frozen process dies, and after a thaw some would run for a
// moment before the kernel ends their namespace.
func killFrozenInits(dir string) {
	for _, pid := range TaskDir(dir).Processes() {
		if isFrozenInit(pid) {
			killEach(dir)
			return
		}
	}
}

// isFrozenInit reports whether a process is the first of its PID namespace and has been
// sent SIGKILL.
func isFrozenInit(pid int) bool {
	text, _ := kernfs.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	first, killed := false, false
	for line := range strings.Lines(string(text)) {
		switch fields := strings.Fields(line); {
		case len(fields) > 2 && fields[0] == "NSpid:":
			first = fields[len(fields)-1] == "1"
		case len(fields) == 2 && (fields[0] == "SigPnd:" || fields[0] == "ShdPnd:"):
			pending, _ := strconv.ParseUint(fields[1], 16, 64)
			killed = killed || pending>>(unix.SIGKILL-1)&1 == 1
		}
	}
	return first && killed
}

// isGone reports whether an error means that a group or a process no longer exists.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ESRCH)
}
