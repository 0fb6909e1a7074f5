package startd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/shell"
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
// or after a restart of his schedd.
const attachTimeout = time.Minute

// prepareTerminal makes the pipe. Only the job's user can read it, and only we write to
// it: root can in any case, and whoever runs a startd as himself, and so his own jobs
// alone, needs the right.
func (h *claimRunner) prepareTerminal(path string) error {
	own := int(h.cred.UID) == os.Geteuid()
	mode := uint32(0o400)
	if own {
		mode = 0o600
	}
	if err := unix.Mkfifo(path, mode); err != nil {
		return fmt.Errorf("pipe of the terminal: %w", err)
	}
	if own {
		return nil
	}
	return os.Lchown(path, int(h.cred.UID), int(h.cred.GID))
}

// waitForTerminal is what runs in place of an interactive job's program.
func waitForTerminal(a *claimAttempt) (arguments []string) {
	return []string{"/bin/sh", "-c", terminalWaitProgram, a.sandboxPath(filepath.Join(a.record.IO, terminalName))}
}

// awaitTerminal ends an interactive attempt whose terminal does not come: nobody is there
// any more.
func (h *claimRunner) awaitTerminal(a *claimAttempt) {
	if !a.record.Interactive {
		return
	}
	timer := time.AfterFunc(attachTimeout, func() {
		if a.sessionDecided.CompareAndSwap(false, true) {
			h.host.log.Info("nobody has come to the terminal", "attempt", a.label())
			h.host.endInteractive(a, hangUpEnd())
		}
	})
	go func() {
		<-a.ended
		timer.Stop()
	}()
}

// shellEnd is how the shell of a session has ended.
type shellEnd struct {
	code   int
	signal unix.Signal
}

func hangUpEnd() shellEnd { return shellEnd{signal: unix.SIGHUP} }

// runInteractiveShell is the shell that an interactive attempt is for. However it ends,
// the attempt does.
func (m *claimHost) runInteractiveShell(ctx context.Context, a *claimAttempt, first *wire.ShellInput,
	stream grpc.BidiStreamingServer[wire.ShellInput, wire.ShellOutput]) error {
	if !a.record.Interactive {
		return fmt.Errorf("task %v: %w: it is no interactive job", a.id.Task, roost.Invalid)
	}
	s, err := m.openShell(ctx, a, first)
	if err != nil {
		return err // the attempt goes on to wait for its terminal
	}
	c := &shellCall{stream: stream, attempt: a, shell: s, hangUpFirst: true}
	if !a.sessionDecided.CompareAndSwap(false, true) {
		c.awaitEnd()
		return fmt.Errorf("task %v: %w: it has, or had, its terminal already", a.id.Task, roost.Finished)
	}
	m.log.Info("session", "attempt", a.label())
	if err = stream.Send(&wire.ShellOutput{Ready: true}); err == nil {
		err = c.carryStreams(ctx)
	} else {
		c.awaitEnd()
	}
	if err != nil {
		m.endInteractive(a, hangUpEnd())
		return err
	}
	code, signal := s.Status()
	m.endInteractive(a, shellEnd{code, signal})
	return stream.Send(&wire.ShellOutput{Ended: true, Code: int32(code), Signal: int32(signal)})
}

// endInteractive has the attempt end as its shell did. The pipe keeps the word for a
// program that has not come to read it yet.
func (m *claimHost) endInteractive(a *claimAttempt, how shellEnd) {
	if a.hasEnded() {
		return
	}
	text := fmt.Sprintf("exit %d\n", how.code)
	if how.signal != 0 {
		text = fmt.Sprintf("kill %d\n", how.signal)
	}
	// both ways: so neither end waits for the other
	pipe, err := os.OpenFile(filepath.Join(a.record.IO, terminalName), os.O_RDWR|unix.O_NOFOLLOW, 0)
	if err == nil {
		_, err = pipe.WriteString(text)
	}
	if err != nil {
		m.log.Error("an interactive job is not told that its terminal is gone", "attempt", a.label(), "err", err)
		return
	}
	go func() {
		defer pipe.Close()
		select {
		case <-a.ended:
		case <-m.loopDone:
		}
	}()
}

// hangUpShell ends the shell of a session whose user has gone, as a terminal does that is
// switched off: it may save its history, and tell what it has started.
func hangUpShell(s *shell.Shell) {
	s.HangUp()
	timer := time.NewTimer(shellDrain)
	defer timer.Stop()
	select {
	case <-s.Ended():
	case <-timer.C:
	}
}
