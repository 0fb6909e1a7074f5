package criu

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/internal/userfiles"
)

// restoredPath is an open file, a mapped file or the working directory of a restored
// process.
type restoredPath struct {
	pid      int
	procPath string // path in /proc by which root finds the object
	path     string // path as the process sees it
	modes    uint32 // the access that the process has: R_OK, W_OK, X_OK
	anyMode  bool   // one of the modes suffices
}

// checkAccess checks, before restored processes run, that their user could have opened
// all files that they have open. CRIU opens files by their paths and with root's rights,
// and since the checkpoint the user may have replaced them by links to other users'
// files. Checking the paths before the restore would not suffice, because they can be
// exchanged afterwards; now the files are open and cannot change. The first process of
// the sandbox is root's own and is not checked.
func checkAccess(pids []int, user userfiles.UserCredential, own string) error {
	if user.UID == 0 {
		return nil
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread with the user's rights ends with the goroutine
		done <- checkAccessAs(pids, user, own)
	}()
	return <-done
}

func checkAccessAs(pids []int, user userfiles.UserCredential, own string) error {
	var all []restoredPath
	for _, pid := range pids[min(1, len(pids)):] {
		all = append(all, heldPaths(pid)...)
	}
	// What needs root's rights comes first: the objects, and the roots at which their
	// paths begin.
	type thing struct {
		restoredPath
		fd, root int
		st       unix.Stat_t
	}
	var things []thing
	defer func() {
		for _, t := range things {
			unix.Close(t.fd)
			unix.Close(t.root)
		}
	}()
	seen := map[string]bool{}
	for _, h := range all {
		t := thing{restoredPath: h}
		if unix.Stat(h.procPath, &t.st) != nil {
			return fmt.Errorf("%s: it is unknown which processes may have it open", h.path)
		}
		key := fmt.Sprint(t.st.Dev, t.st.Ino, h.modes, h.anyMode, h.path)
		if t.st.Nlink == 0 || t.st.Uid == user.UID || seen[key] || h.path == own || procRoot(h.procPath, &t.st) {
			continue
		}
		seen[key] = true
		var err error
		if t.fd, err = unix.Open(h.procPath, unix.O_PATH|unix.O_CLOEXEC, 0); err != nil {
			return fmt.Errorf("%s: %w", h.path, err)
		}
		if t.root, err = unix.Open(procPath(h.pid, "root"), unix.O_PATH|unix.O_CLOEXEC, 0); err != nil {
			unix.Close(t.fd)
			return fmt.Errorf("%s: %w", h.path, err)
		}
		things = append(things, t)
	}
	if err := assumeUser(user); err != nil {
		return err
	}
	for _, t := range things {
		if !resolvesTo(t.root, t.path, &t.st) || !mayOpen(t.fd, t.modes, t.anyMode) {
			return fmt.Errorf("its open file %s is not there any more, or belongs to somebody else", t.path)
		}
	}
	return nil
}

// procRoot reports whether an object is the root of a /proc. CRIU has it open until the
// processes run, and every user may open it.
func procRoot(at string, st *unix.Stat_t) bool {
	var fs unix.Statfs_t
	return st.Ino == 1 && st.Mode&unix.S_IFMT == unix.S_IFDIR && unix.Statfs(at, &fs) == nil &&
		fs.Type == unix.PROC_SUPER_MAGIC
}

// resolvesTo reports whether this thread finds exactly that file under a path.
func resolvesTo(root int, path string, want *unix.Stat_t) bool {
	fd, err := unix.Openat2(root, path,
		&unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS})
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && st.Dev == want.Dev && st.Ino == want.Ino
}

// mayOpen reports whether this thread may open a file with some modes.
func mayOpen(fd int, modes uint32, weak bool) bool {
	may := func(mode uint32) bool {
		return unix.Faccessat2(fd, "", mode, unix.AT_EMPTY_PATH|unix.AT_EACCESS) == nil
	}
	if !weak {
		return may(modes)
	}
	return may(unix.R_OK) || may(unix.X_OK)
}

// heldPaths lists the objects of a process that have a path.
func heldPaths(pid int) (list []restoredPath) {
	add := func(at string, modes uint32, weak bool) {
		if to, err := os.Readlink(at); err == nil && strings.HasPrefix(to, "/") {
			list = append(list, restoredPath{pid, at, to, modes, weak})
		}
	}
	for _, fd := range numericEntries(procPath(pid, "fd")) {
		add(procPath(pid, "fd/"+strconv.Itoa(fd)), openModes(pid, fd), false)
	}
	text, _ := os.ReadFile(procPath(pid, "maps"))
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 5 && strings.HasPrefix(fields[5], "/") {
			shared := strings.HasPrefix(fields[1], "rw") && strings.HasSuffix(fields[1], "s")
			if at := procPath(pid, "map_files/"+fields[0]); shared {
				add(at, unix.R_OK|unix.W_OK, false)
			} else {
				add(at, 0, true)
			}
		}
	}
	add(procPath(pid, "cwd"), unix.X_OK, false)
	return list
}

// openModes returns the modes with which a descriptor was opened.
func openModes(pid, fd int) uint32 {
	flags, err := strconv.ParseUint(statusFields(procPath(pid, "fdinfo/"+strconv.Itoa(fd)))["flags"], 8, 32)
	switch {
	case err != nil:
		return unix.R_OK | unix.W_OK
	case flags&unix.O_PATH != 0:
		return 0
	}
	return [...]uint32{unix.R_OK, unix.W_OK, unix.R_OK | unix.W_OK, unix.R_OK | unix.W_OK}[flags&unix.O_ACCMODE]
}

// killAll kills processes and waits until the first is dead. None of them may run again.
func killAll(pids []int) {
	for _, pid := range pids {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if state := statusFields(procPath(pids[0], "status"))["State"]; state == "" || state[0] == 'Z' ||
			state[0] == 'X' {
			return
		}
	}
}
