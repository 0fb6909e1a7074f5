package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	ucli "github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/jobs"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// InputChunk is how much of the standard input travels at once, in bytes.
const InputChunk = 32 << 10

// SSHCommand returns roost ssh: open a shell inside a running task.
func SSHCommand() *frame.Command {
	return &frame.Command{
		Name: "ssh", Group: frame.GroupSee, Summary: "open a shell inside a running task",
		Synopsis: "JOB [COMMAND [ARGUMENT…]]", MinOperands: 1, MaxOperands: -1, OperandName: "a job or task",
		FlagsFirst: true, Run: runSSH,
		Description: "Opens a shell inside a running task, or runs a command there: on the task's node, as its " +
			"owner, in its working directory, with its environment, and within its namespaces, limits and devices. " +
			"What runs there uses the task's cores and memory, and ends with it. Only the owner of the job and root " +
			"may. A job of several tasks needs the task, as in 123[7] or last[7]. Ends with the exit status of the " +
			"command (128 and the number for a signal).",
		Examples: []frame.Example{
			{Line: "roost ssh last", Description: "look around in your newest job"},
			{Line: "roost ssh 123[7] ps aux", Description: "what runs in a task"},
			{Line: "roost ssh -t 123 top", Description: "a program that needs a terminal"},
		},
		Flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "terminal", Aliases: []string{"t"},
				Usage: "give a command a terminal too; a shell has one if this is one"},
			&ucli.BoolFlag{Name: "no-terminal", Aliases: []string{"T"},
				Usage: "do without a terminal: streams as they are, standard error apart"},
		},
	}
}

// LocalTerminal is the terminal that a command was called from.
type LocalTerminal struct {
	In   *os.File // nil: there is none
	size *os.File // what has a size
}

// OpenTerminal finds out whether the command has a terminal on both sides.
func OpenTerminal(c *frame.Invocation) LocalTerminal {
	in, isFile := c.Stdin.(*os.File)
	out, _ := c.Stdout.(*os.File)
	if !isFile || out == nil || !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) {
		return LocalTerminal{}
	}
	return LocalTerminal{In: in, size: out}
}

// SetRaw passes every key to the task, also those that would end this program. The
// function that it returns restores the terminal.
func (k *LocalTerminal) SetRaw() (func(), error) {
	if k.In == nil {
		return func() {}, nil
	}
	saved, err := term.MakeRaw(int(k.In.Fd()))
	if err != nil {
		return nil, frame.KindErrorf(roost.Unavailable, "the terminal cannot be set up: %v", err)
	}
	var once sync.Once
	return func() { once.Do(func() { term.Restore(int(k.In.Fd()), saved) }) }, nil
}

// WindowSize is the size of the window, 0 where it is not known.
func (k *LocalTerminal) WindowSize() (rows, columns uint32) {
	if k.size == nil {
		return 0, 0
	}
	w, h, err := term.GetSize(int(k.size.Fd()))
	if err != nil || w < 0 || h < 0 {
		return 0, 0
	}
	return uint32(h), uint32(w)
}

// remoteCommand is what runs in the task. A single word that no program is called by is a
// line for the shell, as ssh(1) takes it.
func remoteCommand(words []string) []string {
	if len(words) == 1 && strings.ContainsAny(words[0], " \t\n;&|<>()$`\"'*?~") {
		return []string{"/bin/sh", "-c", words[0]}
	}
	return words
}

func runSSH(c *frame.Invocation) error {
	id, err := jobs.ResolveSelector(c, c.Args[0])
	if err != nil {
		return err
	}
	k := OpenTerminal(c)
	first := &scheddapi.ShellInput{Task: id, Command: remoteCommand(c.Args[1:]), Term: c.Getenv("TERM")}
	switch {
	case c.Flag("terminal") && c.Flag("no-terminal"):
		return frame.UsageErrorf("--terminal and --no-terminal exclude each other")
	case c.Flag("terminal"):
		first.Terminal = true
	case !c.Flag("no-terminal"):
		first.Terminal = k.In != nil && len(first.GetCommand()) == 0
	}
	if !first.GetTerminal() {
		k = LocalTerminal{}
	}
	first.Rows, first.Columns = k.WindowSize()
	return RunRemoteShell(c, first, k)
}

