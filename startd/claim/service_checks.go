package claim

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/health"
	"github.com/roost-batch/roost/startd/probe"
	"github.com/roost-batch/roost/startd/shell"
	"github.com/roost-batch/roost/startd/starterclient"
)

// Bounds on the checks of an attempt. They hold for what a schedd sends, whatever it has
// checked itself.
const (
	maxChecks      = 16
	maxCheckText   = 4 << 10 // bytes of a path, a header or a word of a command
	maxCheckWords  = 256     // of a command, or headers
	minCheckEvery  = time.Second
	maxCheckPeriod = 24 * time.Hour
	maxCheckCount  = 1000 // of passes or failures in a row
	// bytes of what the command of an exec check writes that are looked at
	maxCheckOutput = 4 << 10
)

// serviceState is what a runner knows of an attempt of a service.
type serviceState struct {
	program  *wire.ServiceProgram // nil: the attempt is not of a service
	watch    *probe.Watch         // nil: it is not checked
	report   health.Report        // the last one
	results  []health.CheckResult // with it
	reported bool                 // there was one
	draining *VacateCmd           // how it is stopped when it is drained; nil: it is not leaving
	drain    context.CancelFunc   // ends the drain at once; nil: there is none
	metric   context.CancelFunc   // ends the reads of its metric; nil: there are none
}

// serviceRunner is the runner of a claim as far as it checks tasks of services and stops
// them in order.
type serviceRunner struct{ *Runner }

func (h *Runner) service() serviceRunner { return serviceRunner{h} }

// serviceProgram returns what the record of an attempt has of its service; nil for a task
// of none.
func serviceProgram(encoded []byte) *wire.ServiceProgram {
	p := &wire.ServiceProgram{}
	if len(encoded) == 0 || proto.Unmarshal(encoded, p) != nil {
		return nil
	}
	return p
}

// startChecks begins to check the attempt, whose program runs. It is ready at once if it
// has no checks. After a restart of the startd it goes on from its last state.
func (h serviceRunner) startChecks(a *Attempt, pid int) {
	if a.service.program = serviceProgram(a.record.Service); a.service.program == nil {
		return
	}
	run := &checkCommand{host: h.machine, attempt: a, group: h.group, starter: h.starter.PID(), pid: pid}
	suspension := &h.ownerSuspension
	a.service.watch = h.machine.prober.Start(probe.Target{
		Checks: healthChecks(a.service.program), Ports: h.portAddresses(),
		Last: health.State(min(a.record.Health, uint8(health.Leaving))), Exec: run.execute,
		Suspended: func() bool { return a.isStill.Load() || suspension.reason() != "" },
		Report: func(r health.Report, results []health.CheckResult) {
			h.queue.Put(healthChanged{a.id, r, results})
		},
	})
	h.startMetric(a)
	if left := a.record.HeldUntil - boottime.Now(); left > 0 {
		a.service.watch.Hold(left)
	}
}

// stopChecks ends the checks of an attempt that has ended.
func (h serviceRunner) stopChecks(a *Attempt) {
	if a.service.drain != nil {
		a.service.drain()
	}
	if a.service.metric != nil {
		a.service.metric()
		a.service.metric = nil
	}
	if a.service.watch != nil {
		a.service.watch.Stop()
		a.service.watch = nil
	}
}

// onHealthChanged passes on a change of the state. It is written down first, so that a
// restart of the startd knows it.
func (h serviceRunner) onHealthChanged(n healthChanged) {
	if !h.hasOpenAttempt(n.id) || h.attempt.service.watch == nil {
		return
	}
	a := h.attempt
	if state := uint8(n.report.State); a.record.Health != state {
		a.record.Health = state
		h.writeRecord(a)
	}
	last := a.service.report
	isNews := n.report.State != last.State || n.report.Check != last.Check || n.report.Detail != last.Detail
	if isNews && (n.report.State == health.Failing || n.report.State == health.Unready) {
		h.machine.log.Info("health", "attempt", a.Label(), "state", n.report)
	}
	a.service.report, a.service.results, a.service.reported = n.report, n.results, true
	h.postHealth(a)
}

