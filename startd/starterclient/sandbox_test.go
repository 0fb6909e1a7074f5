package starterclient_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/startd/starter/proto"
	"github.com/roost-batch/roost/startd/starterclient"
)

// newSandboxedStarter is a starter that makes boxes, whether or not the test's name says
// so.
func newSandboxedStarter(t testing.TB, lease time.Duration) *testStarter {
	if os.Geteuid() != 0 {
		t.Skip("only root makes boxes")
	}
	b := spawn(t, lease)
	b.sandboxed = true
	return b
}

// TestWhatASandboxShows: a task sees its own processes, files for a while, devices and
// shared memory, and the machine's data.
func TestWhatASandboxShows(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root makes boxes")
	}
	temp := publicTempDir(t, nobody, 0o700)
	shared := filepath.Join(publicTempDir(t, 0, 0o755), "shared")
	for _, test := range []struct{ name, script, out string }{
		{"processes", "set -- /proc/[0-9]*; echo $#", "2\n"}, // the first one and the shell
		{"the first process",
			"until grep -q roost-init /proc/1/cmdline; do :; done; ls -l /proc/1/exe 2>&1 | grep -c 'denied'", "1\n"},
		{"its own files for a while", "echo mine >/tmp/file; ls /tmp; ls -d " + shared + " 2>&1 | grep -c 'No such'",
			"file\n1\n"},
		{"devices", "ls /dev | tr '\\n' ' '",
			"fd full init mqueue null ptmx pts random roost shm stderr stdin stdout tty urandom zero "},
		{"shared memory", "ls -A /dev/shm | wc -l; echo x >/dev/shm/x && cat /dev/shm/x", "0\nx\n"},
		{"the machine's files", "grep -c ^root: /etc/passwd; test -d /usr/bin && echo usr; test -d /sys/kernel " +
			"&& echo sys", "1\nusr\nsys\n"},
		{"no way back", "ls " + temp + " 2>&1 | grep -c 'No such'; cat /proc/self/mountinfo | grep -c /root/",
			"1\n0\n"},
		{"a terminal of its own", "ls /dev/pts", "ptmx\n"},
		{"nothing open", "ls /proc/self/fd | tr '\\n' ' '", "0 1 2 3 "},
		{"its captured output again", "echo again >>/dev/stdout; echo and >>/dev/roost/stdout", "again\nand\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newSandboxedStarter(t, time.Minute)
			o := asNobody(1, test.script)
			o.Sandbox.TempDir = temp
			b.begin(o)
			exit := b.end()
			if got := b.read(o.Attempt, false); got != test.out {
				t.Errorf("got %q, want %q (%+v, stderr %q)", got, test.out, exit, b.read(o.Attempt, true))
			}
		})
	}
	if entries, err := os.ReadDir(temp); err != nil || len(entries) != 1 || entries[0].Name() != "file" {
		t.Errorf("outside, its files for a while are %v, %v", entries, err)
	}
}

// TestHiddenMounts checks that a sandbox omits what the machine has mounted where a task
// has its temporary files. The sandbox would hide such a mount anyway. A machine where
// the task resumes from a checkpoint would also need the mount.
func TestHiddenMounts(t *testing.T) {
	for _, uid := range []uint32{0, nobody} {
		t.Run(fmt.Sprint(uid), func(t *testing.T) {
			shareMounts(t)
			mounted := publicTempDir(t, 0, 0o755)
			if err := unix.Mount("/tmp", "/tmp", "", unix.MS_BIND, ""); err != nil {
				t.Skipf("SKIPPED: nothing can be mounted here: %v", err)
			}
			if err := unix.Mount("roost-test", mounted, "tmpfs", 0, "size=1m"); err != nil {
				t.Skipf("SKIPPED: no file system can be mounted here: %v", err)
			}
			t.Cleanup(func() { unix.Unmount(mounted, unix.MNT_DETACH) })
			b := newSandboxedStarter(t, time.Minute)
			temp := publicTempDir(t, nobody, 0o700)
			for n, test := range []struct{ temp, want string }{{temp, "0\n1\n"}, {"", "1\n1\n"}, {temp, "0\n1\n"}} {
				o := shellCmd(uint32(n+1), "cd /proc/self; grep -c "+mounted+" mountinfo; grep -c ' /tmp ' mountinfo")
				o.UID, o.GID, o.Sandbox.TempDir = uid, uid, test.temp
				b.begin(o)
				exit := b.end()
				if got := b.read(o.Attempt, false); got != test.want {
					t.Errorf("task %d: %q lines of its mounts are about %s and /tmp, want %q (%+v)", n, got, mounted,
						test.want, exit)
				}
				b.DiscardAttempt(o.Attempt)
			}
		})
	}
}

