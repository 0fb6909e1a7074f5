package starterclient_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/startd/starter/proto"
	"github.com/roost-batch/roost/startd/starterclient"
)

// hostileProgram runs a task of an ordinary user in a sandbox and returns its outcome and
// its output.
func hostileProgram(t *testing.T, b *testStarter, number uint32, image, script string) (
	starterclient.TaskExit, string,
) {
	t.Helper()
	o := inImage(number, image, script)
	o.Join, o.Stderr = true, ""
	b.begin(o)
	exit := b.end()
	out := b.read(o.Attempt, false)
	b.DiscardAttempt(o.Attempt)
	return exit, out
}

// TestSandboxIsShut runs attacks from inside a sandbox. The targets are the machine,
// other tasks and the starter. Each script prints "in" if it succeeds.
func TestSandboxIsShut(t *testing.T) {
	needRoot(t)
	t.Run("boxed", testSandboxIsSealed)
	t.Run("image/boxed", func(t *testing.T) { attackSandbox(t, "/") })
}

func testSandboxIsSealed(t *testing.T) { attackSandbox(t, "") }

// attackSandbox runs the attacks in a sandbox whose root is the image, or the machine's.
func attackSandbox(t *testing.T, image string) {
	victim := spawn(t, time.Minute)
	secret := shellCmd(1, "exec sleep 600")
	secret.Environment = append(secret.Environment, "SECRET=x")
	pid := victim.begin(secret)
	dir := publicTempDir(t, 0, 0o755)
	shell := filepath.Join(dir, "sh")
	if text, err := os.ReadFile("/bin/sh"); err != nil || os.WriteFile(shell, text, 0o755) != nil ||
		os.Chmod(shell, 0o755|os.ModeSetuid) != nil {
		t.Fatal("no setuid shell")
	}
	const apart = "unshare --user --map-root-user --mount sh -c '%s' 2>/dev/null"
	b := spawn(t, time.Minute)
	for i, tt := range []struct{ name, script string }{
		{"the root of its first process", "ls /proc/1/root/ && echo in"},
		{"the descriptors of its first process", "ls /proc/1/fd && echo in"},
		{"the memory of its first process",
			"cat /proc/1/mem 2>&1 | grep -v denied && echo in; test -r /proc/1/environ && cat /proc/1/environ " +
				"&& echo in"},
		{"the end of its first process", "kill -9 1 && echo in"},
		{"a signal for its first process", "kill -USR2 1 && echo in"},
		{"the machine's processes", "test -e /proc/" + strconv.Itoa(pid) + "/stat && echo in; kill -0 " +
			strconv.Itoa(pid) + " && echo in"},
		{"a neighbour's environment", "grep -al SECRET=x /proc/*/environ 2>/dev/null && echo in"},
		{"a neighbour's claim", "ls " + victim.dir + " && echo in"},
		{"its own claim", "ls " + b.dir + " && echo in"},
		{"its status", "echo -n 0000 >/dev/roost/status && echo in; mv /dev/roost/stdout /dev/roost/x && echo in; " +
			"while ! test -e /dev/roost/status; do sleep 0.01; done; echo -n 0000 >/dev/roost/status && echo in; " +
			"rm -f /dev/roost/status && echo in"},
		{"a link in its output directory",
			"ln -s /etc/passwd /dev/roost/stderr && echo in; ln /dev/roost/stdout /dev/roost/new && echo in"},
		{"its init", "echo >>/dev/init && echo in; rm -f /dev/init && echo in; mv /dev/init /dev/x && echo in"},
		{"a file in /dev", "touch /dev/x && echo in; mkdir /dev/pts/x && echo in"},
		{"a device", "mknod /tmp/null" + strconv.Itoa(os.Getpid()) + " c 1 3 && echo in; mknod x b 8 0 && echo in"},
		{"the machine's devices", "ls /dev | grep -Ev " +
			"'^(fd|full|init|mqueue|null|ptmx|pts|random|roost|shm|stderr|stdin|stdout|tty|urandom|zero)$' && echo in"},
		{"a mount", "mount -t tmpfs none /mnt && echo in; mount --bind / /mnt && echo in; umount /dev/shm && echo " +
			"in; umount -l /proc && echo in"},
		{"the kernel's settings", "echo x >/proc/sys/kernel/core_pattern && echo in; echo h >/proc/sysrq-trigger && " +
			"echo in; echo 1 >/proc/sys/vm/drop_caches && echo in"},
		{"the control groups", "for f in $(find /sys/fs/cgroup -maxdepth 3 -name cgroup.procs); do echo $$ >$f " +
			"&& echo in; done; mkdir /sys/fs/cgroup/x && echo in"},
		{"files of /sys", "find /sys -maxdepth 4 -type f -writable 2>/dev/null | grep . && echo in"},
		{"a setuid program", shell + " -pc 'id -u' | grep -x 0 && echo in"},
		{"the rights of a login", "su root -c true </dev/null && echo in; passwd -S root && echo in"},
		{"no_new_privs", "grep -q 'NoNewPrivs:.1' /proc/self/status || echo in; grep -E 'Cap(Eff|Prm|Inh|Amb):' " +
			"/proc/self/status | grep -v 0000000000000000 && echo in"},
		{"what its /dev hides", fmt.Sprintf(apart,
			"umount /dev && echo in; umount -l /dev/roost && echo in; umount -l /proc && echo in; umount -R "+
				"/dev && echo in")},
		{"a device from a namespace", fmt.Sprintf(apart,
			"mount -t tmpfs none /mnt && mknod /mnt/mem c 1 1 && echo in; mount -t devtmpfs none /mnt && echo in")},
		{"groups from a namespace", fmt.Sprintf(strings.Replace(apart, "--mount", "--mount --cgroup", 1),
			"mount -t cgroup2 none /mnt && { echo 0 >/mnt/cgroup.freeze && echo in; mkdir /mnt/x && echo in; echo "+
				"$$ >/mnt/../mnt/cgroup.procs && echo in; }")},
		{"its keepers from a namespace",
			fmt.Sprintf(apart, "ls /proc/1/root/ && echo in; cat /proc/1/environ && echo in; kill -9 1 && echo in")},
		{"the old root", "cd / && cd ../../.. && ls -d .." + b.dir + "/root/proc 2>/dev/null && echo in; grep -c ' " +
			b.dir + "/root' /proc/self/mountinfo | grep -v '^0$' && echo in"},
		{"descriptors", "ls /proc/self/fd | grep -vE '^[0-3]$' && echo in; ls -l /proc/self/fd | grep -E " +
			"'order|claims|journal|sock' && echo in"},
		{"lower its oom score", "for p in /proc/[0-9]*; do test $p = /proc/1 && echo -1000 >$p/oom_score_adj && echo " +
			"in; done; echo -1 >/proc/self/oom_score_adj && echo in"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, out := hostileProgram(t, b, uint32(i+1), image, tt.script); strings.Contains("\n"+out, "\nin\n") {
				t.Errorf("it got through: %s", out)
			}
		})
	}
	if text, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat")); len(text) == 0 {
		t.Error("the neighbour is dead")
	}
}

