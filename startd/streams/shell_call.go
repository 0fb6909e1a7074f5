package streams

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/claim"
	"github.com/roost-batch/roost/startd/shell"
)

// Bounds on shells.
const (
	maxShells        = 8         // of an attempt at a time
	maxSpawnedShells = 1024      // likewise, of those that its own job wants
	shellOutputChunk = 32 << 10  // bytes of output that travel at once
	maxInput         = 256 << 10 // bytes of input that travel at once
	maxCommand       = 1 << 20   // bytes of a command and its arguments
	shellDrain       = time.Second
)

// Shell runs a command inside a running attempt and carries its streams, until it, the
// attempt or the conversation ends.
func (m *Server) Shell(stream grpc.BidiStreamingServer[wire.ShellInput, wire.ShellOutput]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	size := 0
	for _, word := range first.GetCommand() {
		size += len(word) + 1
	}
	if size > maxCommand || len(first.GetTerm()) > maxCommand {
		return fmt.Errorf("shell: %w: the command is larger than %d bytes", roost.Exhausted, maxCommand)
	}
	a, err := m.acquireAttempt(stream.Context(), first.GetSchedd(), first.GetAttempt())
	if err != nil {
		return err
	}
	defer a.ReleaseFiles()
	most := int32(maxShells)
	if first.GetOfJob() {
		most = maxSpawnedShells
	}
	if !a.AcquireShell(first.GetOfJob(), most) {
		return fmt.Errorf("task %v: %w: it has %d shells already", a.ID().Task, roost.Exhausted, most)
	}
	defer a.ReleaseShell(first.GetOfJob())
	ctx, cancel := a.FilesContext(stream.Context())
	defer cancel()
	if first.GetSession() {
		return m.runInteractiveShell(ctx, a, first, stream)
	}
	s, err := m.openShell(ctx, a, first)
	if err != nil {
		return err
	}
	m.log.Info("shell", "attempt", a.Label(), "terminal", first.GetTerminal())
	c := &shellCall{stream: stream, attempt: a, shell: s}
	if err := c.carryStreams(ctx); err != nil {
		return err
	}
	return c.sendExit(ctx)
}

// openShell starts the command in the attempt's processes' place.
func (m *Server) openShell(ctx context.Context, a *claim.Attempt, first *wire.ShellInput) (*shell.Shell, error) {
	if a.HasEnded() {
		return nil, taskEndedError(a)
	}
	pid, p, err := m.findProcess(ctx, a)
	if err != nil {
		return nil, err
	}
	if p.Group != nil && p.Group.Frozen() { // it would stand still as well, and nobody could say why
		return nil, fmt.Errorf("task %v: %w: its processes stand still, suspended or for a checkpoint", a.ID().Task,
			roost.Conflict)
	}
	task, err := shell.OpenTask(pid, p.Starter, a.Credential().UID)
	if err != nil {
		return nil, fmt.Errorf("task %v: %w", a.ID().Task, err)
	}
	defer task.Close()
	o := shell.StartOptions{
		Program: userfiles.SelfExecutable, UID: a.Credential().UID, GID: a.Credential().GID,
		Groups:  a.Credential().Groups,
		Command: first.GetCommand(),
		Login:   first.GetLogin(), Terminal: first.GetTerminal(), Term: first.GetTerm(),
		Rows: terminalSize(first.GetRows()), Cols: terminalSize(first.GetColumns()),
	}
	if p.Group != nil {
		o.Join = p.Group.AddTask
	}
	return shell.Start(task, o)
}

// terminalSize is a size as terminals have it.
func terminalSize(n uint32) uint16 { return uint16(min(n, 1<<16-1)) }

func taskEndedError(a *claim.Attempt) error {
	return fmt.Errorf("task %v: %w: its attempt %d is over on this node", a.ID().Task, roost.Finished, a.ID().Attempt)
}

// findProcess asks the loop for the attempt's first process, and its runner for the
// starter.
func (m *Server) findProcess(ctx context.Context, a *claim.Attempt) (pid int, p claim.Processes, err error) {
	var h *claim.Runner
	done := m.loop.Find(a.ID(), func(r *claim.Runner, first int) { h, pid = r, first })
	answer := make(chan claim.Processes, 1)
	for asked := done; ; {
		select {
		case <-asked:
			if h == nil || pid == 0 {
				return 0, p, fmt.Errorf("task %v: %w: its processes do not run yet, or not any more", a.ID().Task,
					roost.Conflict)
			}
			asked = nil
			h.Send(claim.ProcessesCmd{ID: a.ID(), Reply: answer})
		case found := <-answer:
			return pid, found, nil
		case <-a.Ended():
			return 0, p, taskEndedError(a)
		case <-m.loop.Done():
			return 0, p, fmt.Errorf("task %v: %w: the startd is going away", a.ID().Task, roost.Unavailable)
		case <-ctx.Done():
			return 0, p, ctx.Err()
		}
	}
}

