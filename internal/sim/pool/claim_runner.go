package pool

import (
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/sim/eventloop"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
)

// claimRunner is a claim's directory and its starter.
type claimRunner struct {
	machine       *machineNode
	id            slot.ClaimID
	hostLife      uint32              // the life of the host in which it was made
	claim         slot.Claim          // as it was made
	placement     *gpu.SavedPlacement // what it holds, by names; nil: it waits
	written       bool
	starter       *starterProcess
	onStarted     func() // what is to be done when the starter is there
	suspendReason string // why it is to stand still, as the present startd has it; empty: it is not
}

// attemptPhase is how far a starter is with an attempt.
type attemptPhase uint8

const (
	phaseIdle     attemptPhase = iota
	phaseStarting              // it was told to run it
	phaseRunning               // its processes live
	phaseOver                  // they do not any more
)

// starterProcess is the process beside a task. It enforces the lease by itself, and keeps
// how the task has ended until it is told to forget that.
type starterProcess struct {
	runner        *claimRunner
	isAlive       bool
	phase         attemptPhase
	attempt       roost.AttemptID
	program       *wire.Program
	job           int
	remaining     time.Duration // for which the task runs yet, as of since
	since         time.Duration
	initial       bool          // it has since before the beginning
	wallRemaining time.Duration // for which it may run yet, likewise; 0: for ever
	frozenByUser  bool          // it stands still for its user
	heldForOwner  bool          // what is or comes to be on the claim stands still for the owner of the machine
	code          int32
	output        bool
	began         slot.BootTime
	deadline      slot.BootTime
	version       uint64 // of what is planned
	leaseWatched  bool   // the lease is
	exit          *wire.Exited
}

// What is due of a starter; the rest of the number is the version.
const (
	dueBegin uint64 = iota
	dueEnd
	dueWalltime
	dueKill
	dueLease
	dueKinds
)

// setPlacement notes what the claim holds.
func (h *claimRunner) setPlacement(c *slot.Claim) {
	if h.placement = nil; c.HasResources() {
		saved := h.machine.core.Free().Save(c.Placement)
		h.placement = &saved
	}
}

func (h *claimRunner) spawn() {
	h.starter.isAlive = true
	h.starter.watchLease()
	if f := h.onStarted; f != nil {
		h.onStarted = nil
		f()
	}
}

func (h *claimRunner) start(a roost.AttemptID, program *wire.Program) {
	if !h.starter.isAlive {
		h.onStarted = func() { h.launchAttempt(a, program) }
		return
	}
	h.launchAttempt(a, program)
}

// launchAttempt has the starter run an attempt, unless the owner of the machine is there.
func (h *claimRunner) launchAttempt(a roost.AttemptID, program *wire.Program) {
	if s := h.starter; h.suspendReason != "" {
		s.attempt, s.phase = a, phaseStarting
		s.finishAttempt(attemptExit(a, wire.Cause_CAUSE_VACATED, "its machine is its owner's now: "+h.suspendReason))
		return
	}
	h.starter.run(a, program)
}

func (h *claimRunner) vacate(e slot.VacateAttempt) {
	h.onStarted = nil
	s := h.starter
	if s.phase == phaseOver {
		return
	}
	if s.phase != phaseRunning { // nothing lives yet
		s.attempt, s.phase = e.Attempt, phaseStarting
		s.finishAttempt(attemptExit(e.Attempt, wire.Cause(e.Cause), e.Reason))
		return
	}
	if h.machine.guard != nil && e.Cause == slot.Vacated && s.exit == nil {
		h.machine.pool.ownerStats.Vacated++
	}
	wait := h.machine.pool.rand.Between(time.Millisecond, 10*time.Millisecond)
	if !e.Fast && h.suspendReason == "" { // what stands still for the owner does not run again for that
		wait += h.machine.pool.rand.Between(0, noticePeriod(s.program)) // a task goes when it likes to, in its time
	}
	s.exit = attemptExit(e.Attempt, wire.Cause(e.Cause), e.Reason)
	s.exit.Status.Signal = 15
	s.version++
	s.scheduleDue(wait, dueKill)
}

