package starter

import (
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/startd/starter/proto"
)

// TestWrappedFailures checks failures before a sandbox has a first process. The report
// names the step that failed; a process that was killed has reported nothing.
func TestWrappedFailures(t *testing.T) {
	setup, err := syscall.Open("init/setup_"+runtime.GOARCH+".bin", unix.O_PATH|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("SKIPPED: no sandboxes on this architecture: %v", err)
	}
	defer syscall.Close(setup)
	s := &starterProcess{setup: setup}
	for _, test := range []struct {
		name string
		add  func(l *syscallList)
		want startError
	}{
		{"a call fails", func(l *syscallList) {
			l.must(proto.MakeSandbox, "user namespace", unix.SYS_SETNS, 99, 0)
		}, startError{proto.MakeSandbox, syscall.EBADF, "user namespace"}},
		{"killed", func(l *syscallList) {
			here := l.here()
			l.try(syscall.SYS_RT_SIGPROCMASK, 0, 0, 0, 8)
			l.jump(here)
		}, startError{proto.MakeSandbox, syscall.EIO, "it ended before it was ready"}},
		{"ended early", func(l *syscallList) {
			l.exit()
		}, startError{proto.MakeSandbox, syscall.EIO, "it ended before it was ready"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newSyscallList()
			test.add(l)
			list, why := l.write()
			if why.step != proto.StepNone {
				t.Fatal(why)
			}
			defer syscall.Close(list)
			var reports [2]int
			if err := syscall.Pipe2(reports[:], syscall.O_CLOEXEC|syscall.O_NONBLOCK); err != nil {
				t.Fatal(err)
			}
			defer syscall.Close(reports[0])
			maker, err := s.forkSetup([]uintptr{0, 1, 2, uintptr(list), uintptr(reports[1])}, &syscall.SysProcAttr{})
			defer syscall.Close(reports[1])
			if err != nil {
				t.Fatal(err)
			}
			if test.name == "killed" {
				syscall.Kill(maker, syscall.SIGKILL)
			}
			if _, _, why := awaitWrapped(maker, list, reports[0], l.failuresOnly()); why != test.want {
				t.Errorf("got %+v, want %+v", why, test.want)
			}
		})
	}
}