// TestLaterMounts checks that a sandbox has what the machine mounted after the claim's
// first task. A later sandbox does not have what the machine has unmounted. Both hold
// with a user namespace and without.
func TestLaterMounts(t *testing.T) {
	for _, uid := range []uint32{0, nobody} {
		t.Run(fmt.Sprint(uid), func(t *testing.T) {
			shareMounts(t)
			b := newSandboxedStarter(t, time.Minute)
			dir := publicTempDir(t, 0, 0o755)
			look := func(number uint32) string {
				t.Helper()
				o := shellCmd(number, "cat "+dir+"/file 2>/dev/null || echo none")
				o.UID, o.GID = uid, uid
				b.begin(o)
				b.end()
				defer b.DiscardAttempt(o.Attempt)
				return b.read(o.Attempt, false)
			}
			before := look(1)
			if err := unix.Mount("roost-test", dir, "tmpfs", 0, "size=1m,mode=755"); err != nil {
				t.Skipf("SKIPPED: no file system can be mounted here: %v", err)
			}
			err := os.WriteFile(filepath.Join(dir, "file"), []byte("there\n"), 0o644)
			during := look(2)
			if e := unix.Unmount(dir, 0); err != nil || e != nil {
				t.Fatal(err, e)
			}
			if after := look(3); before != "none\n" || during != "there\n" || after != "none\n" {
				t.Errorf("it saw %q, %q and %q", before, during, after)
			}
		})
	}
}

// TestServicesMountsStayOut checks that a sandbox has no mounts of services, such as the
// network namespaces of ip-netns(8). It has neither those that were there before the
// claim's first task, nor later ones. A machine where a checkpoint of the task goes on
// would have to have them.
func TestServicesMountsStayOut(t *testing.T) {
	for _, uid := range []uint32{0, nobody} {
		t.Run(fmt.Sprint(uid), func(t *testing.T) {
			shareMounts(t)
			dir, err := os.MkdirTemp("/run", "roost-test-")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			add := func(name string) {
				t.Helper()
				at := filepath.Join(dir, name)
				if err := os.WriteFile(at, nil, 0o644); err != nil {
					t.Fatal(err)
				}
				if err := unix.Mount("/proc/self/ns/net", at, "", unix.MS_BIND, ""); err != nil {
					t.Skipf("SKIPPED: no namespace can be mounted here: %v", err)
				}
			}
			// as ip-netns(8) does
			if err := unix.Mount(dir, dir, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
				t.Skipf("SKIPPED: nothing can be mounted here: %v", err)
			}
			add("before")
			b := newSandboxedStarter(t, time.Minute)
			for n := range uint32(3) {
				o := shellCmd(n+1, "grep -E ' nsfs |"+dir+"' /proc/self/mountinfo; echo end")
				o.UID, o.GID = uid, uid
				b.begin(o)
				b.end()
				if out := b.read(o.Attempt, false); out != "end\n" {
					t.Errorf("task %d has the mounts\n%s", n, out)
				}
				b.DiscardAttempt(o.Attempt)
				add(fmt.Sprint("later-", n))
			}
		})
	}
}

// shareMounts gives this test its own mount namespace. The namespace shares its mounts
// with the copies that other processes make of it, as on a machine with systemd. The
// thread of the test is not used for anything else afterwards.
func shareMounts(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root makes boxes")
	}
	runtime.LockOSThread()
	err := unix.Unshare(unix.CLONE_NEWNS)
	if err == nil {
		err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	}
	if err == nil {
		err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, "")
	}
	if err != nil {
		t.Skipf("SKIPPED: no mount namespace can be made here: %v", err)
	}
}

func TestSandboxesShareNothing(t *testing.T) {
	a, b := newSandboxedStarter(t, time.Minute), newSandboxedStarter(t, time.Minute)
	first := asNobody(1, "echo secret >/dev/shm/secret; echo ready; sleep 60")
	a.begin(first)
	a.waitFor(first.Attempt, "ready")
	second := asNobody(2, "ls /dev/shm; ps ax | grep -c '[s]leep 60'; readlink /proc/self/ns/ipc")
	b.begin(second)
	b.end()
	own, err := os.Readlink("/proc/self/ns/ipc")
	got := b.read(second.Attempt, false)
	if err != nil || !strings.HasPrefix(got, "0\n") || strings.Contains(got, own) {
		t.Errorf("the second task saw %q of the first, or of %s", got, own)
	}
}

