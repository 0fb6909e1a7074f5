package cli

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
	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// inputChunk is how much of the standard input travels at once, in bytes.
const inputChunk = 32 << 10

func sshCommand() *command {
	return &command{
		name: "ssh", group: groupSee, summary: "open a shell inside a running task",
		synopsis: "JOB [COMMAND [ARGUMENT…]]", minOperands: 1, maxOperands: -1, operandName: "a job or task",
		flagsFirst: true, run: runSSH,
		description: "Opens a shell inside a running task, or runs a command there: on the task's node, as its " +
			"owner, in its working directory, with its environment, and within its namespaces, limits and devices. " +
			"What runs there uses the task's cores and memory, and ends with it. Only the owner of the job and root " +
			"may. A job of several tasks needs the task, as in 123[7] or last[7]. Ends with the exit status of the " +
			"command (128 and the number for a signal).",
		examples: []commandExample{
			{"roost ssh last", "look around in your newest job"},
			{"roost ssh 123[7] ps aux", "what runs in a task"},
			{"roost ssh -t 123 top", "a program that needs a terminal"},
		},
		flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "terminal", Aliases: []string{"t"},
				Usage: "give a command a terminal too; a shell has one if this is one"},
			&ucli.BoolFlag{Name: "no-terminal", Aliases: []string{"T"},
				Usage: "do without a terminal: streams as they are, standard error apart"},
		},
	}
}

// localTerminal is the terminal that a command was called from.
type localTerminal struct {
	in   *os.File // nil: there is none
	size *os.File // what has a size
}

// openTerminal finds out whether a call has a terminal on both sides.
func (c *invocation) openTerminal() localTerminal {
	in, isFile := c.stdin.(*os.File)
	out, _ := c.stdout.(*os.File)
	if !isFile || out == nil || !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) {
		return localTerminal{}
	}
	return localTerminal{in: in, size: out}
}

// setRaw hands every key to the task, also those that would end this program; what is
// returned undoes it.
func (k *localTerminal) setRaw() (func(), error) {
	if k.in == nil {
		return func() {}, nil
	}
	saved, err := term.MakeRaw(int(k.in.Fd()))
	if err != nil {
		return nil, kindErrorf(roost.Unavailable, "the terminal cannot be set up: %v", err)
	}
	var once sync.Once
	return func() { once.Do(func() { term.Restore(int(k.in.Fd()), saved) }) }, nil
}

// windowSize is the size of the window, 0 where it is not known.
func (k *localTerminal) windowSize() (rows, columns uint32) {
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

func runSSH(c *invocation) error {
	id, err := c.resolveSelector(c.args[0])
	if err != nil {
		return err
	}
	k := c.openTerminal()
	first := &wire.ShellInput{Task: id, Command: remoteCommand(c.args[1:]), Term: c.getenv("TERM")}
	switch {
	case c.flag("terminal") && c.flag("no-terminal"):
		return usageErrorf("--terminal and --no-terminal exclude each other")
	case c.flag("terminal"):
		first.Terminal = true
	case !c.flag("no-terminal"):
		first.Terminal = k.in != nil && len(first.GetCommand()) == 0
	}
	if !first.GetTerminal() {
		k = localTerminal{}
	}
	first.Rows, first.Columns = k.windowSize()
	return c.runRemoteShell(first, k)
}

// runRemoteShell holds the conversation. It is not begun anew when it breaks: the shell
// is gone then, with all that it knew.
func (c *invocation) runRemoteShell(first *wire.ShellInput, k localTerminal) error {
	s, err := c.connectSchedd()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	stream, err := s.Shell(ctx)
	if err != nil {
		return decodeError(err)
	}
	if err := stream.Send(first); err != nil && !errors.Is(err, io.EOF) {
		return decodeError(err)
	}
	restore, err := k.setRaw()
	if err != nil {
		return err
	}
	defer restore()
	signals, release := c.notifyInterrupts()
	defer release()
	say := &streamWriter{ctx: ctx, messages: make(chan *wire.ShellInput)}
	go say.sendQueued(stream)
	go say.relayInput(c.stdin)
	go say.relayResizes(k)
	go func() { // from elsewhere, as in raw mode the keys are the task's
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
		}
	}()
	err = c.receiveOutput(stream)
	restore() // before anything is said about it
	if errors.Is(err, context.Canceled) && c.ctx.Err() == nil {
		return exitError(128 + 2)
	}
	return err
}

// receiveOutput shows what the command writes, and returns how it ended.
func (c *invocation) receiveOutput(stream grpc.BidiStreamingClient[wire.ShellInput, wire.ShellOutput]) error {
	for {
		out, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return kindErrorf(roost.Unavailable, "the conversation with the task broke off")
		}
		if err != nil {
			return decodeError(err)
		}
		to := c.stdout
		if out.GetStderr() {
			to = c.stderr
		}
		if _, err := to.Write(out.GetData()); err != nil {
			return kindErrorf(roost.NoOutput, "write: %v", err)
		}
		if !out.GetEnded() {
			continue
		}
		if n := out.GetSignal(); n != 0 {
			fmt.Fprintf(c.stderr, "roost: the command was ended by signal %d (%v)\r\n", n, syscall.Signal(n))
			return exitError(128 + int(n))
		}
		if out.GetCode() != 0 {
			return exitError(out.GetCode())
		}
		return nil
	}
}

// streamWriter is our part of the conversation: what several goroutines have to say goes
// out through one.
type streamWriter struct {
	ctx      context.Context // of the conversation
	messages chan *wire.ShellInput
}

func (s *streamWriter) queueMessage(in *wire.ShellInput) bool {
	select {
	case s.messages <- in:
		return true
	case <-s.ctx.Done():
		return false
	}
}

// sendQueued sends what is said, no faster than the other side takes it.
func (s *streamWriter) sendQueued(stream grpc.BidiStreamingClient[wire.ShellInput, wire.ShellOutput]) {
	for {
		select {
		case in := <-s.messages:
			if stream.Send(in) != nil {
				return // why, the other direction tells
			}
		case <-s.ctx.Done():
			return
		}
	}
}

// relayInput passes on the standard input.
func (s *streamWriter) relayInput(from io.Reader) {
	for {
		buffer := make([]byte, inputChunk)
		n, err := from.Read(buffer)
		if n > 0 && !s.queueMessage(&wire.ShellInput{Data: buffer[:n]}) {
			return
		}
		if err != nil {
			s.queueMessage(&wire.ShellInput{Eof: true})
			return
		}
	}
}

// relayResizes passes on the size of the window whenever it changes.
func (s *streamWriter) relayResizes(k localTerminal) {
	if k.size == nil {
		return
	}
	changes := make(chan os.Signal, 1)
	signal.Notify(changes, syscall.SIGWINCH)
	defer signal.Stop(changes)
	for {
		select {
		case <-changes:
		case <-s.ctx.Done():
			return
		}
		if rows, columns := k.windowSize(); rows > 0 &&
			!s.queueMessage(&wire.ShellInput{Rows: rows, Columns: columns}) {
			return
		}
	}
}
