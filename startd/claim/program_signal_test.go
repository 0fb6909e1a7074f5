package claim

import (
	"bufio"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSurvivesSignal asks about programs that catch a signal, ignore one, or do neither,
// and sends it to see.
func TestSurvivesSignal(t *testing.T) {
	for script, want := range map[string]bool{
		"echo up; exec sleep 1000":                          false,
		"trap '' USR2; echo up; exec sleep 1000":            true,
		"trap 'echo got' USR2; echo up; read a; echo again": true,
	} {
		cmd := exec.Command("sh", "-c", script)
		in, _ := cmd.StdinPipe()
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		bufio.NewReader(out).ReadString('\n')
		if got := survivesSignal(cmd.Process.Pid, false, unix.SIGUSR2); got != want {
			t.Errorf("%s: survives SIGUSR2: got %v", script, got)
		}
		cmd.Process.Signal(unix.SIGUSR2)
		in.Close()
		if want {
			cmd.Process.Signal(unix.SIGTERM)
		}
		cmd.Wait()
		state := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if hasDied := state.Signaled() && state.Signal() == unix.SIGUSR2; hasDied == want {
			t.Errorf("%s: it has ended with %v", script, cmd.ProcessState)
		}
	}
	if !survivesSignal(1<<30, false, unix.SIGUSR2) {
		t.Error("a process that is not there is said to die")
	}
}
