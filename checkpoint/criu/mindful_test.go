package criu

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestUnheard restores a task whose first process was saved before it had heard that it was to live on without its parent, as happens where others leave it
// no time: it does not die with the agent that has restored it.
func TestUnheard(t *testing.T) {
	b := newBox(t, 0, "")
	b.first = b.base + "/init"
	first, err := os.ReadFile("../../startd/starter/shim/init/init_amd64.bin")
	if err == nil {
		err = os.WriteFile(b.first, first, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	b.program = "exec " + b.copyTest() + " keep nothing -"
	b.start()
	b.await("first process", func() bool { return command(b.pid) == "init" })
	b.goesOn()
	if !release(b.pid, syscall.SIGUSR1, hearing) {
		t.Fatal("it does not hear")
	}
	dir, _ := b.dump("dump")
	b.kill()
	b.mindful = true
	b.restore(dir)
	b.goesOn()
}

// TestEndedUnasked: a first process that ended before it was asked, as that of a task whose work was nearly done when it was saved, has nothing more to
// hear, and nobody waits for it.
func TestEndedUnasked(t *testing.T) {
	ended := exec.Command("true")
	if err := ended.Start(); err != nil {
		t.Fatal(err)
	}
	defer ended.Wait()
	if err := unix.Waitid(unix.P_PID, ended.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	if !release(ended.Process.Pid, syscall.SIGUSR2, patience) {
		t.Error("it was waited for until patience ended")
	}
}