// postHealth tells the machine how an attempt is and where it is reached.
func (h serviceRunner) postHealth(a *Attempt) {
	report, program := a.service.report, a.service.program
	h.machine.host.Post(HealthEvent{Claim: h.id, ID: a.id, Health: &wire.TaskHealth{
		Attempt: wire.FromAttempt(a.id), State: wireHealth(report.State), Check: report.Check,
		Detail: report.Detail, Failures: uint32(report.Failures), AtNs: time.Now().UnixNano(),
		Checks: wireResults(a.service.results),
	}, Name: a.JobName(), Revision: program.GetRevision(), Ports: h.portAddresses(), Right: program.GetNameRight()})
}

// wireHealth is a state in the words of the wire.
func wireHealth(s health.State) wire.HealthState {
	return [...]wire.HealthState{
		health.Starting: wire.HealthState_HEALTH_STATE_STARTING, health.Unready: wire.HealthState_HEALTH_STATE_UNREADY,
		health.Ready: wire.HealthState_HEALTH_STATE_READY, health.Failing: wire.HealthState_HEALTH_STATE_FAILING,
		health.Leaving: wire.HealthState_HEALTH_STATE_LEAVING,
	}[s]
}

// wireResults are the results of checks in the words of the wire, whose times are those
// of the wall clock.
func wireResults(results []health.CheckResult) []*wire.CheckResult {
	list := make([]*wire.CheckResult, 0, len(results))
	for _, r := range results {
		m := &wire.CheckResult{Name: r.Name, Detail: r.Detail, Failures: uint32(r.Failures),
			Untold: uint32(r.Untold), Trouble: r.Trouble,
			Since: time.Now().Add(r.Since - boottime.Now()).UnixNano()}
		if r.Outcome != health.Unknown {
			m.Result = r.Outcome.String()
		}
		list = append(list, m)
	}
	return list
}

// holdChecks has the checks of an attempt not run for a time.
func (h serviceRunner) holdChecks(o HoldChecksCmd) {
	if h.hasAttempt(o.ID) && h.attempt.service.watch != nil {
		period := min(max(o.For, 0), maxCheckPeriod)
		h.attempt.record.HeldUntil = boottime.Now() + period
		h.writeRecord(h.attempt)
		h.attempt.service.watch.Hold(period)
	}
}

// setNameRight replaces the right with which an attempt is found by name.
func (h serviceRunner) setNameRight(o NameRightCmd) {
	if !h.hasAttempt(o.ID) || h.attempt.service.program == nil {
		return
	}
	a := h.attempt
	a.service.program.NameRight = o.Right
	a.record.Service = encodeReport(a.service.program)
	h.writeRecord(a)
	if a.service.reported && a.recordedExit == nil {
		h.postHealth(a)
	}
}

// healthChecks are the checks of a program, within bounds.
func healthChecks(p *wire.ServiceProgram) []health.Check {
	all := p.GetChecks()
	list := make([]health.Check, 0, len(all))
	for _, c := range all[:min(len(all), maxChecks)] {
		every := min(max(time.Duration(c.GetEveryNs()), minCheckEvery), maxCheckPeriod)
		longest := every
		if checkKind(c.GetKind()) == health.ExecCheck { // the next run waits for its end
			longest = max(every, roost.DefaultCheckTimeout)
		}
		check := health.Check{
			Name: checkText(c.GetName()), Kind: checkKind(c.GetKind()), IsLive: c.GetLive(), Every: every,
			Timeout:     min(max(time.Duration(c.GetTimeoutNs()), time.Millisecond), longest),
			Fails:       int(min(max(c.GetFails(), 1), maxCheckCount)),
			Passes:      int(min(max(c.GetPasses(), 1), maxCheckCount)),
			StartWithin: min(max(time.Duration(c.GetStartWithinNs()), 0), maxCheckPeriod),
			Port:        c.GetPort(), Path: checkText(c.GetPath()), Method: checkText(c.GetMethod()),
			Command: programTexts(c.GetCommand()[:min(len(c.GetCommand()), maxCheckWords)]),
		}
		for _, header := range c.GetHeaders()[:min(len(c.GetHeaders()), maxCheckWords)] {
			check.Headers = append(check.Headers, checkText(header))
		}
		list = append(list, check)
	}
	return list
}

