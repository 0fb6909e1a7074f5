package streams

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/claim"
	"github.com/roost-batch/roost/startd/shell"
)

// runInteractiveShell is the shell that an interactive attempt is for. However it ends,
// the attempt does.
func (m *Server) runInteractiveShell(ctx context.Context, a *claim.Attempt, first *wire.ShellInput,
	stream grpc.BidiStreamingServer[wire.ShellInput, wire.ShellOutput]) error {
	if !a.IsInteractive() {
		return fmt.Errorf("task %v: %w: it is no interactive job", a.ID().Task, roost.Invalid)
	}
	s, err := m.openShell(ctx, a, first)
	if err != nil {
		return err // the attempt goes on to wait for its terminal
	}
	c := &shellCall{stream: stream, attempt: a, shell: s, hangUpFirst: true}
	if !a.TakeTerminal() {
		c.awaitEnd()
		return fmt.Errorf("task %v: %w: it has, or had, its terminal already", a.ID().Task, roost.Finished)
	}
	m.log.Info("session", "attempt", a.Label())
	if err = stream.Send(&wire.ShellOutput{Ready: true}); err == nil {
		err = c.carryStreams(ctx)
	} else {
		c.awaitEnd()
	}
	if err != nil {
		a.EndInteractive(claim.HangUpEnd())
		return err
	}
	code, signal := s.Status()
	a.EndInteractive(claim.ShellEnd{Code: code, Signal: signal})
	return stream.Send(&wire.ShellOutput{Ended: true, Code: int32(code), Signal: int32(signal)})
}

// hangUpShell ends the shell of a session whose user has gone, as a terminal does. It
// may save its history, and tell what it has started.
func hangUpShell(s *shell.Shell) {
	s.HangUp()
	timer := time.NewTimer(shellDrain)
	defer timer.Stop()
	select {
	case <-s.Ended():
	case <-timer.C:
	}
}
