package pool

import (
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/sim/kernel"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
)

// hand is a claim's directory and its starter.
type hand struct {
	m       *machineNode
	id      slot.ClaimID
	host    uint32     // the life of the host in which it was made
	claim   slot.Claim // as it was made
	placed  *gpu.Saved // what it holds, by names; nil: it waits
	written bool
	starter *starter
	later   func() // what is to be done when the starter is there
	wanted  string // why it is to stand still, as the present startd has it; empty: it is not
}

// phase is how far a starter is with an attempt.
type phase uint8

const (
	idle     phase = iota
	starting       // it was told to run it
	running        // its processes live
	over           // they do not any more
)

// starter is the process beside a task. It enforces the lease by itself, and keeps how the task has ended until it is told to forget that.
type starter struct {
	h        *hand
	lives    bool
	phase    phase
	attempt  roost.AttemptID
	program  *wire.Program
	job      int
	left     time.Duration // for which the task runs yet, as of since
	since    time.Duration
	carried  bool          // it has since before the beginning
	wall     time.Duration // for which it may run yet, likewise; 0: for ever
	frozen   bool          // it stands still for its user
	held     bool          // what is or comes to be on the claim stands still for the owner of the machine
	code     int32
	output   bool
	began    slot.Instant
	deadline slot.Instant
	version  uint64 // of what is planned
	watched  bool   // the lease is
	exit     *wire.Exited
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

// settle notes what the claim holds.
func (h *hand) settle(c *slot.Claim) {
	if h.placed = nil; c.Holds() {
		saved := h.m.core.Free().Save(c.Placement)
		h.placed = &saved
	}
}

func (h *hand) spawn() {
	h.starter.lives = true
	h.starter.watch()
	if f := h.later; f != nil {
		h.later = nil
		f()
	}
}

func (h *hand) start(a roost.AttemptID, program *wire.Program) {
	if !h.starter.lives {
		h.later = func() { h.launch(a, program) }
		return
	}
	h.launch(a, program)
}

// launch has the starter run an attempt, unless the owner of the machine is there.
func (h *hand) launch(a roost.AttemptID, program *wire.Program) {
	if s := h.starter; h.wanted != "" {
		s.attempt, s.phase = a, starting
		s.finish(exit(a, wire.Cause_CAUSE_VACATED, "its machine is its owner's now: "+h.wanted))
		return
	}
	h.starter.run(a, program)
}

func (h *hand) vacate(e slot.Vacate) {
	h.later = nil
	s := h.starter
	if s.phase == over {
		return
	}
	if s.phase != running { // nothing lives yet
		s.attempt, s.phase = e.Attempt, starting
		s.finish(exit(e.Attempt, wire.Cause(e.Cause), e.Reason))
		return
	}
	if h.m.guard != nil && e.Cause == slot.Vacated && s.exit == nil {
		h.m.p.lending.Left++
	}
	wait := h.m.p.rand.Between(time.Millisecond, 10*time.Millisecond)
	if !e.Fast && h.wanted == "" { // what stands still for the owner does not run again for that
		wait += h.m.p.rand.Between(0, notice(s.program)) // a task goes when it likes to, in its time
	}
	s.exit = exit(e.Attempt, wire.Cause(e.Cause), e.Reason)
	s.exit.Status.Signal = 15
	s.version++
	s.plan(wait, dueKill)
}

func (h *hand) forget(a roost.AttemptID) {
	if s := h.starter; s.attempt == a && s.phase == over {
		s.phase, s.attempt, s.exit, s.program = idle, roost.AttemptID{}, nil, nil
	}
}

// dismiss removes everything. A starter that is told to go takes what runs with it.
func (h *hand) dismiss() {
	h.starter.kill()
	h.starter.lives = false
	h.starter.version++
	delete(h.m.hands, h.id)
}

// plan has something due after a while of the host's life.
func (s *starter) plan(after time.Duration, what uint64) {
	m := s.h.m
	m.p.k.Plan(kernel.Event{At: m.p.k.Now() + after, Place: m.id, Kind: evTask, Life: m.host, Number: s.version*dueKinds + what, With: s})
}

// watch sees to it that the lease is enforced.
func (s *starter) watch() {
	if !s.watched && s.lives {
		s.watched = true
		s.plan(max(s.deadline-s.h.m.boot(), 0), dueLease)
	}
}

// run starts an attempt.
func (s *starter) run(a roost.AttemptID, program *wire.Program) {
	m := s.h.m
	s.phase, s.attempt, s.program, s.exit, s.frozen, s.carried = starting, a, program, nil, false, false
	job, _ := strconv.Atoi(strings.TrimPrefix(program.GetExecutable(), programs))
	s.job = job
	of := &m.p.cfg.Jobs[job]
	s.left, s.code = of.run(a.Task.Index)
	s.output = of.Output
	s.version++
	s.plan(m.p.rand.Between(m.p.cfg.Times.Start, m.p.cfg.Times.StartMost), dueBegin)
}

// due does what is.
func (s *starter) due(number uint64) {
	m := s.h.m
	if number%dueKinds == dueLease {
		s.lease()
		return
	}
	if number/dueKinds != s.version {
		return
	}
	switch number % dueKinds {
	case dueBegin:
		if m.of.Fails {
			m.failed++
			s.finish(exit(s.attempt, wire.Cause_CAUSE_MACHINE, "its prologue failed"))
			return
		}
		s.phase, s.began = running, m.boot()
		m.p.begins(m, s)
		m.plan(m.p.k.Now(), evNews, uint64(s.h.id), &began{s.h.id, s, s.attempt})
		s.wall = max(time.Duration(s.program.GetWalltimeNs()), 0)
		if s.held {
			s.stands(true)
			return
		}
		s.proceed()
	case dueEnd:
		s.end(exit(s.attempt, wire.Cause_CAUSE_EXITED, ""), s.code)
	case dueWalltime:
		s.end(exit(s.attempt, wire.Cause_CAUSE_WALLTIME, "it ran for longer than it may"), 0)
	case dueKill:
		s.end(s.exit, 0)
	}
}

// lease kills what lives when the lease is over.
func (s *starter) lease() {
	s.watched = false
	if !s.lives {
		return
	}
	if s.h.m.boot() < s.deadline {
		s.watch()
		return
	}
	if s.phase == running { // which takes as long as a process may take that the kernel is busy with
		s.exit = exit(s.attempt, wire.Cause_CAUSE_LEASE, "its lease ran out")
		s.version++
		s.plan(s.h.m.p.rand.Between(time.Millisecond, time.Second), dueKill)
	}
}

// kill ends what lives, and nobody is told.
func (s *starter) kill() {
	if s.phase == running {
		s.h.m.p.ends(s.h.m, s, -1)
	}
	s.phase = over
	s.version++
}

// end takes in that the last process has gone.
func (s *starter) end(x *wire.Exited, code int32) {
	x.Status.Code = code
	x.Status.Wall = int64(s.h.m.boot() - s.began)
	if s.output {
		x.Stdout, x.StdoutSize = []byte("."), 1
		if m := s.h.m; m.lied < m.of.Lies {
			m.lied++
			x.Outputs = append(x.Outputs, &wire.FileEntry{Name: ".ssh/authorized_keys", Size: 1})
		}
	}
	s.h.m.p.ends(s.h.m, s, code)
	s.finish(x)
}

func (s *starter) finish(x *wire.Exited) {
	m := s.h.m
	s.phase, s.exit = over, x
	s.version++
	m.plan(m.p.k.Now(), evNews, uint64(s.h.id), &ended{s.h.id, x})
}

// freeze has the task stand still for its user, or not any more.
func (s *starter) freeze(a roost.AttemptID, still bool) {
	if s.phase == running && s.attempt == a && s.exit == nil {
		s.stand(still, s.held)
	}
}

// hold has what is on the claim stand still for the owner of the machine, or not any more.
func (s *starter) hold(on bool) { s.stand(s.frozen, on) }

// stand has the task stand still while anybody wants it to.
func (s *starter) stand(frozen, held bool) {
	before := s.frozen || s.held
	s.frozen, s.held = frozen, held
	still := frozen || held
	if s.phase != running || still == before {
		return
	}
	if held && still {
		s.h.m.p.lending.Stood++
	}
	s.stands(still)
	if s.exit != nil { // it was told to go: it is killed in time
		return
	}
	s.version++
	if !still {
		s.proceed()
		return
	}
	ran := s.h.m.p.k.Now() - s.since
	if s.left < ForEver {
		s.left -= ran
	}
	if s.wall > 0 {
		s.wall = max(s.wall-ran, 1)
	}
}

// proceed has the task run on for what is left of it, or for as long as it may. Its walltime stands still as it does.
func (s *starter) proceed() {
	s.since = s.h.m.p.k.Now()
	s.plan(s.left, dueEnd)
	if s.wall > 0 && s.wall < s.left {
		s.plan(s.wall, dueWalltime)
	}
}

// stands tells the observer that the task does, or does no more.
func (s *starter) stands(still bool) {
	what := audit.WentOn
	if still {
		what = audit.Stood
	}
	t := s.attempt.Task
	s.h.m.p.see(audit.Seen{What: what, Node: s.h.m.name, Job: t.Job, Index: t.Index, Attempt: s.attempt.Attempt})
}

// exit is how an attempt ended.
func exit(a roost.AttemptID, cause wire.Cause, reason string) *wire.Exited {
	return &wire.Exited{Attempt: reference(a), Status: &wire.ExitStatus{Cause: cause, Reason: reason}}
}

// begins and ends tell the observer of what lives.
func (p *Pool) begins(m *machineNode, s *starter) {
	p.counts(s, 1)
	p.seeBegun(m, s)
}

func (p *Pool) seeBegun(m *machineNode, s *starter) {
	if p.cfg.Observe != nil {
		p.see(audit.Seen{
			What: audit.Began, Node: m.name, Job: s.attempt.Task.Job, Index: s.attempt.Task.Index, Attempt: s.attempt.Attempt, Claim: uint64(s.h.id), Resources: s.h.claim.Resources,
		})
	}
}

func (p *Pool) ends(m *machineNode, s *starter, code int32) {
	p.counts(s, -1)
	p.see(audit.Seen{What: audit.Ended, Node: m.name, Job: s.attempt.Task.Job, Index: s.attempt.Task.Index, Attempt: s.attempt.Attempt, Code: code})
}
