package steps

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/mpinet"
	"github.com/roost-batch/roost/internal/pmi"
	"github.com/roost-batch/roost/internal/slurm/step"
	"github.com/roost-batch/roost/internal/slurm/stepgroup"
	"github.com/roost-batch/roost/internal/slurm/steptable"
)

// stepRun is a step that runs. One goroutine owns it: run.
type stepRun struct {
	*stepPlan
	events         chan any
	local          *stepgroup.Group // nil: no task is on this machine
	localMachine   int              // index in the placement
	remote         *remoteMachines  // nil: there is no other machine
	remoteMachines []int            // their indexes in the placement
	machineOf      []int            // by task: its index in the placement
	stdout, stderr *outputWriter
	left           int // tasks that have not ended
	ended          []bool
	exits          []step.MachineExits
	status         int
	listener       *stepListener // nil: none
	collector      *pmi.Collector
	joiners        []pmi.MessageJoiner
	killAt         time.Time
	isStopped      bool // the rest was ended from here
	record         steptable.Record
	attached       []*attachment
	recent         []step.Frame // output, newest last
	recentSize     int          // bytes of that
	interrupts     int
	lastInterrupt  time.Time
}

// The events of a step.
type (
	taskFrame struct {
		machine int
		frame   step.Frame
	}
	machineEnd struct {
		machine int
		err     error
	}
	callEnd    struct{ err error }
	socketCall struct {
		conn  *os.File
		frame step.Frame
	}
)

// killDelay is between the signals TERM and KILL to tasks that are to end.
const killDelay = 2 * time.Second

// run runs the tasks and returns the exit status of srun.
func (p *stepPlan) run() error {
	r := &stepRun{stepPlan: p, events: make(chan any, 64), left: p.placement.Size, localMachine: -1,
		machineOf: make([]int, p.placement.Size), ended: make([]bool, p.placement.Size)}
	if err := r.openOutputs(); err != nil {
		return p.fail(err)
	}
	signals, release := catchSignals()
	defer release()
	r.begin()
	if err := r.start(); err != nil {
		return p.fail(err)
	}
	r.listen()
	if r.remote != nil {
		defer r.remote.conn.Close()
	}
	go r.pumpInput()
	r.serve(signals)
	if r.local != nil {
		r.local.Wait()
	}
	r.finish()
	return r.report()
}

// say writes a line with the name of the command before it.
func (p *stepPlan) say(format string, args ...any) {
	fmt.Fprintf(p.c.Stderr, cmp.Or(p.caller, "srun")+": "+format, args...)
}

// fail reports why a step could not be run.
func (p *stepPlan) fail(err error) error {
	p.say("error: %v\n", err)
	return frame.ExitError(1)
}

// openOutputs opens the files of all tasks.
func (r *stepRun) openOutputs() error {
	width := 0
	if r.options.label {
		width = len(strconv.Itoa(r.placement.Size - 1))
	}
	open := func(pattern string, stream io.Writer) (*outputWriter, error) {
		w := &outputWriter{out: stream, labelWidth: width, unbuffered: r.options.unbuffered}
		file := r.sharedFile(pattern)
		if file == "" {
			return w, nil
		}
		flags := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
		if r.options.append {
			flags = os.O_WRONLY | os.O_CREATE | os.O_APPEND
		}
		f, err := os.OpenFile(file, flags, 0o666)
		if err != nil {
			return nil, fmt.Errorf("Could not open stdout file: %w", err)
		}
		w.out = f
		return w, nil
	}
	var err error
	if r.stdout, err = open(r.options.output, r.c.Stdout); err != nil {
		return err
	}
	switch {
	case r.options.errors != "" && r.options.errors != r.options.output:
		r.stderr, err = open(r.options.errors, r.c.Stderr)
	case r.sharedFile(r.options.output) != "":
		r.stderr = r.stdout
	default:
		r.stderr = &outputWriter{out: r.c.Stderr, labelWidth: width, unbuffered: r.options.unbuffered}
	}
	return err
}

// start starts the tasks of all machines.
func (r *stepRun) start() error {
	groups := r.groups()
	here := r.c.Getenv("ROOST_NODE")
	var far []*step.TaskGroup
	var farMachines []int
	r.collector, r.joiners = pmi.NewCollector(len(groups)), make([]pmi.MessageJoiner, len(groups))
	for i, m := range r.placement.Machines {
		for _, task := range r.placement.Tasks[i] {
			r.machineOf[task] = i
		}
		if name := r.job.machines[m].Name; name == here || len(r.job.machines) == 1 {
			r.localMachine = i
			continue
		}
		far, farMachines = append(far, groups[i]), append(farMachines, m)
		r.remoteMachines = append(r.remoteMachines, i)
	}
	if len(far) > 0 {
		remote, err := callMachines(r.job, farMachines, far)
		if err != nil {
			return err
		}
		r.remote = remote
		go func() {
			r.events <- callEnd{remote.serve(
				func(place int, f step.Frame) { r.events <- taskFrame{r.remoteMachines[place], f} },
				func(data []byte) { _, _ = r.c.Stderr.Write(data) },
				func(place int, err error) { r.events <- machineEnd{r.remoteMachines[place], err} })}
		}()
	}
	if i := r.localMachine; i >= 0 {
		r.local = stepgroup.Start(groups[i], r.directStreams(), func(f step.Frame) { r.events <- taskFrame{i, f} })
	}
	return nil
}

