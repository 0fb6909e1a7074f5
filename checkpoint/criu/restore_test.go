package criu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/internal/userfiles"
)

// TestAffinity restores a thread to the CPU that it chose.
func TestAffinity(t *testing.T) {
	var own unix.CPUSet
	if unix.SchedGetaffinity(0, &own) != nil || own.Count() < 2 {
		t.Skip("SKIPPED: there is one CPU")
	}
	last := cpuNumbers(&own)[own.Count()-1]
	b := newTestSandbox(t, 0, "")
	b.program = fmt.Sprintf("exec taskset -c %d %s keep nothing -", last, b.copyTestBinary())
	b.start()
	b.waitUntil("a word", func() bool { return strings.Contains(b.output(), "line 3\n") })
	dir, _ := b.dump("dump")
	b.kill()
	b.restore(dir)
	pinned := 0
	for _, pid := range processTree(b.pid) {
		for _, tid := range threadIDs(pid) {
			var set unix.CPUSet
			unix.SchedGetaffinity(tid, &set)
			if set.Count() == 1 && set.IsSet(last) {
				pinned++
			}
		}
	}
	if pinned < 3 {
		t.Errorf("%d threads are on CPU %d, want those of a Go program", pinned, last)
	}
	b.assertRunning()
}

// talkProgram is two python processes that communicate over TCP.
const talkProgram = `exec python3 -c '
import os, socket, time
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("127.0.0.1", 0)); s.listen(5)
if os.fork() == 0:
    c = socket.create_connection(s.getsockname())
    try:
        while True:
            c.send(c.recv(100))
    except OSError: pass
    os._exit(0)
c, _ = s.accept()
for i in range(200):
    c.send(b"%d" % i)
    print("line", c.recv(100).decode(), flush=True)
    time.sleep(0.02)
print("sum", 199 * 200 // 2 * 10)
'`

// TestConnections dumps processes that communicate over TCP. As root the connection is
// restored; in a user namespace it is closed.
func TestConnections(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("SKIPPED: there is no python3")
	}
	for _, uid := range []uint32{0, 1000} {
		t.Run(fmt.Sprint(uid), func(t *testing.T) {
			b := newTestSandbox(t, uid, talkProgram)
			b.start()
			b.waitUntil("40 lines", func() bool { return strings.Count(b.output(), "\n") >= 40 })
			dir, _ := b.dump("dump")
			b.kill()
			r := b.restore(dir)
			if r.Closed != (uid != 0) {
				t.Errorf("closed: got %v", r.Closed)
			}
			code := b.waitForEnd()
			if uid == 0 && (code != "0" || b.output() != wholeOutput()) {
				t.Errorf("got code %s, %q", code, b.output())
			}
			if uid != 0 && (code == "0" || strings.Count(b.output(), "\n") < 40) {
				t.Errorf("got code %s, %q, want a program that saw its connection close", code, b.output())
			}
		})
	}
}

// TestStreams restores a task whose output goes to a growing file outside of the sandbox.
// What was written after the dump is cut off and written again, at another path.
func TestStreams(t *testing.T) {
	b := newTestSandbox(t, 1000, "")
	home := b.base + "/home"
	os.Mkdir(home, 0o755)
	os.Chown(home, 1000, 1000)
	b.program = "exec " + b.copyTestBinary() + " count 200 >>" + home + "/out"
	b.start()
	lines := func(path string) int {
		text, _ := os.ReadFile(path)
		return strings.Count(string(text), "\n")
	}
	b.waitUntil("40 lines", func() bool { return lines(home+"/out") >= 40 })
	spec := b.spec("dump")
	spec.Streams = []string{home + "/out"}
	if _, err := Dump(t.Context(), "/proc/self/exe", spec); err != nil {
		t.Fatal(err)
	}
	b.waitUntil("80 lines", func() bool { return lines(home+"/out") >= 80 })
	b.kill()
	if err := os.Rename(home+"/out", home+"/moved"); err != nil {
		t.Fatal(err)
	}
	b.streams = []OutputStream{{Inside: home + "/out", Path: home + "/moved"}}
	b.restore(spec.Dir)
	if err := os.WriteFile(b.directories.Scratch+"/on", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	code := b.waitForEnd()
	if text, _ := os.ReadFile(home + "/moved"); code != "0" || string(text) != wholeOutput() {
		t.Errorf("got code %s, %q", code, text)
	}
	// The rights are the user's: a file that only root may write is refused.
	os.WriteFile(b.base+"/roots", []byte("root's file"), 0o644)
	if f, err := openAsUser(b.user, b.base+"/roots"); err == nil {
		f.Close()
		t.Error("root's file was opened")
	}
	if f, err := openAsUser(userfiles.UserCredential{UID: 1000, GID: 1000, Groups: []uint32{4}},
		home+"/new"); err != nil {
		t.Error(err)
	} else {
		info, _ := f.Stat()
		if info.Sys().(*syscall.Stat_t).Uid != 1000 {
			t.Error("a new file is not the user's")
		}
		f.Close()
	}
}

// TestCancelled cancels a dump; the task runs on.
func TestCancelled(t *testing.T) {
	b := newTestSandbox(t, 0, "")
	b.program = "exec " + b.copyTestBinary() + " keep nothing -"
	b.start()
	b.waitUntil("a word", func() bool { return strings.Contains(b.output(), "line 3\n") })
	spec := b.spec("dump")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		b.waitUntil("images", func() bool {
			list, _ := filepath.Glob(spec.Dir + "/criu/*")
			return len(list) > 3
		})
		cancel()
	}()
	_, err := Dump(ctx, "/proc/self/exe", spec)
	if f, ok := errors.AsType[*CheckpointError](err); err != nil && (!ok || f.Class != Retry) {
		t.Errorf("got %v", err)
	}
	t.Logf("%v", err)
	b.assertRunning()
}

