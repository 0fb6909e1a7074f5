package criu

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/checkpoint/image"
	"github.com/roost-batch/roost/internal/userfiles"
)

// testSandbox is a task in namespaces of its own, isolated as in startd/starter. It has
// the machine's root without the mounts below it, and its own /dev, /tmp and directory
// for captured output. Its first process is a shell that waits for the program.
type testSandbox struct {
	t               testing.TB
	criu            string
	base            string // parent of all directories
	user            userfiles.UserCredential
	program         string // shell text
	group           string
	directories     runDirectories // where the program runs
	pid             int
	restoreCount    int
	streams         []OutputStream
	initProgram     string // the first process, as that of startd/starter; empty: a shell
	limits          map[int]uint64
	nice            int
	mount           string // file system of the machine that is in the sandbox too; "" for none
	detachOnRestore bool   // a restore tells the first process to outlive its parent
}

// runDirectories are the directories of one run.
type runDirectories struct{ Root, Dev, Scratch, IO string }

// sandboxSetup is the input of the sandbox's makers.
type sandboxSetup struct {
	runDirectories
	Program string
	UID     uint32
	Group   string
	First   string
	Mount   string
}

// requireSandbox skips the test where sandboxes cannot be made or dumped.
func requireSandbox(t testing.TB) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root can dump and restore")
	}
	path, err := Find("")
	if err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	if v := Check(t.Context(), "/proc/self/exe", path, os.TempDir(), MachineCache); !v.Works {
		t.Skipf("SKIPPED: CRIU %s does not work here: %s", v.Version, v.Why)
	}
	return path
}

func newTestSandbox(t testing.TB, uid uint32, program string) *testSandbox {
	t.Helper()
	b := &testSandbox{t: t, criu: requireSandbox(t), user: userfiles.UserCredential{UID: uid, GID: uid},
		program: program}
	var err error
	if b.base, err = os.MkdirTemp("/var/tmp", "roost-criu-"); err != nil {
		t.Fatal(err)
	}
	os.Chmod(b.base, 0o711)
	t.Cleanup(func() { os.RemoveAll(b.base) })
	b.makeCgroup()
	b.directories = b.makeDirectories()
	t.Cleanup(func() { b.kill() })
	return b
}

// makeDirectories makes empty directories, at other paths than before.
func (b *testSandbox) makeDirectories() runDirectories {
	b.restoreCount++
	at := fmt.Sprintf("%s/%d", b.base, b.restoreCount)
	p := runDirectories{at + "/root", at + "/dev", at + "/scratch", at + "/io"}
	for dir, mode := range map[string]os.FileMode{p.Root: 0o755, p.Dev: 0o755, p.Scratch: 0o700, p.IO: 0o711} {
		if err := os.MkdirAll(dir, 0o711); err != nil {
			b.t.Fatal(err)
		}
		os.Chmod(dir, mode)
	}
	os.Chown(p.Scratch, int(b.user.UID), int(b.user.GID))
	for _, name := range []string{"stdout", "stderr"} {
		os.WriteFile(p.IO+"/"+name, nil, 0o600)
		os.Chown(p.IO+"/"+name, int(b.user.UID), int(b.user.GID))
	}
	for name, minor := range map[string]uint32{"null": 3, "zero": 5, "full": 7, "random": 8, "urandom": 9} {
		unix.Mknod(p.Dev+"/"+name, unix.S_IFCHR|0o666, int(unix.Mkdev(1, minor)))
		os.Chmod(p.Dev+"/"+name, 0o666)
	}
	for _, dir := range []string{"shm", "mqueue", "pts", "roost"} {
		os.Mkdir(p.Dev+"/"+dir, 0o755)
	}
	os.Symlink("/proc/self/fd", p.Dev+"/fd")
	return p
}

// makeCgroup makes a cgroup where version 2 is available.
func (b *testSandbox) makeCgroup() {
	for _, root := range []string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup"} {
		dir := filepath.Join(root, filepath.Base(b.base))
		if _, err := os.Stat(root + "/cgroup.procs"); err == nil && os.Mkdir(dir, 0o755) == nil {
			b.group = dir
			b.t.Cleanup(func() {
				os.WriteFile(dir+"/cgroup.kill", []byte("1"), 0)
				b.waitUntil("empty group", func() bool { return os.Remove(dir) == nil })
			})
			return
		}
	}
}

// waitUntil waits until a condition holds.
func (b *testSandbox) waitUntil(what string, is func() bool) {
	b.t.Helper()
	tick, late := time.NewTicker(2*time.Millisecond), time.After(30*time.Second)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-late:
			out, _ := os.ReadFile(b.directories.IO + "/stdout")
			errs, _ := os.ReadFile(b.directories.IO + "/stderr")
			b.t.Fatalf("%s: it does not come\nstdout: %.300s\nstderr: %.300s", what, out, errs)
		}
	}
}

