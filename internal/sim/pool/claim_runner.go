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

// claimRunner is a claim's directory and starter.
type claimRunner struct {
	machine       *machineNode
	id            slot.ClaimID
	hostLife      uint32              // life of the host in which it was created
	claim         slot.Claim          // the claim at its creation, with the size that is on disk
	limit         roost.Resources     // what its processes may use
	placement     *gpu.SavedPlacement // what it holds, by names; nil: it waits
	written       bool
	starter       *starterProcess
	onStarted     func() // called when the starter is up
	suspendReason string // why the present startd suspends it; empty: it does not
}

// attemptPhase is the phase of a starter's attempt.
type attemptPhase uint8

const (
	phaseIdle     attemptPhase = iota
	phaseStarting              // ordered to run
	phaseRunning               // its processes live
	phaseOver                  // its processes have ended
)

// starterProcess is the process beside a task. It enforces the lease by itself, and
// stores the task's exit status until it may forget it.
type starterProcess struct {
	runner        *claimRunner
	isAlive       bool
	phase         attemptPhase
	attempt       roost.AttemptID
	program       *wire.Program
	job           int
	remaining     time.Duration // run time left, as of since
	since         time.Duration
	initial       bool          // it runs since before the start of the simulation
	wallRemaining time.Duration // walltime left, as of since; 0: unlimited
	frozenByUser  bool          // its user has frozen it
	heldForOwner  bool          // whatever runs or starts on the claim is frozen for the machine owner
	code          int32
	output        bool
	began         roost.BootTime
	deadline      roost.BootTime
	version       uint64 // version of the planned events
	leaseWatched  bool   // an event for the end of the lease is planned
	exit          *wire.Exited
	health        wire.HealthState // what the program answers to its checks
	nextHealth    wire.HealthState // the same after the next change
}

// Kinds of a starter's due events. The rest of the number is the version.
const (
	dueBegin uint64 = iota
	dueEnd
	dueWalltime
	dueKill
	dueLease
	dueHealth
	dueLoad
	dueKinds
)

// setPlacement records what the claim holds.
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

// launchAttempt starts an attempt, unless the machine owner is present.
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
	if s.phase != phaseRunning { // no process lives yet
		s.attempt, s.phase = e.Attempt, phaseStarting
		s.finishAttempt(attemptExit(e.Attempt, wire.Cause(e.Cause), e.Reason))
		return
	}
	if h.machine.guard != nil && e.Cause == slot.Vacated && s.exit == nil {
		h.machine.pool.ownerStats.Vacated++
	}
	wait := h.machine.pool.rand.Between(time.Millisecond, 10*time.Millisecond)
	if !e.Fast && h.suspendReason == "" { // a task frozen for the owner does not run again for its vacate
		// a task exits at some time within its notice period
		wait += h.machine.pool.rand.Between(0, noticePeriod(s.program))
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

// removeAll removes the claim. A starter that ends takes its task with it.
func (h *claimRunner) removeAll() {
	h.starter.killAttempt()
	h.starter.isAlive = false
	h.starter.version++
	delete(h.machine.claimRunners, h.id)
}

// scheduleDue plans an event of the host, which is void after a reboot.
func (s *starterProcess) scheduleDue(after time.Duration, what uint64) {
	m := s.runner.machine
	m.pool.loop.Schedule(eventloop.PlannedEvent{At: m.pool.loop.Now() + after, Place: m.id, Kind: evTask,
		Generation: m.hostLife, Number: s.version*dueKinds + what, Payload: s})
}

// watchLease plans the check at the end of the lease, unless it is planned.
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
	job, err := strconv.Atoi(strings.TrimPrefix(program.GetExecutable(), programPrefix))
	if err != nil { // it holds an alloc open, and runs nothing of its user's
		job = m.pool.jobOf(a.Task.Job)
	}
	s.job, s.health = job, wire.HealthState_HEALTH_STATE_STARTING
	of := &m.pool.cfg.Jobs[job]
	s.remaining, s.code = of.runtimeAndCode(a.Task.Index, a.Attempt)
	if of.Flow != nil {
		s.code = flowCode(of.Flow, program.GetArguments())
	}
	s.output = of.Output
	s.version++
	s.scheduleDue(m.pool.rand.Between(m.pool.cfg.Times.Start, m.pool.cfg.Times.StartMax), dueBegin)
}

