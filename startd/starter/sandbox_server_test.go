package starter

import (
	"os"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/startd/starter/proto"
)

// TestServerFailures checks a server that ends before it has created a process. Its
// report names the step that failed; one that was killed has reported nothing.
func TestServerFailures(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: mounts need root")
	}
	setup, err := syscall.Open("init/setup_"+runtime.GOARCH+".bin", unix.O_PATH|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("SKIPPED: no sandboxes on this architecture: %v", err)
	}
	high, err := unix.FcntlInt(uintptr(setup), unix.F_DUPFD_CLOEXEC, firstSetupFD)
	syscall.Close(setup)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(high)
	for _, killed := range []bool{false, true} {
		s := &starterProcess{setup: high, dir: t.TempDir(), group: taskCgroup{fd: -1}} // without a staged root
		if why := s.startServer(true); why.step != proto.StepNone {
			t.Fatal(why)
		}
		root := s.dir + stagedRoot
		want := startError{proto.MakeSandbox, syscall.ENOENT, "mount on " + root}
		if killed {
			syscall.Kill(s.server.pid, syscall.SIGKILL)
			unix.Waitid(unix.P_PID, s.server.pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
			want = startError{proto.MakeSandbox, syscall.EIO, "it ended before it was ready"}
			if n, _ := syscall.Read(s.server.reports, make([]byte, reportSize)); n > 0 {
				want.errno = 0 // it had ended by itself before
			}
		}
		_, why, ended := s.server.create(newSyscallList(), false)
		if !ended || want.errno != 0 && why != want {
			t.Errorf("killed %v: got %+v, ended %v, want %+v", killed, why, ended, want)
		}
		s.stopServer()
		if s.server.pid != 0 {
			t.Errorf("a server that was stopped has pid %d", s.server.pid)
		}
	}
}