func (b *testSandbox) start() {
	b.t.Helper()
	o := sandboxSetup{b.directories, b.program, b.user.UID, b.group, b.initProgram, b.mount}
	text, _ := json.Marshal(o)
	c := exec.Command("/proc/self/exe", "stage", string(text))
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS, Setsid: true}
	out, err := c.Output()
	if err == nil {
		b.pid, err = strconv.Atoi(strings.TrimSpace(string(out)))
	}
	if err != nil {
		if e, ok := errors.AsType[*exec.ExitError](err); ok {
			b.t.Fatalf("box: %v: %s", err, e.Stderr)
		}
		b.t.Fatal(err)
	}
}

// prepareSandbox prepares mounts that only the real root can make, clones the sandbox,
// and lets its first process be reparented.
func prepareSandbox(args []string) error {
	var o sandboxSetup
	if err := json.Unmarshal([]byte(args[0]), &o); err != nil {
		return err
	}
	for _, m := range [][4]string{{"", "/", "private", ""}, {"/", o.Root, "bind", ""},
		{o.Dev, o.Root + "/dev", "bind", ""}} {
		flags := uintptr(unix.MS_BIND)
		if m[2] == "private" {
			flags = unix.MS_REC | unix.MS_PRIVATE
		}
		if err := unix.Mount(m[0], m[1], "", flags, ""); err != nil {
			return fmt.Errorf("%s: %w", m[1], err)
		}
	}
	if o.Mount != "" {
		if err := unix.Mount(o.Mount, o.Root+o.Mount, "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	c := exec.Command("/proc/self/exe", "box", args[0])
	flags := unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if o.UID != 0 {
		flags |= unix.CLONE_NEWUSER
		all := []syscall.SysProcIDMap{{Size: 1<<32 - 1}}
		c.SysProcAttr.UidMappings, c.SysProcAttr.GidMappings, c.SysProcAttr.GidMappingsEnableSetgroups = all, all, true
	}
	c.SysProcAttr.Cloneflags = uintptr(flags)
	if o.Group != "" {
		fd, err := unix.Open(o.Group, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		c.SysProcAttr.UseCgroupFD, c.SysProcAttr.CgroupFD = true, fd
	}
	ready, err := c.StderrPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	if text, _ := io.ReadAll(ready); len(text) > 0 {
		return errors.New(string(text))
	}
	fmt.Println(c.Process.Pid)
	return nil
}

// enterSandbox is the first process of the sandbox, until it becomes the shell.
func enterSandbox(args []string) error {
	var o sandboxSetup
	if err := json.Unmarshal([]byte(args[0]), &o); err != nil {
		return err
	}
	for _, m := range []struct {
		from, at, fs string
		flags        uintptr
	}{
		{"", "/", "", unix.MS_REC | unix.MS_PRIVATE}, {o.Root, o.Root, "", unix.MS_BIND | unix.MS_REC},
		{"shm", o.Root + "/dev/shm", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV},
		{"mqueue", o.Root + "/dev/mqueue", "mqueue", 0}, {"devpts", o.Root + "/dev/pts", "devpts", 0},
		{"proc", o.Root + "/proc", "proc", 0},
		{o.IO, o.Root + "/dev/roost", "", unix.MS_BIND}, {o.Scratch, o.Root + "/tmp", "", unix.MS_BIND},
	} {
		data := ""
		if m.fs == "devpts" {
			data = "newinstance"
		}
		if err := unix.Mount(m.from, m.at, m.fs, m.flags, data); err != nil {
			return fmt.Errorf("%s: %w", m.at, err)
		}
	}
	if err := errors.Join(unix.Chdir(o.Root), unix.PivotRoot(".", "."), unix.Unmount(".", unix.MNT_DETACH),
		unix.Chdir("/")); err != nil {
		return err
	}
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	as := fmt.Sprintf("setpriv --reuid %d --regid %d --clear-groups --no-new-privs", o.UID, o.UID)
	text := `cd /tmp; ` + as + ` sh -c "$0" </dev/null >>/dev/roost/stdout 2>>/dev/roost/stderr & `
	if o.First != "" {
		text += "exec " + o.First + " $! 3>/dev/roost/code"
	} else {
		text += "wait $!; echo $? >/dev/roost/code"
	}
	unix.Dup2(int(null.Fd()), 0)
	unix.Dup2(int(null.Fd()), 1)
	env := []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "GODEBUG=multipathtcp=0"}
	// The last descriptor to the maker closes at exec.
	savedStderr, err := unix.FcntlInt(2, unix.F_DUPFD_CLOEXEC, 10)
	if err != nil {
		return err
	}
	unix.Dup2(int(null.Fd()), 2)
	unix.CloseRange(3, 1<<20, unix.CLOSE_RANGE_CLOEXEC) // descriptors that the test inherited
	if err := unix.Exec("/bin/sh", []string{"sh", "-c", text, o.Program}, env); err != nil {
		fmt.Fprintln(os.NewFile(uintptr(savedStderr), "maker"), err)
	}
	return nil
}

func (b *testSandbox) kill() {
	if b.pid == 0 {
		return
	}
	syscall.Kill(b.pid, syscall.SIGKILL)
	var s syscall.WaitStatus
	syscall.Wait4(b.pid, &s, 0, nil)
	b.pid = 0
}

// output returns what the program has written so far.
func (b *testSandbox) output() string {
	text, _ := os.ReadFile(b.directories.IO + "/stdout")
	return string(text)
}

// waitForEnd waits for the end and returns the program's result.
func (b *testSandbox) waitForEnd() string {
	b.t.Helper()
	var s syscall.WaitStatus
	b.waitUntil("the end", func() bool {
		pid, err := syscall.Wait4(b.pid, &s, syscall.WNOHANG, nil)
		return pid == b.pid || err != nil
	})
	b.pid = 0
	code, _ := os.ReadFile(b.directories.IO + "/code")
	return strings.TrimSpace(string(code))
}

func (b *testSandbox) spec(name string) DumpSpec {
	dir := filepath.Join(b.base, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		b.t.Fatal(err)
	}
	return DumpSpec{CRIU: b.criu, PID: b.pid, Dir: dir, Group: b.group, Scratch: b.directories.Scratch,
		IO: b.directories.IO, User: b.user, Limit: 1 << 30}
}

func (b *testSandbox) dump(name string) (string, DumpResult) {
	b.t.Helper()
	spec := b.spec(name)
	r, err := Dump(b.t.Context(), "/proc/self/exe", spec)
	if err != nil {
		explainError(b.t, spec.Dir+"/"+dumpLog, err)
		b.t.Fatalf("dump: %v", err)
	}
	return spec.Dir, r
}

func explainError(t testing.TB, log string, err error) {
	t.Helper()
	if f, ok := errors.AsType[*CheckpointError](err); ok {
		t.Logf("CRIU said: %s", strings.Join(f.Detail, "\n"))
	}
	text, _ := os.ReadFile(log)
	t.Logf("%s ends with %s", log, text[max(0, len(text)-1500):])
}

// restore restores the task at other paths, from an image that was written to a file.
func (b *testSandbox) restore(dir string) RestoreResult {
	b.t.Helper()
	staging, r, err := b.restoreImage(dir)
	if err != nil && strings.Contains(err.Error(), "it took too long") {
		// CRIU has once stood still after its last step here, for more than a minute. A
		// startd gives that up and restores the image again.
		explainError(b.t, staging+"/"+restoreLog, err)
		staging, r, err = b.restoreImage(dir)
	}
	if err != nil {
		explainError(b.t, staging+"/"+restoreLog, err)
		b.t.Fatalf("restore: %v", err)
	}
	if text, err := os.ReadFile(staging + "/pid"); err != nil || string(text) != strconv.Itoa(r.PID) {
		b.t.Errorf("pid file: got %q, %v, want %d", text, err, r.PID)
	}
	return r
}

// tryRestore is restore for a test in which it may fail.
func (b *testSandbox) tryRestore(dir string) error {
	b.t.Helper()
	_, _, err := b.restoreImage(dir)
	return err
}

func (b *testSandbox) restoreImage(dir string) (staging string, r RestoreResult, err error) {
	b.t.Helper()
	key := make([]byte, image.KeySize)
	file, err := os.Create(dir + ".image")
	if err != nil {
		b.t.Fatal(err)
	}
	defer file.Close()
	if _, err := image.WriteDirectory(file, dir, image.Header{Job: "1.host"}, key); err != nil {
		b.t.Fatal(err)
	}
	file.Seek(0, io.SeekStart)
	b.restoreCount++
	staging = fmt.Sprintf("%s.%d", dir, b.restoreCount)
	if _, err := image.ReadDirectory(file, staging, key, image.ExpectedImage{Job: "1.host"}); err != nil {
		b.t.Fatal(err)
	}
	b.directories = b.makeDirectories()
	scratch, err := os.Open(staging + "/" + image.ScratchEntry)
	if err == nil {
		_, err = userfiles.Unpack(b.t.Context(), b.user, "/proc/self/exe", b.directories.Scratch, 1<<30, scratch)
		scratch.Close()
	}
	if err == nil {
		err = RestoreCaptured(staging, b.directories.IO)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	r, err = restoreByAgent(b.t.Context(), "/proc/self/exe", RestoreSpec{
		CRIU: b.criu, Dir: staging, Root: b.directories.Root, User: b.user, InitStop: b.detachOnRestore,
		PIDFile: staging + "/pid", Streams: b.streams,
		External: map[string]string{"/tmp": b.directories.Scratch, "/dev": b.directories.Dev,
			"/dev/roost": b.directories.IO},
		Limits: b.limits, Nice: b.nice,
		Init: b.initProgram, InitFiles: []string{b.directories.IO + "/code"},
	})
	if err != nil {
		return staging, r, err
	}
	b.pid = r.PID
	if b.group != "" {
		for _, pid := range processTree(r.PID) {
			os.WriteFile(b.group+"/cgroup.procs", []byte(strconv.Itoa(pid)), 0)
		}
	}
	return staging, r, nil
}