// TestBadScratch checks that a task runs on when its scratch directory cannot be packed.
func TestBadScratch(t *testing.T) {
	b := newTestSandbox(t, 1000, "")
	b.program = "exec " + b.copyTestBinary() + " keep nothing -"
	b.start()
	b.waitUntil("a word", func() bool { return strings.Contains(b.output(), "line 3\n") })
	os.WriteFile(b.directories.Scratch+"/roots", nil, 0o600)
	_, err := Dump(t.Context(), "/proc/self/exe", b.spec("dump"))
	if f, ok := errors.AsType[*CheckpointError](err); !ok || !strings.Contains(f.Reason, "roots") {
		t.Errorf("got %v, want a failure that names the file", err)
	}
	b.assertRunning()
}

// TestEndsAtOnce restores tasks whose first program ends as soon as it runs. CRIU still
// has dozens of other processes to release then. The tasks have succeeded with their own
// exit status, and nothing is done twice.
func TestEndsAtOnce(t *testing.T) {
	b := newTestSandbox(t, 1000, "")
	b.program = `for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do sleep 1000 & done
echo ready; until [ -e ` + b.base + `/end ]; do :; done; echo end; exit 7`
	b.start()
	b.waitUntil("it is ready", func() bool { return strings.Contains(b.output(), "ready\n") })
	dir, _ := b.dump("dump")
	b.kill()
	if err := os.WriteFile(filepath.Join(b.base, "end"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		b.restore(dir)
		if code := b.waitForEnd(); code != "7" || b.output() != "ready\nend\n" {
			t.Errorf("got code %s, %q", code, b.output())
		}
	}
}

// TestExitCode reads the exit status of a process that is not reaped.
func TestExitCode(t *testing.T) {
	for script, want := range map[string]string{"exit 7": "exit 7", "kill -TERM $$": "signal 15",
		"kill -KILL $$": "signal 9"} {
		ended := exec.Command("sh", "-c", script)
		if err := ended.Start(); err != nil {
			t.Fatal(err)
		}
		if err := unix.Waitid(unix.P_PID, ended.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
			t.Fatal(err)
		}
		code, ok := exitCode(ended.Process.Pid)
		got := fmt.Sprint("exit ", code.ExitStatus())
		if code.Signaled() {
			got = fmt.Sprint("signal ", int(code.Signal()))
		}
		if !ok || got != want {
			t.Errorf("%s: got %s, %v, want %s", script, got, ok, want)
		}
		ended.Wait()
	}
	if _, ok := exitCode(os.Getpid()); ok {
		t.Error("this process has ended")
	}
}

// TestVanishedMounts restores tasks after a file system of the machine has been
// unmounted. One that the task's user could not reach does not matter; another is named.
func TestVanishedMounts(t *testing.T) {
	for name, mode := range map[string]os.FileMode{"private": 0o700, "public": 0o755} {
		t.Run(name, func(t *testing.T) {
			b := newTestSandbox(t, 1000, "echo ready; while echo on; do sleep 0.1; done")
			above := filepath.Join(b.base, name)
			disk := filepath.Join(above, "disk")
			if err := os.MkdirAll(disk, 0o755); err != nil {
				t.Fatal(err)
			}
			os.Chmod(above, mode)
			if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=1m"); err != nil {
				t.Fatal(err)
			}
			defer unix.Unmount(disk, unix.MNT_DETACH)
			b.mount = disk
			b.start()
			b.waitUntil("it is ready", func() bool { return strings.Contains(b.output(), "ready\n") })
			dir, _ := b.dump("dump")
			b.kill()
			unix.Unmount(disk, unix.MNT_DETACH)
			if err := os.RemoveAll(above); err != nil {
				t.Fatal(err)
			}
			if name == "private" {
				b.restore(dir)
				b.assertRunning()
				again, _ := b.dump("again")
				b.kill()
				b.restore(again)
				b.assertRunning()
				return
			}
			if err := b.tryRestore(dir); err == nil || !strings.Contains(err.Error(), disk+", which it could see") {
				t.Errorf("got %v, want an error that names %s", err, disk)
			}
		})
	}
}
