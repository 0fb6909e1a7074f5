package cli

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

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// An interactive job, as qsub -I of OpenPBS shows it: it tells that it waits, when the job is there, and when it is over. Until it is there the terminal
// is ours, and Ctrl-C asks whether the job is to go; from then on every key is the shell's.

// askTerminal refuses an interactive job where nobody could type.
func (c *call) askTerminal() (keyboard, error) {
	k := c.keyboard()
	if k.in == nil {
		fmt.Fprint(c.stderr, "qsub:\tstandard input and output must be a terminal for\n\tinteractive job submission\n")
		return k, exit(1)
	}
	return k, nil
}

// sitting is one interactive job and the terminal that it has.
type sitting struct {
	*call
	keyboard
	id, plain string
	signals   <-chan os.Signal
	stream    grpc.BidiStreamingClient[wire.ShellInput, wire.ShellOutput]
	heard     chan heard
	ready     bool
}

// heard is what came from the schedd: a message, or why there are no more.
type heard struct {
	out *wire.ShellOutput
	err error
}

// sitAt shows a job of qsub -I from the submission to the end. The exit status is 0 when it has had its terminal, as that of OpenPBS is; how the
// shell ended, the job's Exit_status tells.
func (c *call) sitAt(k keyboard, id, plain string, signals <-chan os.Signal) error {
	signal.Ignore(syscall.SIGTSTP) // nobody would be there when the job starts
	defer signal.Reset(syscall.SIGTSTP)
	s := &sitting{call: c, keyboard: k, id: id, plain: plain, signals: signals}
	fmt.Fprintf(c.stdout, "qsub: waiting for job %s to start\n", id)
	var broke error // the conversation, after the job was there: there is no other then
	err := c.persist(watchPatience, func(ctx context.Context, alive func()) error {
		err := s.attend(ctx, alive)
		if s.ready {
			broke, err = err, nil
		}
		return err
	})
	switch {
	case s.ready:
		if broke != nil && !errors.Is(broke, roost.Finished) {
			fmt.Fprintf(c.stdout, "\nqsub: job %s has lost its terminal, and ends\n", id)
			return c.pbsFail(broke)
		}
		c.tellKilled(plain)
		fmt.Fprintf(c.stdout, "\nqsub: job %s completed\n", id)
		return nil
	case errors.Is(err, roost.Finished):
		fmt.Fprintf(c.stderr, "qsub: job %s apparently deleted\n", id)
		return exit(1)
	case errors.Is(err, errDeleted):
		return nil
	case err != nil:
		return c.pbsFail(err)
	}
	return nil
}

// tellKilled says why a job that has had its terminal was ended, if it did not end by itself and nobody wanted it to: its user would not find that in any file.
func (c *call) tellKilled(plain string) {
	s, err := c.one(plain, &wire.QueryRequest{})
	if err != nil {
		return // it is the end of the job, and of no use to complain
	}
	switch e := s.GetExit(); e.GetCause() {
	case wire.Cause_CAUSE_EXITED, wire.Cause_CAUSE_REMOVED:
	default:
		if why := printable(e.GetReason()); why != "" {
			fmt.Fprintf(c.stdout, "\n=>> PBS: job killed: %s\n", why)
		}
	}
}

// errDeleted says that the user wanted the job to go while it waited.
var errDeleted = errors.New("deleted")

// attend waits for the job and then talks. A conversation that breaks before the job is there is begun anew.
func (s *sitting) attend(ctx context.Context, alive func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	client, err := s.schedd()
	if err != nil {
		return err
	}
	if s.stream, err = client.Shell(ctx); err != nil {
		return err
	}
	first := &wire.ShellInput{Task: s.plain, Session: true, Terminal: true, Term: s.getenv("TERM")}
	first.Rows, first.Columns = s.measure()
	if err := s.stream.Send(first); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	s.heard = make(chan heard)
	go s.listen(ctx)
	for {
		select {
		case h := <-s.heard:
			if h.err != nil {
				return fromWire(h.err)
			}
			if alive(); h.out.GetReady() {
				return s.talk(ctx)
			}
		case sig := <-s.signals:
			if sig != syscall.SIGINT || s.wantsAway() {
				fmt.Fprintf(s.stdout, "Job %s is being deleted\n", s.id)
				s.remove(s.plain)
				return errDeleted
			}
		}
	}
}

// listen passes on what comes, until there is no more.
func (s *sitting) listen(ctx context.Context) {
	for {
		out, err := s.stream.Recv()
		select {
		case s.heard <- heard{out, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// thinkTime is how long the answer to the question may take.
const thinkTime = time.Minute

// wantsAway asks whether the job is to go. Who interrupts the question, too, or does not answer it, means yes.
func (s *sitting) wantsAway() bool {
	answers := make(chan string)
	done := make(chan struct{})
	defer close(done)
	go func() { // it is left reading only where the program ends
		for lines := bufio.NewReader(onlyLine{s.in}); ; {
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
	timeout := time.NewTimer(thinkTime)
	defer timeout.Stop()
	for {
		fmt.Fprint(s.stdout, "Do you wish to terminate the job and exit (y|[n])? ")
		select {
		case line := <-answers:
			switch line[0] {
			case 'n', 'N', '\n':
				return false
			case 'y', 'Y':
				return true
			}
			fmt.Fprintln(s.stdout, "yes or no please")
		case <-s.signals:
			fmt.Fprintln(s.stdout)
			return true
		case <-timeout.C:
			fmt.Fprintln(s.stdout, "Timeout -- deleting job")
			return true
		}
	}
}

// onlyLine reads a terminal byte by byte: what is typed after a line is for the shell.
type onlyLine struct{ from io.Reader }

func (o onlyLine) Read(p []byte) (int, error) { return o.from.Read(p[:min(len(p), 1)]) }

// talk gives the terminal to the shell, until one of both is gone.
func (s *sitting) talk(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.ready = true
	fmt.Fprintf(s.stdout, "qsub: job %s ready\n\n", s.id)
	signal.Reset(syscall.SIGTSTP)
	restore, err := s.raw()
	if err != nil {
		return err
	}
	defer restore()
	say := &speaker{ctx: ctx, words: make(chan *wire.ShellInput)}
	left := make(chan struct{})
	go say.speak(s.stream)
	go s.typing(say, left)
	go func() {
		rows, columns := s.measure() // it may have changed while the job waited
		if rows > 0 {
			say.say(&wire.ShellInput{Rows: rows, Columns: columns})
		}
		say.follow(s.keyboard)
	}()
	for {
		select {
		case h := <-s.heard:
			if h.err != nil {
				return fromWire(h.err)
			}
			if _, err := s.stdout.Write(h.out.GetData()); err != nil {
				return problem(roost.NoOutput, "write: %v", err)
			}
			if h.out.GetEnded() {
				return nil
			}
		case <-left:
			return nil
		case <-s.signals: // from elsewhere: in raw mode the keys are the shell's
			return nil
		}
	}
}

// typing passes on what is typed, until it is the end.
func (s *sitting) typing(say *speaker, left chan<- struct{}) {
	defer close(left)
	for e := (escapes{}); ; {
		buffer := make([]byte, inputChunk)
		n, err := s.in.Read(buffer)
		send, leave := e.take(buffer[:n])
		if len(send) > 0 && !say.say(&wire.ShellInput{Data: send}) || leave || err != nil {
			return
		}
	}
}
