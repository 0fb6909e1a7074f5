package pipe

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
)

// server runs the command lines of one program.
type server struct {
	*frame.Invocation

	group sync.WaitGroup // of what runs

	outputMutex sync.Mutex
	output      io.Writer

	runningMutex sync.Mutex
	running      map[string]*commandRun
}

// commandRun is a command line that has not ended.
type commandRun struct {
	cancel     context.CancelFunc
	interrupts chan os.Signal
}

func newServer(c *frame.Invocation) *server {
	return &server{Invocation: c, output: c.Stdout, running: map[string]*commandRun{}}
}

// serve reads requests until there are no more. What runs then is ended.
func (s *server) serve() error {
	ctx, cancel := context.WithCancel(s.Context)
	defer s.group.Wait()
	defer cancel()
	s.send(greeting{Version: 1, Protocol: 1, Release: roost.Version})
	in := bufio.NewReaderSize(s.Stdin, 64<<10)
	for {
		line, err := readLine(in)
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case len(bytes.TrimSpace(line)) == 0:
			continue
		}
		s.accept(ctx, line)
	}
}

// readLine reads a line of at most maxRequest bytes.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxRequest:
			return nil, frame.KindErrorf(roost.Invalid, "a request has more than %d bytes", maxRequest)
		case err == nil || err == io.EOF && len(line) > 0:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// accept begins what a request asks for.
func (s *server) accept(ctx context.Context, line []byte) {
	r, err := parseRequest(line)
	if err != nil {
		s.refuse(r.ID, err)
		return
	}
	if r.Cancel {
		s.interrupt(r.ID)
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	run := &commandRun{cancel: cancel, interrupts: make(chan os.Signal, 4)}
	if err := s.register(r, run); err != nil {
		cancel()
		s.refuse(r.ID, err)
		return
	}
	s.group.Go(func() {
		defer cancel()
		status, text := s.run(ctx, r, run)
		s.runningMutex.Lock()
		delete(s.running, r.ID) // before the answer: the id may come again after it
		s.runningMutex.Unlock()
		s.send(answer{Version: 1, ID: r.ID, Exit: &status, Error: text})
	})
}

// register notes that a command line runs, if it may.
func (s *server) register(r request, run *commandRun) error {
	s.runningMutex.Lock()
	defer s.runningMutex.Unlock()
	switch {
	case s.running[r.ID] != nil:
		return fmt.Errorf("%w: a command line with the id %s runs already", roost.Invalid, r.ID)
	case len(s.running) >= maxRunning:
		return fmt.Errorf("%w: %d command lines run already: wait until one has ended", roost.Exhausted, maxRunning)
	case r.Arguments[0] == "api":
		return fmt.Errorf("%w: api runs no further api", roost.Invalid)
	}
	s.running[r.ID] = run
	return nil
}

// interrupt ends a command line; that of an id that has ended already has nothing to end.
func (s *server) interrupt(id string) {
	s.runningMutex.Lock()
	run := s.running[id]
	s.runningMutex.Unlock()
	if run == nil {
		return
	}
	select {
	case run.interrupts <- os.Interrupt:
	default:
	}
	run.cancel()
}

// run runs a command line, and returns its exit status and what it wrote to standard
// error.
func (s *server) run(ctx context.Context, r request, run *commandRun) (status int, text string) {
	out := &outputLines{server: s, id: r.ID}
	failure := &boundedText{}
	defer func() {
		out.flush()
		if text = failure.String(); status != 0 && text == "" && ctx.Err() != nil {
			text = "roost: canceled"
		}
	}()
	app := *s.App
	app.Stdin, app.Stdout, app.Stderr = strings.NewReader(r.Input), out, failure
	app.OutScreen, app.ErrScreen = frame.Screen{}, frame.Screen{}
	app.Interrupts = run.interrupts
	if r.Directory != "" {
		app.Dir = r.Directory
	}
	app.Exec = func(program string, commandLine []string) error {
		return runProgram(ctx, &app, program, commandLine)
	}
	return app.Run(ctx, append([]string{frame.MainProgram}, s.withPool(r.Arguments)...)), ""
}

// withPool adds the pool that this command was called for.
func (s *server) withPool(arguments []string) []string {
	if dir := s.StringFlag("dir"); dir != "" {
		return append([]string{"--dir", dir}, arguments...)
	}
	return arguments
}

// runProgram runs a program beside this one, which has the commands that this one has
// not.
func runProgram(ctx context.Context, app *frame.App, program string, commandLine []string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("own program: %w: %w", roost.NoInput, err)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(filepath.Dir(self), program))
	cmd.Args, cmd.Env, cmd.Dir = commandLine, app.Env, app.Dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = app.Stdin, app.Stdout, app.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	var ended *exec.ExitError
	if err := cmd.Run(); errors.As(err, &ended) {
		return frame.ExitError(max(ended.ExitCode(), 1))
	} else if err != nil {
		return fmt.Errorf("%s: %w: %w", program, roost.NoInput, err)
	}
	return nil
}

func (s *server) refuse(id string, err error) {
	status := roost.Internal.ExitCode()
	var kind roost.ErrorKind
	if errors.As(err, &kind) {
		status = kind.ExitCode()
	}
	s.send(answer{Version: 1, ID: id, Exit: &status, Error: "roost: " + err.Error()})
}

// send writes a line. Where nobody reads any more, the end of the requests comes, too.
func (s *server) send(message any) {
	line, err := json.Marshal(message)
	if err != nil {
		panic(fmt.Sprintf("answer %+v: %v", message, err))
	}
	s.outputMutex.Lock()
	defer s.outputMutex.Unlock()
	s.output.Write(append(line, '\n'))
}

// outputLines sends what a command prints, by lines.
type outputLines struct {
	server *server
	id     string
	rest   []byte
}

// Write sends the lines that are complete.
func (o *outputLines) Write(p []byte) (int, error) {
	o.rest = append(o.rest, p...)
	for {
		end := bytes.LastIndexByte(o.rest[:min(len(o.rest), maxChunk)], '\n') + 1
		if end == 0 && len(o.rest) >= maxChunk {
			end = maxChunk
		}
		if end == 0 {
			return len(p), nil
		}
		o.sendPart(o.rest[:end])
		o.rest = o.rest[:copy(o.rest, o.rest[end:])]
	}
}

func (o *outputLines) flush() {
	if len(o.rest) > 0 {
		o.sendPart(o.rest)
	}
}

func (o *outputLines) sendPart(part []byte) {
	if !utf8.Valid(part) {
		o.server.send(answer{Version: 1, ID: o.id, Bytes: part})
		return
	}
	text := string(part)
	o.server.send(answer{Version: 1, ID: o.id, Text: &text})
}

// boundedText has the beginning of what is written to it.
type boundedText struct{ strings.Builder }

func (t *boundedText) Write(p []byte) (int, error) {
	t.Builder.Write(p[:min(len(p), max(0, maxErrorText-t.Len()))])
	return len(p), nil
}