// TestNoTraceOfSandboxes: the machine's own mounts are the same before and after.
func TestNoTraceOfSandboxes(t *testing.T) {
	mounts := func() string {
		text, err := os.ReadFile("/proc/self/mountinfo")
		if err != nil {
			t.Fatal(err)
		}
		// network namespaces of other tests come and go
		return regexp.MustCompile(`(?m)^.* /run/netns/.*\n`).ReplaceAllString(string(text), "")
	}
	before := mounts()
	b := newSandboxedStarter(t, time.Minute)
	for n := range uint32(5) {
		o := asNobody(n+1, "true")
		b.begin(o)
		if during := mounts(); during != before {
			t.Fatalf("a box is to be seen from outside:\n%s", during)
		}
		b.end()
		b.DiscardAttempt(o.Attempt)
	}
	b.Release()
	b.next()
	if after := mounts(); after != before {
		t.Errorf("something is left:\n%s", after)
	}
	if err := os.RemoveAll(filepath.Join(b.dir, "dev")); err != nil {
		t.Errorf("the devices are left: %v", err)
	}
}

// newGroupedStarter is a starter in a group of its own, whose tasks can be frozen.
func newGroupedStarter(t *testing.T) (*testStarter, *cgroup.ClaimGroup) {
	host, err := cgroup.Open(fmt.Sprintf("/roost-test/starter-%d-%s", os.Getpid(), strings.ToLower(t.Name())))
	if err != nil {
		t.Fatal(err)
	}
	if !host.Enforcement().Freeze {
		t.Skipf("this machine gives no groups: %v", host.Enforcement().Missing)
	}
	group, err := host.MakeGroup("1", cgroup.GroupLimits{Weight: 20})
	if err != nil {
		t.Fatal(err)
	}
	b := &testStarter{t: t, dir: t.TempDir(), sandboxed: true, events: make(chan starterclient.Event, 64)}
	b.Starter, err = starterclient.Spawn(starterclient.SpawnOptions{
		Binary: os.Getenv("ROOST_STARTER_BINARY"), Dir: b.dir, Lease: time.Minute, Events: func(e starterclient.Event) {
			b.events <- e
		},
		Join: group.Add, TaskGroup: group.TaskDir(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.Release()
		b.Close()
		if err := group.Delete(); err != nil {
			t.Error(err)
		}
		host.Close()
	})
	return b, group
}

// newFreezerStarter is a starter whose tasks are in a freezer of version 1, in the
// directory that it returns.
func newFreezerStarter(t *testing.T) (b *testStarter, dir string) {
	t.Helper()
	dir = fmt.Sprintf("/sys/fs/cgroup/freezer/roost-test-starter-%d", os.Getpid())
	if os.Geteuid() != 0 || os.Mkdir(dir, 0o755) != nil {
		t.Skip("this machine has no freezer of version 1 for us")
	}
	b = &testStarter{t: t, dir: t.TempDir(), sandboxed: true, events: make(chan starterclient.Event, 64)}
	var err error
	b.Starter, err = starterclient.Spawn(starterclient.SpawnOptions{
		Binary: os.Getenv("ROOST_STARTER_BINARY"), Dir: b.dir, Lease: time.Minute, Events: func(e starterclient.Event) {
			b.events <- e
		}, TaskGroup: dir,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.Release()
		b.Close()
		for deadline := time.Now().Add(time.Minute); os.Remove(dir) != nil; unix.Poll(nil, 5) {
			if time.Now().After(deadline) {
				t.Errorf("%s has processes", dir)
				return
			}
		}
	})
	return b, dir
}

// freezeVersion1 freezes a freezer of version 1. One that waits in vfork(2) for a child
// that stands still already keeps it half frozen: then all go on for a moment.
func freezeVersion1(t *testing.T, dir string) {
	t.Helper()
	file := filepath.Join(dir, "freezer.state")
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		if err := os.WriteFile(file, []byte("FROZEN"), 0); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			if state, _ := os.ReadFile(file); string(state) == "FROZEN\n" {
				return
			}
			unix.Poll(nil, 2)
		}
		if err := os.WriteFile(file, []byte("THAWED"), 0); err != nil {
			t.Fatal(err)
		}
		unix.Poll(nil, 2)
	}
	t.Fatal("the freezer does not freeze")
}