// runDue handles a due event.
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
	case dueHealth:
		s.changeHealth()
	case dueLoad:
		s.measureLoad()
	}
}

// enforceLease kills the attempt if its lease has ended.
func (s *starterProcess) enforceLease() {
	s.leaseWatched = false
	if !s.isAlive {
		return
	}
	if s.runner.machine.bootTime() < s.deadline {
		s.watchLease()
		return
	}
	if s.phase == phaseRunning { // takes as long as the kernel may delay a kill
		s.exit = attemptExit(s.attempt, wire.Cause_CAUSE_LEASE, "its lease ran out")
		s.version++
		s.scheduleDue(s.runner.machine.pool.rand.Between(time.Millisecond, time.Second), dueKill)
	}
}

// killAttempt ends the attempt without a report to the schedd.
func (s *starterProcess) killAttempt() {
	if s.phase == phaseRunning {
		s.runner.machine.pool.reportEnded(s.runner.machine, s, -1)
	}
	s.phase = phaseOver
	s.version++
}

// attemptEnded handles the end of the attempt's last process.
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

// freezeForUser freezes the task for its user, or ends that.
func (s *starterProcess) freezeForUser(a roost.AttemptID, still bool) {
	if s.phase == phaseRunning && s.attempt == a && s.exit == nil {
		s.suspendIfWanted(still, s.heldForOwner)
	}
}

// suspendForOwner freezes what runs or starts on the claim for the machine owner, or ends
// that.
func (s *starterProcess) suspendForOwner(on bool) { s.suspendIfWanted(s.frozenByUser, on) }

// suspendIfWanted freezes the task while its user or the machine owner wants it.
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
	if s.exit != nil { // it was ordered to leave: the kill comes in time
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

// resumeRun lets the task run for its remaining time, or up to its walltime. The walltime
// does not pass while the task is frozen.
func (s *starterProcess) resumeRun() {
	s.since = s.runner.machine.pool.loop.Now()
	s.scheduleDue(s.remaining, dueEnd)
	if s.wallRemaining > 0 && s.wallRemaining < s.remaining {
		s.scheduleDue(s.wallRemaining, dueWalltime)
	}
	s.scheduleHealth()
	s.scheduleLoad()
}

// reportSuspended reports to the observer that the task was frozen or resumed.
func (s *starterProcess) reportSuspended(still bool) {
	what := audit.Resumed
	if still {
		what = audit.Suspended
	}
	t := s.attempt.Task
	s.runner.machine.pool.observe(audit.Event{Type: what, Node: s.runner.machine.name, Job: t.Job, Index: t.Index,
		Attempt: s.attempt.Attempt})
}

// attemptExit returns the exit report of an attempt.
func attemptExit(a roost.AttemptID, cause wire.Cause, reason string) *wire.Exited {
	return &wire.Exited{Attempt: reference(a), Status: &wire.ExitStatus{Cause: cause, Reason: reason}}
}

// reportBegan reports to the observer that an attempt's first process lives.
func (p *Pool) reportBegan(m *machineNode, s *starterProcess) {
	p.countTask(s, 1)
	p.reportRunning(m, s)
}

func (p *Pool) reportRunning(m *machineNode, s *starterProcess) {
	if p.cfg.Observe != nil {
		p.observe(audit.Event{
			Type: audit.Began, Node: m.name, Job: s.attempt.Task.Job, Index: s.attempt.Task.Index,
			Attempt: s.attempt.Attempt, Claim: uint64(s.runner.id), Resources: s.runner.limit,
			Detail: s.ownEnvironment(), Inside: uint64(s.runner.claim.Inside),
		})
	}
}

// ownEnvironment returns what the user has put first into the task's environment.
func (s *starterProcess) ownEnvironment() string {
	if list := s.program.GetEnvironment(); len(list) > 0 {
		return string(list[0])
	}
	return ""
}

func (p *Pool) reportEnded(m *machineNode, s *starterProcess, code int32) {
	p.countTask(s, -1)
	p.observe(audit.Event{Type: audit.Ended, Node: m.name, Job: s.attempt.Task.Job, Index: s.attempt.Task.Index,
		Attempt: s.attempt.Attempt, Code: code})
}
