package stepgroup

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/roost-batch/roost/internal/slurm/step"
)

// Streams are files that the tasks have as their own streams, so that nothing is between.
// A nil one is a pipe whose contents go in frames.
type Streams struct{ In, Out, Err *os.File }

// Group is the tasks of a step on one machine.
type Group struct {
	spec    *step.TaskGroup
	direct  Streams
	emit    func(step.Frame)
	tasks   []*task
	numbers map[uint32]*task
	ended   sync.WaitGroup
	ranks   *rankServer     // nil: none
	opened  map[string]bool // files of tasks
}

// task is one task: its process, and our ends of its streams.
type task struct {
	spec    step.Task
	cmd     *exec.Cmd
	input   *os.File   // nil: it has none from us
	files   []*os.File // our copies of what it has
	writers sync.WaitGroup
	mu      sync.Mutex
	over    bool // it has been waited for: its process id is nobody's
	queue   chan step.Frame
	done    chan struct{} // closed at its end
	readers []*os.File
}

// drainTime is how long what a task has written is read after its end. A process that it
// has left behind may have its streams open.
const drainTime = 500 * time.Millisecond

// outputChunk is how much output travels at once, in bytes.
const outputChunk = 32 << 10

// inputQueue is how many pieces of standard input wait for a task that does not read.
const inputQueue = 64

// Start starts the tasks. emit is called with what they write and how they end, from
// several goroutines, one frame at a time for each task. The end of a task is its last
// frame.
func Start(spec *step.TaskGroup, direct Streams, emit func(step.Frame)) *Group {
	g := &Group{spec: spec, direct: direct, emit: emit, numbers: map[uint32]*task{}, opened: map[string]bool{}}
	if spec.KeySpace != "" && len(spec.Tasks) > 0 {
		g.ranks = newRankServer(g)
	}
	for i := range spec.Tasks {
		t := &task{spec: spec.Tasks[i], queue: make(chan step.Frame, inputQueue), done: make(chan struct{})}
		g.tasks = append(g.tasks, t)
		g.numbers[uint32(t.spec.Number)] = t
	}
	for i, t := range g.tasks {
		g.ended.Add(1)
		if err := g.startTask(i, t); err != nil {
			t.over = true
			close(t.done)
			t.closeFiles()
			g.refuse(t, err)
			g.ended.Done()
			continue
		}
		go g.awaitTask(i, t)
	}
	return g
}

// refuse reports that a task cannot be started, in the words of Slurm's daemon. Its exit
// code is the number of the error.
func (g *Group) refuse(t *task, err error) {
	code, text := 1, err.Error()
	var number syscall.Errno
	if errors.As(err, &number) {
		code, text = int(number), number.Error()
	}
	line := fmt.Sprintf("slurmstepd: error: execve(): %s: %s\n", t.spec.Command[0], strings.ToUpper(text[:1])+text[1:])
	g.emit(step.Frame{Kind: step.FrameError, Task: uint32(t.spec.Number), Data: []byte(line)})
	g.sendExit(t, step.TaskEnd{TaskExit: step.TaskExit{Code: code}})
}

// Wait returns when all tasks have ended and all frames have been given to emit.
func (g *Group) Wait() { g.ended.Wait() }

// Apply takes in a frame for the tasks.
func (g *Group) Apply(f step.Frame) {
	switch {
	case f.Kind == step.FrameRanks:
		if g.ranks != nil {
			g.ranks.applyMessage(f.Data)
		}
	case f.Task == step.AllTasks:
		for _, t := range g.tasks {
			t.apply(f)
		}
	default:
		if t := g.numbers[f.Task]; t != nil {
			t.apply(f)
		}
	}
}

// Signal sends a signal to the process groups of all tasks.
func (g *Group) Signal(s syscall.Signal) {
	g.Apply(step.Frame{Kind: step.FrameSignal, Task: step.AllTasks, Data: []byte{byte(s)}})
}

func (t *task) apply(f step.Frame) {
	switch f.Kind {
	case step.FrameSignal:
		if len(f.Data) == 1 {
			t.signal(syscall.Signal(f.Data[0]))
		}
	case step.FrameInput, step.FrameInputEnd:
		if t.input == nil {
			return
		}
		select {
		case t.queue <- f:
		case <-t.done:
		}
	}
}