func (h *claimRunner) dropAttempt(a roost.AttemptID) {
	if s := h.starter; s.attempt == a && s.phase == phaseOver {
		s.phase, s.attempt, s.exit, s.program = phaseIdle, roost.AttemptID{}, nil, nil
	}
}

// removeAll removes everything. A starter that is told to go takes what runs with it.
func (h *claimRunner) removeAll() {
	h.starter.killAttempt()
	h.starter.isAlive = false
	h.starter.version++
	delete(h.machine.claimRunners, h.id)
}

// scheduleDue has something due after a while of the host's life.
func (s *starterProcess) scheduleDue(after time.Duration, what uint64) {
	m := s.runner.machine
	m.pool.loop.Schedule(eventloop.PlannedEvent{At: m.pool.loop.Now() + after, Place: m.id, Kind: evTask,
		Generation: m.hostLife, Number: s.version*dueKinds + what, Payload: s})
}

// watchLease sees to it that the lease is enforced.
func (s *starterProcess) watchLease() {
	if !s.leaseWatched && s.isAlive {
		s.leaseWatched = true
		s.scheduleDue(max(s.deadline-s.runner.machine.bootTime(), 0), dueLease)
	}
}

// run starts an attempt.
func (s *starterProcess) run(a roost.AttemptID, program *wire.Program) {
	m := s.runner.machine
	s.phase, s.attempt, s.program, s.exit, s.frozenByUser, s.initial = phaseStarting, a, program, nil, false, false
	job, _ := strconv.Atoi(strings.TrimPrefix(program.GetExecutable(), programPrefix))
	s.job = job
	of := &m.pool.cfg.Jobs[job]
	s.remaining, s.code = of.runtimeAndCode(a.Task.Index)
	s.output = of.Output
	s.version++
	s.scheduleDue(m.pool.rand.Between(m.pool.cfg.Times.Start, m.pool.cfg.Times.StartMax), dueBegin)
}

// runDue does what is.
func (s *starterProcess) runDue(number uint64) {
	m := s.runner.machine
	if number%dueKinds == dueLease {
		s.enforceLease()
		return
	}
	if number/dueKinds != s.version {
		return
	}
	switch number % dueKinds {
	case dueBegin:
		if m.config.FailsAll {
			m.failedAttempts++
			s.finishAttempt(attemptExit(s.attempt, wire.Cause_CAUSE_MACHINE, "its prologue failed"))
			return
		}
		s.phase, s.began = phaseRunning, m.bootTime()
		m.pool.reportBegan(m, s)
		m.scheduleEvent(m.pool.loop.Now(), evReport, uint64(s.runner.id), &attemptStarted{s.runner.id, s, s.attempt})
		s.wallRemaining = max(time.Duration(s.program.GetWalltimeNs()), 0)
		if s.heldForOwner {
			s.reportSuspended(true)
			return
		}
		s.resumeRun()
	case dueEnd:
		s.attemptEnded(attemptExit(s.attempt, wire.Cause_CAUSE_EXITED, ""), s.code)
	case dueWalltime:
		s.attemptEnded(attemptExit(s.attempt, wire.Cause_CAUSE_WALLTIME, "it ran for longer than it may"), 0)
	case dueKill:
		s.attemptEnded(s.exit, 0)
	}
}

// enforceLease kills what lives when the lease is over.
func (s *starterProcess) enforceLease() {
	s.leaseWatched = false
	if !s.isAlive {
		return
	}
	if s.runner.machine.bootTime() < s.deadline {
		s.watchLease()
		return
	}
	if s.phase == phaseRunning { // which takes as long as a process may take that the kernel is busy with
		s.exit = attemptExit(s.attempt, wire.Cause_CAUSE_LEASE, "its lease ran out")
		s.version++
		s.scheduleDue(s.runner.machine.pool.rand.Between(time.Millisecond, time.Second), dueKill)
	}
}

// killAttempt ends what lives, and nobody is told.
func (s *starterProcess) killAttempt() {
	if s.phase == phaseRunning {
		s.runner.machine.pool.reportEnded(s.runner.machine, s, -1)
	}
	s.phase = phaseOver
	s.version++
}