// shellCall is one shell under way.
type shellCall struct {
	stream      grpc.BidiStreamingServer[wire.ShellInput, wire.ShellOutput]
	attempt     *claim.Attempt
	shell       *shell.Shell
	hangUpFirst bool // the shell is hung up on before it is killed
	output      chan *wire.ShellOutput
}

// carryStreams carries streams until the end, and leaves nothing behind.
func (c *shellCall) carryStreams(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.output = make(chan *wire.ShellOutput)
	readers := 1
	if c.shell.Err != nil {
		readers++
		go c.readOutput(ctx, c.shell.Err, true)
	}
	go c.readOutput(ctx, c.shell.Out, false)
	inputEnded := make(chan error, 1)
	go func() { inputEnded <- c.writeInput() }()
	err := c.sendOutput(ctx, readers, inputEnded)
	c.awaitEnd()
	return err
}

// awaitEnd waits until the command is gone, and sees to it that it goes.
func (c *shellCall) awaitEnd() {
	if c.hangUpFirst {
		hangUpShell(c.shell)
	}
	c.shell.Kill()
	<-c.shell.Ended()
	c.shell.Close()
}

// sendOutput sends what the command writes, until there is no more.
func (c *shellCall) sendOutput(ctx context.Context, readers int, input <-chan error) error {
	ended, drained := c.shell.Ended(), (<-chan time.Time)(nil)
	whole := ended
	for readers > 0 {
		select {
		case out := <-c.output:
			if out == nil {
				readers--
				continue
			}
			if err := c.stream.Send(out); err != nil {
				return err
			}
		case err := <-input:
			return err
		// what it has written is there to be read; a process that left its session may
		// hold the streams open
		case <-ended:
			ended = nil
			timer := time.NewTimer(shellDrain)
			defer timer.Stop()
			drained = timer.C
		case <-drained:
			return nil
		case <-c.attempt.Ended():
			return taskEndedError(c.attempt)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	select { // it has closed its streams, and may go on
	case <-whole:
	case err := <-input:
		return err
	case <-c.attempt.Ended():
		return taskEndedError(c.attempt)
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// sendExit says how the command ended. Where the end of the task has ended it, that is
// the answer.
func (c *shellCall) sendExit(ctx context.Context) error {
	code, signal := c.shell.Status()
	if signal != 0 && !c.attempt.HasEnded() {
		timer := time.NewTimer(shellDrain)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-c.attempt.Ended():
		case <-ctx.Done():
		}
	}
	if signal != 0 && c.attempt.HasEnded() {
		return taskEndedError(c.attempt)
	}
	return c.stream.Send(&wire.ShellOutput{Ended: true, Code: int32(code), Signal: int32(signal)})
}

// readOutput passes on what comes from one stream of the command, and nil at its end.
func (c *shellCall) readOutput(ctx context.Context, from io.Reader, stderr bool) {
	pass := func(out *wire.ShellOutput) bool {
		select {
		case c.output <- out:
			return true
		case <-ctx.Done():
			return false
		}
	}
	for {
		data := make([]byte, shellOutputChunk)
		n, err := from.Read(data)
		if n > 0 && !pass(&wire.ShellOutput{Data: data[:n], Stderr: stderr}) {
			return
		}
		if err != nil {
			pass(nil)
			return
		}
	}
}

// writeInput passes on what the user types, no faster than it is taken, until the user
// has gone.
func (c *shellCall) writeInput() error {
	for {
		in, err := c.stream.Recv()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("shell: %w", context.Canceled)
		}
		if err != nil {
			return err
		}
		if len(in.GetData()) > maxInput {
			return fmt.Errorf("shell: %w: more than %d bytes of input at once", roost.Exhausted, maxInput)
		}
		c.shell.Resize(terminalSize(in.GetRows()), terminalSize(in.GetColumns()))
		_, _ = c.shell.In.Write(in.GetData()) // a command that reads no more is no error, as with pipes
		if in.GetEof() {
			c.shell.CloseInput()
		}
	}
}
