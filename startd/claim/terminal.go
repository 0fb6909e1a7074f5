package claim

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// The program of an interactive job is its user's login shell, on a terminal that comes
// from where the job was submitted. It is a shell as any other that is opened in a task,
// so that it has the task's place, rights and limits; the task itself is a small program
// that waits for it, and then ends as it did. So walltime, freezing, signals and the end
// of the task mean for an interactive job what they mean for all others.
//
//	starter ─▶ waits ◀─ pipe ── session: the shell and its terminal ◀─ stream ── schedd ◀─ qsub
//
// The pipe lies in the directory of the attempt's streams, which is ours. The program
// starts nothing and writes nothing before the terminal is there.

// terminalName is the pipe's, in that directory.
const terminalName = "terminal"

// terminalWaitProgram reads from the pipe how the shell has ended ("exit CODE" or "kill
// SIGNAL") and ends likewise.
const terminalWaitProgram = `read -r how n < "$0" || exit 129; [ "$how" = kill ] || exit "$n"; kill -"$n" $$; exit $((128 + n))`

// attachTimeout is how long a job waits for its terminal. Whoever has that comes at once,
// or after a restart of the schedd.
const attachTimeout = time.Minute

// waitForTerminal is what runs in place of an interactive job's program.
func waitForTerminal(a *Attempt) (arguments []string) {
	return []string{"/bin/sh", "-c", terminalWaitProgram, a.sandboxPath(filepath.Join(a.record.IO, terminalName))}
}

// awaitTerminal ends an interactive attempt whose terminal does not come: nobody is there
// any more.
func (h *Runner) awaitTerminal(a *Attempt) {
	if !a.record.Interactive {
		return
	}
	timer := time.AfterFunc(attachTimeout, func() {
		if a.TakeTerminal() {
			h.machine.log.Info("nobody has come to the terminal", "attempt", a.Label())
			a.EndInteractive(HangUpEnd())
		}
	})
	go func() {
		<-a.ended
		timer.Stop()
	}()
}

// ShellEnd is how the shell of a session has ended.
type ShellEnd struct {
	Code   int
	Signal unix.Signal
}

func HangUpEnd() ShellEnd { return ShellEnd{Signal: unix.SIGHUP} }

// EndInteractive has the attempt end as its shell did. The pipe keeps the word for a
// program that has not come to read it yet.
func (a *Attempt) EndInteractive(how ShellEnd) {
	if a.HasEnded() {
		return
	}
	text := fmt.Sprintf("exit %d\n", how.Code)
	if how.Signal != 0 {
		text = fmt.Sprintf("kill %d\n", how.Signal)
	}
	// both ways: so neither end waits for the other
	pipe, err := os.OpenFile(filepath.Join(a.record.IO, terminalName), os.O_RDWR|unix.O_NOFOLLOW, 0)
	if err == nil {
		_, err = pipe.WriteString(text)
	}
	if err != nil {
		a.machine.log.Error("an interactive job is not told that its terminal is gone", "attempt", a.Label(), "err",
			err)
		return
	}
	go func() {
		defer pipe.Close()
		select {
		case <-a.ended:
		case <-a.machine.host.Done():
		}
	}()
}

// IsInteractive reports whether the attempt is for a terminal.
func (a *Attempt) IsInteractive() bool { return a.record.Interactive }

// TakeTerminal reports whether the caller is the first to decide on the terminal of an
// interactive attempt. Nobody else gets it then.
func (a *Attempt) TakeTerminal() bool { return a.sessionDecided.CompareAndSwap(false, true) }