// signal sends a signal to the task's process group, while that is its own.
func (t *task) signal(s syscall.Signal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.over && t.cmd.Process != nil {
		_ = syscall.Kill(-t.cmd.Process.Pid, s)
	}
}

// startTask starts the process of a task.
func (g *Group) startTask(index int, t *task) error {
	t.cmd = &exec.Cmd{Path: t.spec.Command[0], Args: t.spec.Command, Dir: g.spec.Directory,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true}}
	t.cmd.Env = append(append([]string(nil), g.spec.Environment...), t.spec.Environment...)
	path, err := FindProgram(t.cmd.Path, t.cmd.Env, g.spec.Directory)
	if err != nil {
		return err
	}
	t.cmd.Path = path
	if err := g.openStreams(t); err != nil {
		return err
	}
	if g.ranks != nil {
		if err := g.ranks.prepare(index, t.cmd); err != nil {
			return err
		}
	}
	if g.spec.Umask >= 0 {
		umask.Lock()
		defer umask.Unlock()
		defer syscall.Umask(syscall.Umask(g.spec.Umask))
	}
	if err := t.cmd.Start(); err != nil {
		return err
	}
	if g.ranks != nil {
		g.ranks.begin(index)
	}
	if t.input != nil {
		go t.writeInput()
	}
	return nil
}

// umask is the process's own, which a child takes along.
var umask sync.Mutex

// openStreams gives a task its streams.
func (g *Group) openStreams(t *task) (err error) {
	switch {
	case t.spec.Input != "":
		t.cmd.Stdin, err = t.open(t.spec.Input, os.O_RDONLY)
	case g.direct.In != nil:
		t.cmd.Stdin = g.direct.In
	default:
		var theirs *os.File
		if theirs, t.input, err = os.Pipe(); err == nil {
			t.files = append(t.files, theirs)
			t.cmd.Stdin = theirs
		}
	}
	if err != nil {
		return err
	}
	if t.cmd.Stdout, err = g.openOutput(t, t.spec.Output, g.direct.Out, step.FrameOutput); err != nil {
		return err
	}
	if t.spec.Error != "" && t.spec.Error == t.spec.Output {
		t.cmd.Stderr = t.cmd.Stdout
		return nil
	}
	t.cmd.Stderr, err = g.openOutput(t, t.spec.Error, g.direct.Err, step.FrameError)
	return err
}

func (g *Group) openOutput(t *task, path string, direct *os.File, kind step.FrameKind) (*os.File, error) {
	switch {
	case path != "":
		flags := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
		if t.spec.Append {
			flags = os.O_WRONLY | os.O_CREATE | os.O_APPEND
		}
		return g.openShared(t, path, flags)
	case direct != nil:
		return direct, nil
	}
	ours, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	t.files = append(t.files, theirs)
	t.readers = append(t.readers, ours)
	t.writers.Go(func() { g.readOutput(t, ours, kind) })
	return theirs, nil
}

// openShared opens a file that several tasks may write to: the first empties it.
func (g *Group) openShared(t *task, path string, flags int) (*os.File, error) {
	if g.opened[path] {
		flags = os.O_WRONLY | os.O_CREATE | os.O_APPEND
	}
	f, err := t.open(path, flags|os.O_APPEND)
	if err == nil {
		g.opened[path] = true
	}
	return f, err
}

func (t *task) open(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags, 0o666)
	if err == nil {
		t.files = append(t.files, f)
	}
	return f, err
}

// closeFiles closes our copies of what the task has.
func (t *task) closeFiles() {
	for _, f := range t.files {
		f.Close()
	}
	t.files = nil
	if t.input != nil {
		t.input.Close()
	}
}

// readOutput passes on what a task writes until its streams are closed.
func (g *Group) readOutput(t *task, from *os.File, kind step.FrameKind) {
	defer from.Close()
	buffer := make([]byte, outputChunk)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			g.emit(step.Frame{Kind: kind, Task: uint32(t.spec.Number), Data: append([]byte(nil), buffer[:n]...)})
		}
		if err != nil {
			return
		}
	}
}

// writeInput writes what comes to the task's standard input, no faster than it reads.
func (t *task) writeInput() {
	defer t.input.Close()
	open := true
	for {
		select {
		case f := <-t.queue:
			if !open { // it reads no more, which is no error, as with pipes
				continue
			}
			if f.Kind == step.FrameInputEnd {
				open = false
				t.input.Close()
			} else if _, err := t.input.Write(f.Data); err != nil {
				open = false
			}
		case <-t.done:
			return
		}
	}
}

