package e2e

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
)

// TestInteractiveJob uses a terminal as users of qsub -I do. It checks the wait, the
// shell and its window size, and every way in which it ends.
func TestInteractiveJob(t *testing.T) {
	t.Parallel()
	p := startForTerminals(t)
	defer p.Stop()
	job := func(seq, want string) {
		t.Helper()
		awaitTrue(t, "job "+seq+": "+want, func() bool {
			stdout, _, _ := p.mustQuery(t, "qstat", "-x", "-f", seq)
			return strings.Contains(stdout, want+"\n")
		})
	}

	w := openTerminal(t, p, "qsub", "-I", "-S", "/bin/sh", "-l", "ncpus=2")
	w.awaitText("qsub: waiting for job 1.")
	w.awaitText("qsub: job 1.")
	w.awaitText(" ready\r\n\r\n")
	w.typeText("PS1='$ '; stty -echo; echo $0:$PBS_ENVIRONMENT:$PBS_JOBID:$TERM:$NCPUS; stty size; pwd\n")
	w.awaitText("-sh:PBS_INTERACTIVE:1.")
	w.awaitText(":vt100:2\r\n")
	w.awaitText("24 80")
	w.awaitText(os.Getenv("HOME"))
	if err := pty.Setsize(w.window, &pty.Winsize{Rows: 40, Cols: 132}); err != nil {
		t.Fatal(err)
	}
	w.typeText("until [ \"$(stty size)\" = '40 132' ]; do sleep 0.05; done; echo grown\n")
	w.awaitText("grown")
	waits := openTerminal(t, p, "qsub", "-I", "-S", "/bin/sh") // no room: it waits
	waits.awaitText("qsub: waiting for job 2.")
	waits.typeText("\x03")
	waits.awaitText("Do you wish to terminate the job and exit (y|[n])? ")
	waits.typeText("what\n")
	waits.awaitText("yes or no please")
	waits.typeText("n\n")
	waits.typeText("type ahead; exit 8\n")
	w.typeText("sh -c 'trap \"echo caught; exit\" INT; echo re''ady; while :; do sleep 0.05; done'\n")
	w.awaitText("ready")
	w.typeText("\x03")
	w.awaitText("caught")
	w.typeText("exit 7\n")
	w.awaitText("\r\nqsub: job 1.")
	w.awaitText(" completed")
	w.awaitExit(0)
	job("1", "Exit_status = 7")
	waits.awaitText("ready")
	waits.awaitText("completed")
	waits.awaitExit(0)
	job("2", "Exit_status = 8")

	w = openTerminal(t, p, "qsub", "-I", "-h")
	w.awaitText("waiting")
	w.typeText("\x03")
	w.awaitText("(y|[n])? ")
	w.typeText("y\n")
	w.awaitText("Job 3.")
	w.awaitText(" is being deleted")
	w.awaitExit(0)
	job("3", "job_state = F")

	w = openTerminal(t, p, "qsub", "-I", "-h")
	w.awaitText("waiting")
	if _, stderr, code := p.Command(t.Context(), "qdel", "4"); code != 0 {
		t.Fatal(stderr)
	}
	w.awaitText("apparently deleted")
	w.awaitExit(1)

	w = openTerminal(t, p, "qsub", "-I", "--", "sh", "-c", "echo alive; sleep 454545")
	w.awaitText("alive")
	w.cmd.Process.Signal(syscall.SIGKILL)
	w.cmd.Wait()
	job("5", "job_state = F")
	awaitTrue(t, "nothing is left of it", func() bool { return !hasCommandLine("sleep\x00454545") })

	w = openTerminal(t, p, "qsub", "-I", "-S", "/bin/sh")
	w.awaitText("ready")
	w.typeText("echo line\n~.")
	w.awaitText("completed")
	w.awaitExit(0)
	job("6", "job_state = F")

	w = openTerminal(t, p, "qsub", "-I", "-l", "walltime=1")
	w.awaitText("ready")
	w.awaitText("=>> PBS: job killed: walltime of 1s exceeded\r\n\r\nqsub: job 7.")
	w.awaitText("completed")
	w.awaitExit(0)
	job("7", "Exit_status = -29")
}

// awaitExit waits for the program in the terminal to end, and checks its exit status.
func (w *testTerminal) awaitExit(code int) {
	w.Helper()
	if err := w.cmd.Wait(); w.cmd.ProcessState.ExitCode() != code {
		w.Errorf("it ended with %v, want exit status %d", err, code)
	}
}