// checkText returns a text of a check that may be written into a request: on one line,
// and not endless.
func checkText(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, s[:min(len(s), maxCheckText)])
}

func checkKind(k wire.HealthCheck_Kind) health.CheckKind {
	switch k {
	case wire.HealthCheck_KIND_TCP:
		return health.TCPCheck
	case wire.HealthCheck_KIND_EXEC:
		return health.ExecCheck
	}
	return health.HTTPCheck
}

// checkCommand runs the commands of an attempt's exec checks in its sandbox, beside the
// runner. Their CPU time is the task's.
type checkCommand struct {
	host    *Machine
	attempt *Attempt
	group   *cgroup.ClaimGroup // nil: there is none
	starter int                // its pid
	pid     int                // of the task's first process
}

// execute implements Target.Exec of package probe.
func (c *checkCommand) execute(ctx context.Context, command []string) (fault string, err error) {
	if c.group != nil && c.group.Frozen() {
		return "", fmt.Errorf("%w: the task stands still", roost.Conflict)
	}
	cred := c.attempt.cred
	task, err := shell.OpenTask(c.pid, c.starter, cred.UID)
	if err != nil {
		return "", err
	}
	mark := "ROOST_CHECK=" + rand.Text()
	o := shell.StartOptions{Program: userfiles.SelfExecutable, UID: cred.UID, GID: cred.GID, Groups: cred.Groups,
		Command: command, Variable: mark}
	if c.group != nil {
		o.Join = c.group.AddTask
	}
	s, err := shell.Start(task, o)
	task.Close()
	if err != nil {
		return "", err
	}
	s.CloseInput()
	output := make(chan []byte, 2)
	go readCheckOutput(s.Out, output)
	go readCheckOutput(s.Err, output)
	select {
	case <-s.Ended():
	case <-ctx.Done():
	case <-c.attempt.ended:
	}
	s.Kill()
	<-s.Ended()
	if ctx.Err() != nil { // what has left its session is found by its environment
		if _, err := starterclient.SweepVariable(mark); err != nil {
			c.host.log.Warn("processes of a check are left", "attempt", c.attempt.Label(), "err", err)
		}
	}
	text := collectOutput(s, output)
	code, signal := s.Status()
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case c.attempt.HasEnded():
		return "", fmt.Errorf("%w: the task has ended", roost.Finished)
	case signal != 0:
		return fmt.Sprintf("signal %d", signal), nil
	case code != 0:
		return strings.TrimSuffix(fmt.Sprintf("exit code %d: %s", code, lastLine(text)), ": "), nil
	}
	return "", nil
}

// outputTime is how long what a command has written is waited for when it has ended.
const outputTime = 200 * time.Millisecond

// collectOutput returns what the two readers have read, and closes the streams. Another
// process may have the pipe open, so that the readers would not end.
func collectOutput(s *shell.Shell, output <-chan []byte) []byte {
	late := time.AfterFunc(outputTime, s.Close)
	text := slices.Concat(<-output, <-output)
	if late.Stop() {
		s.Close()
	}
	return text
}

// readCheckOutput reads what a command writes, and gives its last bytes.
func readCheckOutput(from io.Reader, to chan<- []byte) {
	var last []byte
	buffer := make([]byte, maxCheckOutput)
	for {
		n, err := from.Read(buffer)
		last = append(last, buffer[:n]...)
		last = last[max(len(last)-maxCheckOutput, 0):]
		if err != nil {
			to <- last
			return
		}
	}
}

// lastLine returns the last line of a text that is not empty.
func lastLine(text []byte) string {
	text = bytes.TrimSpace(text)
	return string(bytes.TrimSpace(text[bytes.LastIndexByte(text, '\n')+1:]))
}
