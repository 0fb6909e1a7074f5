package shell

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
)

// maxEnvironment bounds what is read of a task's environment, in bytes. execve(2) accepts
// no more.
const maxEnvironment = 6 << 20

// namespaceKind is a kind of namespace: its name below /proc/PID/ns, and nsenter's flag
// for it.
type namespaceKind struct{ name, flag string }

func namespaceKinds() []namespaceKind {
	return []namespaceKind{
		{"user", "--user"}, {"mnt", "--mount"}, {"pid", "--pid"}, {"ipc", "--ipc"}, {"uts", "--uts"}, {"net", "--net"},
		{"cgroup", "--cgroup"}, {"time", "--time"},
	}
}

// TaskHandle is an open handle to a running task. A shell joins that task even if its pid
// is reused.
type TaskHandle struct {
	firstProcess   int // pid of its first process, outside: the program, or PID 1 of its namespace
	pidfd          int
	namespaceFlags []string   // nsenter's flags, in the order of files
	files          []*os.File // namespaces that differ from ours
	root           *os.File   // nil if the mount namespace is ours
	cwd            *os.File   // nil if it is gone
	environment    []string
	umask          uint32
	bounding       uint64
	limits         []resourceLimit
	nice           int
}

// OpenTask opens the task with the first process pid, a child of parent, whose program
// runs as uid. If the process is gone, or its pid is reused, the error is roost.Finished.
// The caller must close the task.
func OpenTask(pid, parent int, uid uint32) (*TaskHandle, error) {
	t := &TaskHandle{firstProcess: pid, pidfd: -1}
	if err := t.openTask(parent, uid); err != nil {
		t.Close()
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	return t, nil
}

func (t *TaskHandle) openTask(parent int, uid uint32) (err error) {
	if t.pidfd, err = unix.PidfdOpen(t.firstProcess, 0); err != nil {
		return taskGoneError(err)
	}
	// The pid was the task's when it was reported. It still is if its parent is the same,
	// which is alive and has not reaped it.
	if p, err := readProcess(t.firstProcess); err != nil || p.parent != parent || p.state == 'Z' {
		return taskGoneError(err)
	}
	if err := t.openNamespaces(); err != nil {
		return taskGoneError(err)
	}
	program := t.firstProcess
	if slices.Contains(t.namespaceFlags, "--pid") {
		if program, err = t.userProgram(uid); err != nil {
			return err
		}
	}
	return t.readProgram(program, uid)
}

// taskGoneError returns the error for a failure to inspect a process: it has ended
// meanwhile.
func taskGoneError(err error) error {
	if err == nil {
		err = errors.New("it is another one's by now")
	}
	return fmt.Errorf("%w: %w", roost.Finished, err)
}

// openNamespaces opens the namespaces of the task that differ from ours.
func (t *TaskHandle) openNamespaces() error {
	for _, s := range namespaceKinds() {
		path := procFile(t.firstProcess, filepath.Join("ns", s.name))
		theirs, err := os.Readlink(path)
		if err != nil {
			return err
		}
		if ours, err := os.Readlink("/proc/self/ns/" + s.name); err != nil || ours == theirs {
			continue
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		t.namespaceFlags, t.files = append(t.namespaceFlags, s.flag), append(t.files, f)
		if s.name == "mnt" {
			if t.root, err = openDirectory(procFile(t.firstProcess, "root")); err != nil {
				return err
			}
		}
	}
	return nil
}

// openDirectory opens the target of a link in /proc, which is not a name that others
// could change. It does not need the right to read it, which root lacks on some network
// file systems.
func openDirectory(link string) (*os.File, error) {
	fd, err := unix.Open(link, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: link, Err: err}
	}
	return os.NewFile(uintptr(fd), link), nil
}

// userProgram finds the user's first process below PID 1 of the task's namespace.
func (t *TaskHandle) userProgram(uid uint32) (int, error) {
	all, err := processes()
	if err != nil {
		return 0, taskGoneError(err)
	}
	for _, p := range all {
		if p.parent != t.firstProcess || p.state == 'Z' {
			continue
		}
		if s, err := readStatus(p.pid); err == nil && s.uid == uid {
			return p.pid, nil
		}
	}
	return 0, fmt.Errorf("%w: its program has not started yet, or has ended", roost.Conflict)
}

// readProgram reads the attributes of the program that a shell must share with it.
func (t *TaskHandle) readProgram(program int, uid uint32) error {
	pidfd, err := unix.PidfdOpen(program, 0)
	if err != nil {
		return taskGoneError(err)
	}
	defer unix.Close(pidfd)
	s, err := readStatus(program)
	if err != nil {
		return taskGoneError(err)
	}
	if s.uid != uid {
		return fmt.Errorf("%w: it runs as uid %d, and the task is of uid %d", roost.PermissionDenied, s.uid, uid)
	}
	t.umask, t.bounding = s.umask, s.bounding
	if t.environment, err = readEnvironment(program); err != nil {
		return taskGoneError(err)
	}
	t.cwd, _ = openDirectory(procFile(program, "cwd"))
	if t.limits, err = readLimits(program); err != nil {
		return taskGoneError(err)
	}
	if kernels, err := unix.Getpriority(unix.PRIO_PROCESS, program); err == nil {
		t.nice = 20 - kernels // the kernel returns 20 - nice
	}
	if p, err := readProcess(program); err != nil || program != t.firstProcess && p.parent != t.firstProcess {
		return taskGoneError(err)
	}
	// Both processes were alive until now, so all that was opened and read is theirs.
	if err := errors.Join(unix.PidfdSendSignal(pidfd, 0, nil, 0),
		unix.PidfdSendSignal(t.pidfd, 0, nil, 0)); err != nil {
		return taskGoneError(err)
	}
	return nil
}

// readEnvironment reads the initial environment of a program. The program may have
// overwritten it: entries that are no variables are skipped, and all data is the user's
// own. During an exec there is no environment for a moment.
func readEnvironment(pid int) ([]string, error) {
	for late := time.Now().Add(time.Second); ; time.Sleep(time.Millisecond) {
		p, err := readProcess(pid)
		if err != nil {
			return nil, err
		}
		list, err := readVariables(pid)
		if err != nil || len(list) > 0 || p.environment == 0 || time.Now().After(late) {
			return list, err
		}
	}
}

func readVariables(pid int) ([]string, error) {
	f, err := os.Open(procFile(pid, "environ"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxEnvironment))
	if err != nil {
		return nil, err
	}
	return variables(text), nil
}

// variables splits an environment. Of duplicate names it keeps the first, as getenv(3)
// does.
func variables(text []byte) (list []string) {
	seen := make(map[string]bool)
	for v := range bytes.SplitSeq(text, []byte{0}) {
		name, _, ok := bytes.Cut(v, []byte("="))
		if ok && len(name) > 0 && !seen[string(name)] {
			seen[string(name)] = true
			list = append(list, string(v))
		}
	}
	return list
}

// paths returns the task's directories and namespaces in the order of the agent's
// descriptors from cwdFD on. The null device replaces a missing one.
func (t *TaskHandle) paths() (list []*os.File, done func(), err error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, nil, err
	}
	list = []*os.File{t.cwd, t.root}
	for i, f := range list {
		if f == nil {
			list[i] = null
		}
	}
	return append(list, t.files...), func() { null.Close() }, nil
}

// HasNamespaces reports whether the task has namespaces of its own.
func (t *TaskHandle) HasNamespaces() bool { return len(t.namespaceFlags) > 0 }

// Close closes the handle.
func (t *TaskHandle) Close() {
	for _, f := range append(t.files, t.root, t.cwd) {
		if f != nil {
			f.Close()
		}
	}
	if t.pidfd >= 0 {
		unix.Close(t.pidfd)
		t.pidfd = -1
	}
}