// RunRemoteShell runs a shell or command in a task, connected with the user's terminal.
// It does not start again when the connection breaks: the shell and its state are lost
// then. It is not begun anew when it breaks: the shell is gone then, with all that it
// knew.
func RunRemoteShell(c *frame.Invocation, first *scheddapi.ShellInput, k LocalTerminal) error {
	s, err := c.ConnectSchedd()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(c.Context)
	defer cancel()
	stream, err := s.Shell(ctx)
	if err != nil {
		return frame.DecodeError(err)
	}
	if err := stream.Send(first); err != nil && !errors.Is(err, io.EOF) {
		return frame.DecodeError(err)
	}
	restore, err := k.SetRaw()
	if err != nil {
		return err
	}
	defer restore()
	signals, release := c.NotifyInterrupts()
	defer release()
	say := &StreamWriter{Ctx: ctx, Messages: make(chan *scheddapi.ShellInput)}
	go say.SendQueued(stream)
	go say.relayInput(c.Stdin)
	go say.RelayResizes(k)
	go func() { // from elsewhere, as in raw mode the keys are the task's
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
		}
	}()
	err = receiveOutput(c, stream)
	restore() // before anything is said about it
	if errors.Is(err, context.Canceled) && c.Context.Err() == nil {
		return frame.ExitError(128 + 2)
	}
	return err
}

// receiveOutput shows what the command writes, and returns how it ended.
func receiveOutput(c *frame.Invocation, stream scheddapi.Exchange[scheddapi.ShellInput, scheddapi.ShellOutput]) error {
	for {
		out, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return frame.KindErrorf(roost.Unavailable, "the conversation with the task broke off")
		}
		if err != nil {
			return frame.DecodeError(err)
		}
		to := c.Stdout
		if out.GetStderr() {
			to = c.Stderr
		}
		if _, err := to.Write(out.GetData()); err != nil {
			return frame.KindErrorf(roost.NoOutput, "write: %v", err)
		}
		if !out.GetEnded() {
			continue
		}
		if n := out.GetSignal(); n != 0 {
			fmt.Fprintf(c.Stderr, "roost: the command was ended by signal %d (%v)\r\n", n, syscall.Signal(n))
			return frame.ExitError(128 + int(n))
		}
		if out.GetCode() != 0 {
			return frame.ExitError(out.GetCode())
		}
		return nil
	}
}

// StreamWriter is the sending side of the conversation: several goroutines queue
// messages, and one sends them.
type StreamWriter struct {
	Ctx      context.Context // of the conversation
	Messages chan *scheddapi.ShellInput
}

// QueueMessage hands over a message to be sent, and reports false where the stream has
// ended.
func (s *StreamWriter) QueueMessage(in *scheddapi.ShellInput) bool {
	select {
	case s.Messages <- in:
		return true
	case <-s.Ctx.Done():
		return false
	}
}

// SendQueued sends what is queued, no faster than the other side takes it.
func (s *StreamWriter) SendQueued(stream scheddapi.Exchange[scheddapi.ShellInput, scheddapi.ShellOutput]) {
	for {
		select {
		case in := <-s.Messages:
			if stream.Send(in) != nil {
				return // why, the other direction tells
			}
		case <-s.Ctx.Done():
			return
		}
	}
}

// relayInput passes on the standard input.
func (s *StreamWriter) relayInput(from io.Reader) {
	for {
		buffer := make([]byte, InputChunk)
		n, err := from.Read(buffer)
		if n > 0 && !s.QueueMessage(&scheddapi.ShellInput{Data: buffer[:n]}) {
			return
		}
		if err != nil {
			s.QueueMessage(&scheddapi.ShellInput{Eof: true})
			return
		}
	}
}

// RelayResizes queues the size of the window whenever it changes.
func (s *StreamWriter) RelayResizes(k LocalTerminal) {
	if k.size == nil {
		return
	}
	changes := make(chan os.Signal, 1)
	signal.Notify(changes, syscall.SIGWINCH)
	defer signal.Stop(changes)
	for {
		select {
		case <-changes:
		case <-s.Ctx.Done():
			return
		}
		if rows, columns := k.WindowSize(); rows > 0 &&
			!s.QueueMessage(&scheddapi.ShellInput{Rows: rows, Columns: columns}) {
			return
		}
	}
}