// awaitTask waits for the end of a task, ends what it has left in its process group, and
// reports.
func (g *Group) awaitTask(index int, t *task) {
	defer g.ended.Done()
	for _, f := range t.files { // the task has its own
		f.Close()
	}
	t.files = nil
	state, err := t.cmd.Process.Wait()
	_ = syscall.Kill(-t.cmd.Process.Pid, syscall.SIGKILL)
	t.mu.Lock()
	t.over = true
	t.mu.Unlock()
	close(t.done)
	exit := exitOf(state, err)
	for _, r := range t.readers {
		_ = r.SetReadDeadline(time.Now().Add(drainTime))
	}
	t.writers.Wait()
	if g.ranks != nil {
		g.ranks.applyExit(index, exit)
	}
	g.sendExit(t, step.TaskEnd{TaskExit: exit, TaskUsage: usageOf(state)})
}

// usageOf is what a task used.
func usageOf(state *os.ProcessState) (u step.TaskUsage) {
	if state == nil {
		return u
	}
	u.UserCPU, u.SystemCPU = int64(state.UserTime()), int64(state.SystemTime())
	if r, ok := state.SysUsage().(*syscall.Rusage); ok {
		u.MaxRSS = r.Maxrss << 10
	}
	return u
}

func exitOf(state *os.ProcessState, err error) step.TaskExit {
	if err != nil {
		return step.TaskExit{Code: 1, Problem: err.Error()}
	}
	w := state.Sys().(syscall.WaitStatus)
	if w.Signaled() {
		return step.TaskExit{Signal: int(w.Signal()), Core: w.CoreDump()}
	}
	return step.TaskExit{Code: w.ExitStatus()}
}

func (g *Group) sendExit(t *task, e step.TaskEnd) {
	text, err := json.Marshal(e)
	if err != nil {
		panic(err) // numbers and a text
	}
	g.emit(step.Frame{Kind: step.FrameExit, Task: uint32(t.spec.Number), Data: text})
}

// Serve is an agent: it reads frames from in and writes frames to out. The first one that
// it reads begins the tasks. It ends when they have ended, or ends them when in does.
// own are variables that say of this machine what srun's say of its own; they come last.
func Serve(in io.Reader, out io.Writer, renew func(environment []string) []string) error {
	var mu sync.Mutex
	emit := func(f step.Frame) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = out.Write(f.Append(nil)) // where it cannot be written, in has ended, too
	}
	emit(step.Frame{Kind: step.FrameHello, Task: step.AllTasks})
	first, err := step.ReadFrame(in)
	if err != nil {
		return err
	}
	spec := &step.TaskGroup{}
	if first.Kind != step.FrameBegin {
		return errors.New("a step begins with its tasks")
	}
	if err := json.Unmarshal(first.Data, spec); err != nil {
		return err
	}
	for _, t := range spec.Tasks {
		if len(t.Command) == 0 {
			return fmt.Errorf("task %d has no command", t.Number)
		}
	}
	spec.Environment = renew(spec.Environment)
	if info, err := os.Stat(spec.Directory); err != nil || !info.IsDir() {
		fmt.Fprintf(os.Stderr, "slurmstepd: error: couldn't chdir to `%s': No such file or directory: going to /tmp "+
			"instead\n", spec.Directory)
		spec.Directory = os.TempDir()
	}
	g := Start(spec, Streams{}, emit)
	ended := make(chan struct{})
	go func() { g.Wait(); close(ended) }()
	lost := make(chan error, 1)
	go func() {
		for {
			f, err := step.ReadFrame(in)
			if err != nil {
				lost <- err
				return
			}
			g.Apply(f)
		}
	}()
	select {
	case <-ended:
		return nil
	case err := <-lost:
		g.Signal(syscall.SIGTERM)
		g.Signal(syscall.SIGCONT)
		select {
		case <-ended:
		case <-time.After(killDelay):
			g.Signal(syscall.SIGKILL)
			<-ended
		}
		return fmt.Errorf("srun has gone: %w", err)
	}
}

// killDelay is between SIGTERM and SIGKILL.
const killDelay = 2 * time.Second