// directStreams are the streams that a single task on this machine has as its own.
func (r *stepRun) directStreams() (s stepgroup.Streams) {
	if r.placement.Size > 1 || r.options.label {
		return s
	}
	s.Out, _ = r.stdout.out.(*os.File)
	s.Err, _ = r.stderr.out.(*os.File)
	if in, ok := r.c.Stdin.(*os.File); ok && !frame.ScreenOf(in).Terminal { // which only its foreground may read
		s.In = in
	}
	return s
}

// pumpInput gives what srun reads to all tasks that have no file, or to the one that
// --input names.
func (r *stepRun) pumpInput() {
	to := uint32(step.AllTasks)
	if only, err := strconv.ParseUint(r.options.input, 10, 31); err == nil {
		to = uint32(only)
	}
	hasInput := r.options.input == "" || r.options.input == "all" || to != step.AllTasks
	if s := r.directStreams(); s.In != nil && r.local != nil || !hasInput {
		return
	}
	if r.remote != nil {
		<-r.remote.begun
	}
	buffer := make([]byte, 32<<10)
	for {
		n, err := r.c.Stdin.Read(buffer)
		if n > 0 {
			r.sendAll(step.Frame{Kind: step.FrameInput, Task: to, Data: append([]byte(nil), buffer[:n]...)})
		}
		if err != nil {
			r.sendAll(step.Frame{Kind: step.FrameInputEnd, Task: to})
			return
		}
	}
}

// sendAll sends a frame to the tasks of all machines.
func (r *stepRun) sendAll(f step.Frame) {
	for i := range r.placement.Machines {
		r.send(i, f)
	}
}

// send sends a frame to the tasks of a machine. One that cannot be reached reports its
// end itself.
func (r *stepRun) send(machine int, f step.Frame) {
	if machine == r.localMachine {
		r.local.Apply(f)
		return
	}
	for place, m := range r.remoteMachines {
		if m == machine {
			_ = r.remote.send(place, f)
		}
	}
}

