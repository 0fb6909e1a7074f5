package pbs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/jobs"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/cli/terminal"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// An interactive job, as qsub -I of OpenPBS shows it: it tells that it waits, when the
// job is there, and when it is over. Until it is there the terminal is ours, and Ctrl-C
// asks whether the job is to go; from then on every key is the shell's.

// askTerminal refuses an interactive job where nobody could type.
func askTerminal(c *frame.Invocation) (terminal.LocalTerminal, error) {
	k := terminal.OpenTerminal(c)
	if k.In == nil {
		fmt.Fprint(c.Stderr, "qsub:\tstandard input and output must be a terminal for\n\tinteractive job submission\n")
		return k, frame.ExitError(1)
	}
	return k, nil
}

// interactiveJob is one interactive job and the terminal that it has.
type interactiveJob struct {
	*frame.Invocation
	terminal.LocalTerminal
	id, plainMode string
	signals       <-chan os.Signal
	stream        scheddapi.Exchange[scheddapi.ShellInput, scheddapi.ShellOutput]
	scheddEvents  chan scheddEvent
	isReady       bool
}

// scheddEvent is what came from the schedd: a message, or why there are no more.
type scheddEvent struct {
	message *scheddapi.ShellOutput
	err     error
}

// attachTerminal shows a job of qsub -I from the submission to the end. The exit status
// is 0 when it has had its terminal, as that of OpenPBS is; how the shell ended, the
// job's Exit_status tells.
func attachTerminal(c *frame.Invocation, k terminal.LocalTerminal, id, plain string, signals <-chan os.Signal) error {
	signal.Ignore(syscall.SIGTSTP) // nobody would be there when the job starts
	defer signal.Reset(syscall.SIGTSTP)
	s := &interactiveJob{Invocation: c, LocalTerminal: k, id: id, plainMode: plain, signals: signals}
	fmt.Fprintf(c.Stdout, "qsub: waiting for job %s to start\n", id)
	var broke error // the conversation, after the job was there: there is no other then
	err := c.Retry(frame.WatchTimeout, func(ctx context.Context, alive func()) error {
		err := s.run(ctx, alive)
		if s.isReady {
			broke, err = err, nil
		}
		return err
	})
	switch {
	case s.isReady:
		if broke != nil && !errors.Is(broke, roost.Finished) {
			fmt.Fprintf(c.Stdout, "\nqsub: job %s has lost its terminal, and ends\n", id)
			return pbsframe.Fail(c, broke)
		}
		reportKilled(c, plain)
		fmt.Fprintf(c.Stdout, "\nqsub: job %s completed\n", id)
		return nil
	case errors.Is(err, roost.Finished):
		fmt.Fprintf(c.Stderr, "qsub: job %s apparently deleted\n", id)
		return frame.ExitError(1)
	case errors.Is(err, errDeleted):
		return nil
	case err != nil:
		return pbsframe.Fail(c, err)
	}
	return nil
}

// reportKilled prints why an interactive job was ended, unless it ended by itself or
// somebody removed it. No file has it for its user.
func reportKilled(c *frame.Invocation, plain string) {
	s, err := jobs.FindJob(c, plain, &scheddapi.QueryRequest{})
	if err != nil {
		return // it is the end of the job, and of no use to complain
	}
	switch e := s.GetExit(); e.GetCause() {
	case scheddapi.Cause_CAUSE_EXITED, scheddapi.Cause_CAUSE_REMOVED:
	default:
		if why := document.PrintableText(e.GetReason()); why != "" {
			fmt.Fprintf(c.Stdout, "\n=>> PBS: job killed: %s\n", why)
		}
	}
}

// errDeleted says that the user wanted the job to go while it waited.
var errDeleted = errors.New("deleted")