// TestCoveredTempStaysCovered checks that a task cannot see the machine's /tmp, nor
// mounts below it. From a user namespace of its own it can neither unmount what covers
// them nor reach around it. On a host where root lacks CAP_SYS_RESOURCE the sandbox
// contains such mounts, see TestHiddenMounts. The kernel locks the mounts that propagate
// into a namespace with less privilege (mount_namespaces(7)); the test checks that this
// covers all of ours. Each script prints "apart" when its attack has begun.
func TestCoveredTempStaysCovered(t *testing.T) {
	needRoot(t)
	t.Run("boxed", testCoveredTempStaysCovered)
}

func testCoveredTempStaysCovered(t *testing.T) {
	mounted, plain := publicTempDir(t, 0, 0o755), publicTempDir(t, 0, 0o755)
	if err := unix.Mount("roost-test", mounted, "tmpfs", 0, "size=1m,mode=755"); err != nil {
		t.Skipf("SKIPPED: no file system can be mounted here: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(mounted, unix.MNT_DETACH) })
	for _, dir := range []string{mounted, plain} {
		if err := os.WriteFile(filepath.Join(dir, "covered"), []byte("secret\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	temp := publicTempDir(t, nobody, 0o700)
	look := "for at in / /mnt/ /mnt/mnt/ /old/ /mnt/old/ /proc/1/root/ /proc/self/root/ /mnt/1/root/; do for d in " +
		mounted + " " + plain + "; do test -e $at$d/covered && echo in; done; done; true"
	if out, err := exec.Command("/bin/sh", "-c", look).CombinedOutput(); err != nil ||
		!strings.HasPrefix(string(out), "in\nin\n") {
		t.Fatalf("on the machine itself it sees %s, %v", out, err)
	}
	b := spawn(t, time.Minute)
	for i, tt := range []struct{ name, script string }{
		{"unmount", "umount /tmp; umount -l /tmp; umount -R /tmp; umount -f /tmp"},
		{"unmount what is private", "mount --make-rprivate /; umount -l /tmp; mount --make-rslave /; umount -l /tmp"},
		{"move", "mount --move /tmp /mnt; mount -t tmpfs none /mnt; mkdir /mnt/a; mount --move /tmp /mnt/a"},
		{"bind the root", "mount --bind / /mnt"},
		{"bind all of the root", "mount --rbind / /mnt; umount -l /mnt/tmp; umount -R /mnt/tmp"},
		{"bind it twice",
			"mount --rbind / /mnt; mount --make-rprivate /mnt; mount --bind /mnt /mnt/mnt; umount -l /mnt/tmp"},
		{"an overlay",
			"mount -t overlay none /mnt -o lowerdir=/:/etc; mount -t overlay none /mnt -o lowerdir=/etc:/,userxattr"},
		{"another root", "mount -t tmpfs none /mnt; mkdir /mnt/old; cd /mnt; cp /bin/sh . ; pivot_root . old && " +
			"umount -l /old/tmp"},
		{"a namespace in a namespace", "unshare --user --map-root-user --mount sh -c \"umount -l /tmp; mount --bind " +
			"/ /mnt; mount --rbind / /mnt; umount -l /mnt/tmp; " + look + "\""},
		{"mounted anew", "mount -o remount,bind /tmp; mount -t tmpfs none /tmp; umount -l /tmp; umount -l /tmp"},
		{"by way of its processes", "mount -t proc none /mnt; ls /proc/*/root/tmp /proc/*/cwd/tmp"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := asNobody(uint32(i+1), "echo own >/tmp/own; unshare --user --map-root-user --mount --pid --fork sh "+
				"-c 'echo apart; { "+tt.script+"; } 2>&1; "+look+"; cat /tmp/own'")
			o.Join, o.Stderr, o.Sandbox.TempDir = true, "", temp
			b.begin(o)
			exit := b.end()
			out := b.read(o.Attempt, false)
			b.DiscardAttempt(o.Attempt)
			switch {
			case !strings.Contains(out, "apart\n"):
				t.Skipf("SKIPPED: a task cannot make a user namespace here, so it cannot try: %+v, %s", exit, out)
			case strings.Contains("\n"+out, "\nin\n"):
				t.Errorf("it got through: %s", out)
			}
		})
	}
}

// TestNothingIsLeftOfSandboxes checks that nothing remains of many tasks. They leave
// mounts, links and processes behind. Then the machine must have its former mounts, and
// the starter its former descriptors and children.
func TestNothingIsLeftOfSandboxes(t *testing.T) {
	needRoot(t)
	t.Run("boxed", func(t *testing.T) {
		b := spawn(t, time.Minute)
		mounts := func() string { text, _ := os.ReadFile("/proc/self/mountinfo"); return string(text) }
		count := func(what string) (n int) {
			dir := fmt.Sprintf("/proc/%d/%s", b.PID(), what)
			list, _ := os.ReadDir(dir)
			for _, e := range list {
				to, _ := os.Readlink(filepath.Join(dir, e.Name()))
				// sooner or later the Go runtime has these
				if to != "anon_inode:[eventpoll]" && to != "anon_inode:[eventfd]" {
					n++
				}
			}
			return n
		}
		hostileProgram(t, b, 1, "", "true")
		before, fds, threads := roostProcesses(mounts(), b.dir), count("fd"), count("task")
		for n := range uint32(50) {
			hostileProgram(t, b, n+2, "", "unshare --user --map-root-user --mount --pid --fork sh -c 'mount -t tmpfs "+
				"none /mnt; exec sleep 60' >/dev/null 2>&1 & "+
				"setsid sleep 60 & dd if=/dev/zero of=/dev/shm/x bs=4096 count=16 2>/dev/null")
		}
		if after := roostProcesses(mounts(), b.dir); after != before || before != 0 {
			t.Errorf("mounts of the claim on the machine: %d, before %d", after, before)
		}
		if got := count("fd"); got != fds {
			t.Errorf("descriptors: got %d, had %d", got, fds)
		}
		if got := count("task"); got > threads+2 {
			t.Errorf("threads: got %d, had %d", got, threads)
		}
		for deadline := time.Now().Add(time.Minute); ; unix.Poll(nil, 5) {
			// the process that creates sandboxes ends when no task follows
			children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", b.PID(), b.PID()))
			if len(strings.TrimSpace(string(children))) == 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("children are left: %s", children)
			}
		}
	})
}

func roostProcesses(mounts, dir string) int { return strings.Count(mounts, dir) }

// TestSandboxDiesWithItsStarter checks that killing the starter kills the whole sandbox,
// whatever it forked and whatever signals it ignores.
func TestSandboxDiesWithItsStarter(t *testing.T) {
	needRoot(t)
	t.Run("boxed", func(t *testing.T) {
		b := spawn(t, time.Minute)
		mark := fmt.Sprintf("86400.%d", os.Getpid())
		o := asNobody(1, "trap '' TERM HUP INT; env -i setsid setsid sleep "+mark+
			" & sleep 0.2; echo ready; while :; do sleep 1; done")
		b.begin(o)
		b.waitFor(o.Attempt, "ready")
		proc, err := os.FindProcess(b.PID())
		if err == nil {
			err = proc.Kill()
		}
		if err != nil {
			t.Fatal(err)
		}
		left := true
		for end := time.Now().Add(time.Minute); left && time.Now().Before(end); <-time.After(5 * time.Millisecond) {
			left = false
			paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
			for _, path := range paths {
				text, _ := os.ReadFile(path)
				left = left || strings.Contains(string(text), "\x00"+mark)
			}
		}
		if left {
			t.Error("a process has outlived its starter")
		}
	})
}

// TestHostileEnvironment checks that the job's environment affects only its program. It
// must not affect the processes that set up its sandbox as root.
func TestHostileEnvironment(t *testing.T) { runBothWays(t, testHostileEnvironment) }

func testHostileEnvironment(t *testing.T) {
	needRoot(t)
	dir := publicTempDir(t, nobody, 0o755)
	made := filepath.Join(dir, "made")
	for _, name := range []string{"roost-init", "roost-starter", "nsenter", "criu", "true"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\nid -u >>"+made+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b := spawn(t, time.Minute)
	o := asNobody(1, "cat /proc/1/environ 2>/dev/null; true")
	o.Environment = []string{"PATH=" + dir, "LD_PRELOAD=" + dir + "/none.so", "GODEBUG=inittrace=1",
		"GOTRACEBACK=crash", "ENV=" + dir + "/true", "X=a\nb"}
	o.Executable, o.Arguments = "true", []string{"true"}
	b.begin(o)
	if exit := b.end(); exit.Step != proto.StepNone {
		t.Fatalf("got %+v", exit)
	}
	if text, _ := os.ReadFile(made); len(text) > 0 && strings.TrimSpace(string(text)) != "65534" {
		t.Errorf("ran as %q", text)
	}
	if text, _ := os.ReadFile(filepath.Join(b.dir, "starter.log")); strings.Contains(string(text), "init ") {
		t.Errorf("the starter heard of the job's environment: %s", text)
	}
}
