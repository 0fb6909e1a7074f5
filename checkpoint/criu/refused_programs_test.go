package criu

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/internal/cgroup"
)

// unsavablePrograms returns programs that open things which cannot be checkpointed.
func unsavablePrograms() map[string]func(arg string) error {
	opened := func(_, _ uintptr, e syscall.Errno) error {
		if e != 0 {
			return e
		}
		return nil
	}
	return map[string]func(string) error{
		"io_uring": func(string) error {
			var params [120]byte
			return opened(unix.Syscall(unix.SYS_IO_URING_SETUP, 4, uintptr(unsafe.Pointer(&params)), 0))
		},
		"perf": func(string) error {
			attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_TASK_CLOCK,
				Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{}))}
			_, err := unix.PerfEventOpen(&attr, 0, -1, -1, 0)
			return err
		},
		"userfaultfd": func(string) error { return opened(unix.Syscall(unix.SYS_USERFAULTFD, 0, 0, 0)) },
		"bpf": func(string) error {
			attr := [18]uint32{2, 4, 4, 1} // an array of one element
			return opened(unix.Syscall(unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr)))
		},
		"mptcp": func(string) error {
			_, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 262)
			return err
		},
		"unix": func(path string) error {
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			if err == nil {
				err = unix.Connect(fd, &unix.SockaddrUnix{Name: path})
			}
			return err
		},
		"nested": func(string) error {
			c := exec.Command("sleep", "1000")
			c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS}
			return c.Start()
		},
		"ptrace": func(string) error {
			runtime.LockOSThread()
			c := exec.Command("sleep", "1000")
			c.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
			return c.Start()
		},
		"zombie":  func(string) error { return exec.Command("true").Start() },
		"nothing": func(string) error { return nil },
	}
}

// holdUnsavable opens one of them, reports it, and counts.
func holdUnsavable(args []string) error {
	if err := unsavablePrograms()[args[0]](args[1]); err != nil {
		fmt.Println("cannot:", err)
		return err
	}
	for i := 0; ; i++ {
		fmt.Println("line", i)
		<-time.After(3 * time.Millisecond)
	}
}

// TestRefused dumps programs that cannot be dumped. Probe and dump return the same
// sentence, and the programs run on.
func TestRefused(t *testing.T) {
	for what, want := range map[string]string{
		"io_uring": unsavableUse("io_uring"), "perf": unsavableUse("perf_event"),
		"userfaultfd": unsavableUse("userfaultfd"), "bpf": unsavableUse("bpf"), "mptcp": unsavableUse("mptcp"),
		"unix": unsavableUse("unix"), "nested": unsavableUse("nested"), "ptrace": unsavableUse("ptrace"),
	} {
		t.Run(what, func(t *testing.T) {
			b := newTestSandbox(t, 0, "")
			socket := b.base + "/server"
			server, err := net.Listen("unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			go func() {
				var conns []net.Conn // a connection that nothing refers to is closed by the garbage collector
				for {
					conn, err := server.Accept()
					if err != nil {
						for _, c := range conns {
							c.Close()
						}
						return
					}
					conns = append(conns, conn)
				}
			}()
			b.program = "exec " + b.copyTestBinary() + " keep " + what + " " + socket
			b.start()
			b.waitUntil("a word", func() bool {
				return strings.Contains(b.output(), "line 3\n") || strings.Contains(b.output(), "cannot:")
			})
			if strings.Contains(b.output(), "cannot:") {
				t.Skipf("SKIPPED: %s", b.output())
			}
			began := time.Now()
			probed := Probe(b.pid)
			t.Logf("probed in %v", time.Since(began))
			if probed == nil || probed.Class != Permanent || !strings.Contains(probed.Reason, want) {
				t.Errorf("probe: got %+v, want %q", probed, want)
			}
			_, err = Dump(t.Context(), "/proc/self/exe", b.spec("dump"))
			failure, ok := errors.AsType[*CheckpointError](err)
			if !ok || failure.Class != Permanent || !strings.Contains(failure.Reason, want) {
				t.Errorf("dump: got %v, want %q", err, want)
			}
			b.assertRunning()
		})
	}
}