// awaitFrozenVersion1 waits until a freezer of version 1 has stopped all that is in it.
func awaitFrozenVersion1(t *testing.T, dir string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; unix.Poll(nil, 5) {
		state, _ := os.ReadFile(filepath.Join(dir, "freezer.state"))
		if string(state) == "FROZEN\n" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the freezer is %q", state)
		}
	}
}

// TestFreezerOfVersion1: where there is no cgroup2, a task enters the freezer by itself.
func TestFreezerOfVersion1(t *testing.T) {
	b, dir := newFreezerStarter(t)
	o := shellCmd(1, "echo ready; while :; do sleep 0.01; done")
	b.begin(o)
	b.waitFor(o.Attempt, "ready")
	b.Suspend(o.Attempt)
	awaitFrozenVersion1(t, dir)
	b.Vacate(starterclient.StopCmd{Attempt: o.Attempt, Fast: true, Cause: proto.Vacated})
	if exit := b.end(); exit.Signal != 9 {
		t.Errorf("got %+v, want that it was killed in the freezer", exit)
	}
}

// TestTaskFrozenAtOnce: of a task that its startd has frozen the starter stops the
// walltime only. It may get to that when a checkpoint has the group thawed.
func TestTaskFrozenAtOnce(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root makes boxes")
	}
	b, group := newGroupedStarter(t)
	o := shellCmd(1, "echo ready; while :; do sleep 0.005; echo on; done")
	o.Walltime = int64(700 * time.Millisecond)
	b.begin(o)
	b.waitFor(o.Attempt, "ready")
	b.Frozen(o.Attempt)
	select {
	case e := <-b.events:
		t.Fatalf("it ended though its walltime stands still: %+v", e)
	case <-time.After(time.Second): // longer than that
	}
	for deadline := time.Now().Add(time.Minute); !b.fileGrows(o.Attempt); { // a busy machine may be slow
		if time.Now().After(deadline) {
			t.Fatal("the task stands still")
		}
	}
	if group.Frozen() {
		t.Error("the starter has frozen it")
	}
	if err := group.Freeze(); err != nil {
		t.Fatal(err)
	}
	b.Resume(o.Attempt)
	if exit := b.end(); exit.Cause != proto.Walltime {
		t.Errorf("got %+v, want an end by walltime", exit)
	}
}

// TestFrozenTask checks that a freeze stops all processes of a task in a group. The
// walltime of the task stops too. A kill still ends the task.
func TestFrozenTask(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root makes boxes")
	}
	b, group := newGroupedStarter(t)
	o := shellCmd(1, "echo ready; trap 'exit 4' TERM; while :; do sleep 0.01; done")
	o.Walltime = int64(700 * time.Millisecond)
	b.begin(o)
	b.waitFor(o.Attempt, "ready")
	b.Suspend(o.Attempt)
	frozen := func(want bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); group.Frozen() != want; unix.Poll(nil, 5) {
			if time.Now().After(deadline) {
				t.Fatalf("frozen is %v", !want)
			}
		}
	}
	frozen(true)
	select {
	case e := <-b.events:
		t.Fatalf("it ended while it was frozen: %+v", e)
	case <-time.After(time.Second): // longer than its walltime
	}
	b.Resume(o.Attempt)
	frozen(false)
	if exit := b.end(); exit.Cause != proto.Walltime {
		t.Errorf("got %+v, want an end by walltime", exit)
	}
	b.DiscardAttempt(o.Attempt)

	for n, stop := range []starterclient.StopCmd{{Fast: true}, {Notice: int64(time.Minute)}} {
		o := shellCmd(uint32(n+2), "trap 'exit 4' TERM; echo ready; while :; do sleep 0.01; done")
		b.begin(o)
		b.waitFor(o.Attempt, "ready")
		b.Suspend(o.Attempt)
		frozen(true)
		stop.Attempt, stop.Cause = o.Attempt, proto.Vacated
		b.Vacate(stop)
		exit := b.end()
		if stop.Fast && exit.Signal != 9 || !stop.Fast && exit.Code != 4 {
			t.Errorf("stopped with %+v: got %+v", stop, exit)
		}
		frozen(false)
		b.DiscardAttempt(o.Attempt)
	}
}
