package criu

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestDetachBeforeHandler restores a task whose first process was dumped before it
// handled the signal to outlive its parent. That happens on a busy machine. The process
// must not die with the agent that restored it.
func TestDetachBeforeHandler(t *testing.T) {
	b := newTestSandbox(t, 0, "")
	b.initProgram = b.base + "/init"
	first, err := os.ReadFile("../../startd/starter/init/init_amd64.bin")
	if err == nil {
		err = os.WriteFile(b.initProgram, first, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	b.program = "exec " + b.copyTestBinary() + " keep nothing -"
	b.start()
	b.waitUntil("first process", func() bool { return processName(b.pid) == "init" })
	b.assertRunning()
	if !signalInit(b.pid, syscall.SIGUSR1, restoredDetachTimeout) {
		t.Fatal("it does not hear")
	}
	dir, _ := b.dump("dump")
	b.kill()
	b.detachOnRestore = true
	b.restore(dir)
	b.assertRunning()
}

// TestEndedBeforeDetach restores a first process that ended before the signal. It was
// almost done when it was dumped. It needs no signal, and nothing waits for it.
func TestEndedBeforeDetach(t *testing.T) {
	ended := exec.Command("true")
	if err := ended.Start(); err != nil {
		t.Fatal(err)
	}
	defer ended.Wait()
	if err := unix.Waitid(unix.P_PID, ended.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	if !signalInit(ended.Process.Pid, syscall.SIGUSR2, detachTimeout) {
		t.Error("it was waited for until patience ended")
	}
}