// assertRunning fails unless the program is running.
func (b *testSandbox) assertRunning() {
	b.t.Helper()
	before := len(b.output())
	defer func() {
		if b.t.Failed() {
			for _, pid := range processTree(b.pid) {
				for _, tid := range threadIDs(pid) {
					at := fmt.Sprintf("task/%d/", tid)
					wchan, _ := os.ReadFile(procPath(pid, at+"wchan"))
					call, _ := os.ReadFile(procPath(pid, at+"syscall"))
					b.t.Logf("%d %s: %s, %s, %s", tid, processName(pid),
						statusFields(procPath(pid, at+"status"))["State"], wchan, call)
				}
			}
		}
	}()
	b.waitUntil("another line", func() bool { return len(b.output()) > before+20 })
	for _, pid := range processTree(b.pid) {
		if s := statusFields(procPath(pid, "status")); s["TracerPid"] != "0" && s["TracerPid"] != "" {
			if isCRIUWorking(atoi(s["TracerPid"])) {
				b.t.Errorf("process %d is still traced", pid)
			}
		}
	}
}

func atoi(text string) (n int) {
	fmt.Sscan(text, &n)
	return n
}

// TestKilledAgent kills the agent at various moments of a dump. CRIU notices and releases
// the task, which runs on, and the next dump succeeds.
func TestKilledAgent(t *testing.T) {
	b := newTestSandbox(t, 1000, "")
	b.program = "exec " + b.copyTestBinary() + " keep nothing -"
	b.start()
	b.waitUntil("a word", func() bool { return strings.Contains(b.output(), "line 3\n") })
	for i := range 16 {
		spec := b.spec(fmt.Sprintf("dump%d", i))
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			<-time.After(time.Duration(i) * 7 * time.Millisecond)
			for _, agent := range processTree(os.Getpid()) {
				if parent(agent) == os.Getpid() && saysReason(agent, AgentName) {
					syscall.Kill(agent, syscall.SIGKILL)
				}
			}
		}()
		_, err := Dump(t.Context(), "/proc/self/exe", spec)
		<-stopped
		t.Logf("killed after %d ms: %v", i*7, err)
		b.assertRunning()
		if isFrozen(b.group) {
			t.Fatal("the task was left frozen")
		}
	}
	dir, _ := b.dump("last")
	b.kill()
	b.restore(dir)
	b.assertRunning()
}

func parent(pid int) int { return atoi(statusFields(procPath(pid, "status"))["PPid"]) }

// isCRIUWorking reports whether a process is a working CRIU.
func isCRIUWorking(pid int) bool { return saysReason(pid, "swrk") }

func saysReason(pid int, word string) bool {
	text, _ := os.ReadFile(procPath(pid, "cmdline"))
	return strings.Contains(string(text), word)
}

// TestZombie dumps a process with a dead child that it does not reap.
func TestZombie(t *testing.T) {
	b := newTestSandbox(t, 0, "")
	b.program = "exec " + b.copyTestBinary() + " keep zombie -"
	b.start()
	b.waitUntil("a word", func() bool { return strings.Contains(b.output(), "line 3\n") })
	dir, _ := b.dump("dump")
	b.assertRunning()
	b.kill()
	b.restore(dir)
	b.assertRunning()
}

// TestFrozenStaysFrozen dumps a suspended task.
func TestFrozenStaysFrozen(t *testing.T) {
	b := newTestSandbox(t, 0, "")
	if b.group == "" {
		t.Skip("SKIPPED: there is no cgroup of version 2")
	}
	b.program = "exec " + b.copyTestBinary() + " keep nothing -"
	b.start()
	b.waitUntil("a word", func() bool { return strings.Contains(b.output(), "line 3\n") })
	if err := cgroup.TaskDir(b.group).Freeze(time.Minute); err != nil {
		t.Fatal(err)
	}
	before := b.output()
	dir, _ := b.dump("dump")
	if !isFrozen(b.group) || b.output() != before {
		t.Errorf("frozen: got %v, and %d bytes of output after %d", isFrozen(b.group), len(b.output()), len(before))
	}
	if err := thawCgroup(b.group); err != nil {
		t.Fatal(err)
	}
	b.assertRunning()
	b.kill()
	b.restore(dir)
	if !strings.HasPrefix(b.output(), before) {
		t.Error("output was lost")
	}
	b.assertRunning()
}