// run waits for the job and then talks. A conversation that breaks before the job is
// there is begun anew.
func (s *interactiveJob) run(ctx context.Context, alive func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	client, err := s.ConnectSchedd()
	if err != nil {
		return err
	}
	if s.stream, err = client.Shell(ctx); err != nil {
		return err
	}
	first := &scheddapi.ShellInput{Task: s.plainMode, Session: true, Terminal: true, Term: s.Getenv("TERM")}
	first.Rows, first.Columns = s.WindowSize()
	if err := s.stream.Send(first); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	s.scheddEvents = make(chan scheddEvent)
	go s.receive(ctx)
	for {
		select {
		case h := <-s.scheddEvents:
			if h.err != nil {
				return frame.DecodeError(h.err)
			}
			if alive(); h.message.GetReady() {
				return s.relayTerminal(ctx)
			}
		case sig := <-s.signals:
			if sig != syscall.SIGINT || s.confirmAbort() {
				fmt.Fprintf(s.Stdout, "Job %s is being deleted\n", s.id)
				jobs.RemoveInterrupted(s.Invocation, s.plainMode)
				return errDeleted
			}
		}
	}
}

// receive passes on what comes, until there is no more.
func (s *interactiveJob) receive(ctx context.Context) {
	for {
		out, err := s.stream.Recv()
		select {
		case s.scheddEvents <- scheddEvent{out, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// confirmTimeout is how long the answer to the question may take.
const confirmTimeout = time.Minute

// confirmAbort asks whether the job is to go. Who interrupts the question, too, or does
// not answer it, means yes.
func (s *interactiveJob) confirmAbort() bool {
	answers := make(chan string)
	done := make(chan struct{})
	defer close(done)
	go func() { // it is left reading only where the program ends
		for lines := bufio.NewReader(lineReader{s.In}); ; {
			line, err := lines.ReadString('\n')
			if err != nil {
				line = "y"
			}
			select {
			case answers <- line:
			case <-done:
				return
			}
			if err != nil || line == "\n" || line[0] == 'n' || line[0] == 'N' {
				return
			}
		}
	}()
	timeout := time.NewTimer(confirmTimeout)
	defer timeout.Stop()
	for {
		fmt.Fprint(s.Stdout, "Do you wish to terminate the job and exit (y|[n])? ")
		select {
		case line := <-answers:
			switch line[0] {
			case 'n', 'N', '\n':
				return false
			case 'y', 'Y':
				return true
			}
			fmt.Fprintln(s.Stdout, "yes or no please")
		case <-s.signals:
			fmt.Fprintln(s.Stdout)
			return true
		case <-timeout.C:
			fmt.Fprintln(s.Stdout, "Timeout -- deleting job")
			return true
		}
	}
}

// lineReader reads a terminal byte by byte: what is typed after a line is for the shell.
type lineReader struct{ source io.Reader }

func (o lineReader) Read(p []byte) (int, error) { return o.source.Read(p[:min(len(p), 1)]) }

// relayTerminal gives the terminal to the shell, until one of both is gone.
func (s *interactiveJob) relayTerminal(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.isReady = true
	fmt.Fprintf(s.Stdout, "qsub: job %s ready\n\n", s.id)
	signal.Reset(syscall.SIGTSTP)
	restore, err := s.SetRaw()
	if err != nil {
		return err
	}
	defer restore()
	say := &terminal.StreamWriter{Ctx: ctx, Messages: make(chan *scheddapi.ShellInput)}
	left := make(chan struct{})
	go say.SendQueued(s.stream)
	go s.relayInput(say, left)
	go func() {
		rows, columns := s.WindowSize() // it may have changed while the job waited
		if rows > 0 {
			say.QueueMessage(&scheddapi.ShellInput{Rows: rows, Columns: columns})
		}
		say.RelayResizes(s.LocalTerminal)
	}()
	for {
		select {
		case h := <-s.scheddEvents:
			if h.err != nil {
				return frame.DecodeError(h.err)
			}
			if _, err := s.Stdout.Write(h.message.GetData()); err != nil {
				return frame.KindErrorf(roost.NoOutput, "write: %v", err)
			}
			if h.message.GetEnded() {
				return nil
			}
		case <-left:
			return nil
		case <-s.signals: // from elsewhere: in raw mode the keys are the shell's
			return nil
		}
	}
}

// relayInput passes on what is typed, until it is the end.
func (s *interactiveJob) relayInput(say *terminal.StreamWriter, left chan<- struct{}) {
	defer close(left)
	for e := (terminal.EscapeFilter{}); ; {
		buffer := make([]byte, terminal.InputChunk)
		n, err := s.In.Read(buffer)
		send, leave := e.FilterInput(buffer[:n])
		if len(send) > 0 && !say.QueueMessage(&scheddapi.ShellInput{Data: send}) || leave || err != nil {
			return
		}
	}
}
