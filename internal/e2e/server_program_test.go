package e2e

import (
	"os/exec"
	"runtime"
	"syscall"
	"testing"
)

// startServer starts another program's server, which gets death when this process ends.
// It starts from a thread that lives until the server ends: for the kernel the end of
// that thread is the end of the parent (prctl(2), PR_SET_PDEATHSIG), and other tests here
// end threads that are in namespaces. The server is stopped with SIGTERM at the end of
// the test, and ended gets what Wait says.
func startServer(t *testing.T, cmd *exec.Cmd, death syscall.Signal, ended func(error)) {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: death}
	started, exited := make(chan error, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			exited <- cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		ended(<-exited)
	})
}