// serve takes in events until all tasks have ended.
func (r *stepRun) serve(signals <-chan os.Signal) {
	var limit, rest <-chan time.Time
	if r.options.limit > 0 {
		limit = time.After(r.options.limit)
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for r.left > 0 {
		before := r.left
		select {
		case e := <-r.events:
			r.apply(e)
		case s := <-signals:
			r.onSignal(s.(syscall.Signal))
		case <-limit:
			r.cancel(" DUE TO TIME LIMIT", steptable.EndTimeout)
		case <-rest:
			r.say("error: Timed out waiting for job step to complete\n")
			r.terminate()
		case now := <-tick.C:
			if !r.killAt.IsZero() && now.After(r.killAt) {
				r.sendSignal(syscall.SIGKILL)
			}
		}
		if r.left < before && rest == nil && r.options.wait > 0 {
			rest = time.After(r.options.wait)
		}
	}
}

// apply takes in one event.
func (r *stepRun) apply(e any) {
	switch e := e.(type) {
	case taskFrame:
		r.applyFrame(e.machine, e.frame)
	case machineEnd:
		if e.err != nil {
			r.loseMachine(e.machine, e.err)
		}
	case socketCall:
		r.applyCall(e)
	case callEnd:
		for _, m := range r.remoteMachines {
			if e.err != nil {
				r.loseMachine(m, e.err)
			}
		}
	}
}

func (r *stepRun) applyFrame(machine int, f step.Frame) {
	if f.Kind == step.FrameRanks {
		r.applyRanks(machine, f.Data)
		return
	}
	if int(f.Task) >= len(r.ended) || r.machineOf[f.Task] != machine {
		return // a machine speaks of its own tasks only
	}
	switch f.Kind {
	case step.FrameOutput:
		r.stdout.write(f.Task, f.Data)
		r.copyOutput(f)
	case step.FrameError:
		r.stderr.write(f.Task, f.Data)
		r.copyOutput(f)
	case step.FrameExit:
		var end step.TaskEnd
		if err := json.Unmarshal(f.Data, &end); err != nil {
			end.TaskExit = step.TaskExit{Code: 1, Problem: "its end was not understood"}
		}
		r.addUsage(machine, f.Task, end)
		r.endTask(machine, f.Task, end.TaskExit)
	}
}

func (r *stepRun) endTask(machine int, task uint32, exit step.TaskExit) {
	if r.ended[task] {
		return
	}
	r.ended[task] = true
	r.left--
	r.stdout.flush(task)
	r.stderr.flush(task)
	if r.caller == "" || !r.isStopped { // what was ended from here is not the cause
		r.status = max(r.status, exit.Status())
	}
	r.exits = step.AddExit(r.exits, r.machineName(machine), int(task), exit)
	if exit != (step.TaskExit{}) && r.options.killOnBadExit && !r.isStopped && r.left > 0 {
		r.cancel("", steptable.EndCancelled)
	}
}

// machineName is the name of a machine of the placement.
func (r *stepRun) machineName(machine int) string {
	return r.job.machines[r.placement.Machines[machine]].Name
}

// loseMachine ends the tasks of a machine that has gone.
func (r *stepRun) loseMachine(machine int, err error) {
	isFirst := true
	for _, task := range r.placement.Tasks[machine] {
		if r.ended[task] {
			continue
		}
		if isFirst {
			r.say("error: Node failure on %s: %v\n", r.machineName(machine), err)
			isFirst, r.record.End = false, steptable.EndNodeFail
		}
		r.endTask(machine, uint32(task), step.TaskExit{Code: 1, Problem: "lost with its node"})
	}
}

// applyRanks passes on what the ranks of an MPI program have for each other.
func (r *stepRun) applyRanks(machine int, data []byte) {
	part, ok := pmi.DecodeMessage(data)
	if !ok {
		return
	}
	m, complete, tooLong := r.joiners[machine].Join(part, pmi.MaxGangKeys)
	if !complete || tooLong {
		return
	}
	for _, e := range r.collector.Apply(machine, m) {
		for _, part := range e.Message.Split() {
			f := step.Frame{Kind: step.FrameRanks, Task: step.AllTasks, Data: part.Append(nil)}
			if e.To >= 0 {
				r.send(e.To, f)
			} else {
				r.sendAll(f)
			}
		}
	}
	if end := r.collector.Outcome(); end != nil && end.Kind == pmi.Stop && !r.isStopped {
		r.say("error: %s\n", end.Text)
		r.status = max(r.status, end.ExitStatus())
		r.terminate()
	}
}

// cancel ends the tasks, and says so as a step's daemon does.
func (r *stepRun) cancel(why, end string) {
	r.record.End = cmp.Or(r.record.End, end)
	if r.caller != "" {
		r.say("the other ranks are ended%s\n", strings.ToLower(why))
		r.status = max(r.status, 1)
		r.terminate()
		return
	}
	fmt.Fprintf(r.c.Stderr, "slurmstepd: error: *** STEP %s ON %s CANCELLED AT %s%s ***\n", r.id(), r.machineName(0),
		r.c.Now().Format("2006-01-02T15:04:05"), why)
	r.terminate()
}

func (r *stepRun) terminate() {
	r.isStopped = true
	r.sendSignal(syscall.SIGTERM)
	r.sendSignal(syscall.SIGCONT)
	r.killAt = time.Now().Add(killDelay)
}

func (r *stepRun) sendSignal(s syscall.Signal) {
	r.sendAll(step.Frame{Kind: step.FrameSignal, Task: step.AllTasks, Data: []byte{byte(s)}})
}

// onSignal passes a signal on. The first interrupt of a user only reports, as srun does.
func (r *stepRun) onSignal(s syscall.Signal) {
	if s != syscall.SIGINT || r.caller != "" {
		if r.sendSignal(s); r.caller != "" && (s == syscall.SIGINT || s == syscall.SIGTERM) {
			r.isStopped, r.killAt, r.status = true, time.Now().Add(killDelay), max(r.status, 128+int(s))
		}
		return
	}
	now := time.Now()
	if r.interrupts == 0 || now.Sub(r.lastInterrupt) > time.Second {
		r.interrupts, r.lastInterrupt = 1, now
		r.say("interrupt (one more within 1 sec to abort)\n")
		r.say("StepId=%s tasks %s: running\n", r.id(), step.Ranges(r.running()))
		return
	}
	if r.interrupts++; r.interrupts == 2 {
		r.say("sending Ctrl-C to StepId=%s\n", r.id())
		r.sendSignal(syscall.SIGINT)
		r.isStopped, r.killAt = true, now.Add(killDelay)
		return
	}
	r.say("forcing job termination\n")
	r.sendSignal(syscall.SIGKILL)
}

// running are the tasks that have not ended.
func (r *stepRun) running() (list []int) {
	for task, ended := range r.ended {
		if !ended {
			list = append(list, task)
		}
	}
	return list
}

// report says which tasks have not ended well.
func (r *stepRun) report() error {
	killed := false
	for _, x := range r.exits {
		r.say("%s\n", x)
		killed = killed || x.Exit.Signal == int(syscall.SIGKILL)
	}
	if killed {
		r.say("Force Terminated StepId=%s\n", r.id())
	}
	if r.status == 0 {
		return nil
	}
	return frame.ExitError(min(r.status, 255))
}

// serveAgent is the command of an agent.
func serveAgent(c *frame.Invocation) error {
	err := stepgroup.Serve(c.Stdin, c.Stdout, func(environment []string) []string {
		return append(mpinet.Renew(environment, c.Env), machineVariables(c.Env)...)
	})
	if err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintf(c.Stderr, "step-agent: %v\n", err)
		return frame.ExitError(1)
	}
	return nil
}
