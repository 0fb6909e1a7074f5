package criu

import (
	"os"
	"syscall"
	"testing"
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
