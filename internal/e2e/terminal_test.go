package e2e

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
)

// TestInteractiveJob sits at a terminal as users of qsub -I do: the wait, the shell and its window, every way in which it ends.
func TestInteractiveJob(t *testing.T) {
	t.Parallel()
	p := startForTerminals(t)
	defer p.Stop()
	job := func(seq, want string) {
		t.Helper()
		awaitTrue(t, "job "+seq+": "+want, func() bool {
			stdout, _, _ := p.look(t, "qstat", "-x", "-f", seq)
			return strings.Contains(stdout, want+"\n")
		})
	}

	w := openTerminal(t, p, "qsub", "-I", "-S", "/bin/sh", "-l", "ncpus=2")
	w.until("qsub: waiting for job 1.")
	w.until("qsub: job 1.")
	w.until(" ready\r\n\r\n")
	w.types("PS1='$ '; stty -echo; echo $0:$PBS_ENVIRONMENT:$PBS_JOBID:$TERM:$NCPUS; stty size; pwd\n")
	w.until("-sh:PBS_INTERACTIVE:1.")
	w.until(":vt100:2\r\n")
	w.until("24 80")
	w.until(os.Getenv("HOME"))
	if err := pty.Setsize(w.window, &pty.Winsize{Rows: 40, Cols: 132}); err != nil {
		t.Fatal(err)
	}
	w.types("until [ \"$(stty size)\" = '40 132' ]; do sleep 0.05; done; echo grown\n")
	w.until("grown")
	waits := openTerminal(t, p, "qsub", "-I", "-S", "/bin/sh") // no room: it waits
	waits.until("qsub: waiting for job 2.")
	waits.types("\x03")
	waits.until("Do you wish to terminate the job and exit (y|[n])? ")
	waits.types("what\n")
	waits.until("yes or no please")
	waits.types("n\n")
	waits.types("type ahead; exit 8\n")
	w.types("sh -c 'trap \"echo caught; exit\" INT; echo re''ady; while :; do sleep 0.05; done'\n")
	w.until("ready")
	w.types("\x03")
	w.until("caught")
	w.types("exit 7\n")
	w.until("\r\nqsub: job 1.")
	w.until(" completed")
	w.ends(0)
	job("1", "Exit_status = 7")
	waits.until("ready")
	waits.until("completed")
	waits.ends(0)
	job("2", "Exit_status = 8")

	w = openTerminal(t, p, "qsub", "-I", "-h")
	w.until("waiting")
	w.types("\x03")
	w.until("(y|[n])? ")
	w.types("y\n")
	w.until("Job 3.")
	w.until(" is being deleted")
	w.ends(0)
	job("3", "job_state = F")

	w = openTerminal(t, p, "qsub", "-I", "-h")
	w.until("waiting")
	if _, stderr, code := p.Command(t.Context(), "qdel", "4"); code != 0 {
		t.Fatal(stderr)
	}
	w.until("apparently deleted")
	w.ends(1)

	w = openTerminal(t, p, "qsub", "-I", "--", "sh", "-c", "echo alive; sleep 454545")
	w.until("alive")
	w.cmd.Process.Signal(syscall.SIGKILL)
	w.cmd.Wait()
	job("5", "job_state = F")
	awaitTrue(t, "nothing is left of it", func() bool { return !runs("sleep\x00454545") })

	w = openTerminal(t, p, "qsub", "-I", "-S", "/bin/sh")
	w.until("ready")
	w.types("echo line\n~.")
	w.until("completed")
	w.ends(0)
	job("6", "job_state = F")

	w = openTerminal(t, p, "qsub", "-I", "-l", "walltime=1")
	w.until("ready")
	w.until("=>> PBS: job killed: walltime of 1s exceeded\r\n\r\nqsub: job 7.")
	w.until("completed")
	w.ends(0)
	job("7", "Exit_status = -29")
}

// ends waits for the program in the window to end, and looks at its exit status.
func (w *terminal) ends(code int) {
	w.Helper()
	if err := w.cmd.Wait(); w.cmd.ProcessState.ExitCode() != code {
		w.Errorf("it ended with %v, want exit status %d", err, code)
	}
}