// attemptEnded takes in that the last process has gone.
func (s *starterProcess) attemptEnded(x *wire.Exited, code int32) {
	x.Status.Code = code
	x.Status.Wall = int64(s.runner.machine.bootTime() - s.began)
	if s.output {
		x.Stdout, x.StdoutSize = []byte("."), 1
		if m := s.runner.machine; m.unrequestedOutputs < m.config.UnrequestedOutputs {
			m.unrequestedOutputs++
			x.Outputs = append(x.Outputs, &wire.FileEntry{Name: ".ssh/authorized_keys", Size: 1})
		}
	}
	s.runner.machine.pool.reportEnded(s.runner.machine, s, code)
	s.finishAttempt(x)
}

func (s *starterProcess) finishAttempt(x *wire.Exited) {
	m := s.runner.machine
	s.phase, s.exit = phaseOver, x
	s.version++
	m.scheduleEvent(m.pool.loop.Now(), evReport, uint64(s.runner.id), &attemptEnded{s.runner.id, x})
}

// freezeForUser has the task stand still for its user, or not any more.
func (s *starterProcess) freezeForUser(a roost.AttemptID, still bool) {
	if s.phase == phaseRunning && s.attempt == a && s.exit == nil {
		s.suspendIfWanted(still, s.heldForOwner)
	}
}

// suspendForOwner has what is on the claim stand still for the owner of the machine, or
// not any more.
func (s *starterProcess) suspendForOwner(on bool) { s.suspendIfWanted(s.frozenByUser, on) }

// suspendIfWanted has the task stand still while anybody wants it to.
func (s *starterProcess) suspendIfWanted(frozen, held bool) {
	before := s.frozenByUser || s.heldForOwner
	s.frozenByUser, s.heldForOwner = frozen, held
	still := frozen || held
	if s.phase != phaseRunning || still == before {
		return
	}
	if held && still {
		s.runner.machine.pool.ownerStats.Suspended++
	}
	s.reportSuspended(still)
	if s.exit != nil { // it was told to go: it is killed in time
		return
	}
	s.version++
	if !still {
		s.resumeRun()
		return
	}
	ran := s.runner.machine.pool.loop.Now() - s.since
	if s.remaining < ForEver {
		s.remaining -= ran
	}
	if s.wallRemaining > 0 {
		s.wallRemaining = max(s.wallRemaining-ran, 1)
	}
}

// resumeRun has the task run on for what is left of it, or for as long as it may. Its
// walltime stands still as it does.
func (s *starterProcess) resumeRun() {
	s.since = s.runner.machine.pool.loop.Now()
	s.scheduleDue(s.remaining, dueEnd)
	if s.wallRemaining > 0 && s.wallRemaining < s.remaining {
		s.scheduleDue(s.wallRemaining, dueWalltime)
	}
}

// reportSuspended tells the observer that the task does, or does no more.
func (s *starterProcess) reportSuspended(still bool) {
	what := audit.Resumed
	if still {
		what = audit.Suspended
	}
	t := s.attempt.Task
	s.runner.machine.pool.observe(audit.Event{Type: what, Node: s.runner.machine.name, Job: t.Job, Index: t.Index,
		Attempt: s.attempt.Attempt})
}

// attemptExit is how an attempt ended.
func attemptExit(a roost.AttemptID, cause wire.Cause, reason string) *wire.Exited {
	return &wire.Exited{Attempt: reference(a), Status: &wire.ExitStatus{Cause: cause, Reason: reason}}
}

// reportBegan and ends tell the observer of what lives.
func (p *Pool) reportBegan(m *machineNode, s *starterProcess) {
	p.countTask(s, 1)
	p.reportRunning(m, s)
}

func (p *Pool) reportRunning(m *machineNode, s *starterProcess) {
	if p.cfg.Observe != nil {
		p.observe(audit.Event{
			Type: audit.Began, Node: m.name, Job: s.attempt.Task.Job, Index: s.attempt.Task.Index,
			Attempt: s.attempt.Attempt, Claim: uint64(s.runner.id), Resources: s.runner.claim.Resources,
		})
	}
}

func (p *Pool) reportEnded(m *machineNode, s *starterProcess, code int32) {
	p.countTask(s, -1)
	p.observe(audit.Event{Type: audit.Ended, Node: m.name, Job: s.attempt.Task.Job, Index: s.attempt.Task.Index,
		Attempt: s.attempt.Attempt, Code: code})
}
