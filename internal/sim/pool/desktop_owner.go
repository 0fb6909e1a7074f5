package pool

import (
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/sim/eventloop"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/desktop"
	"github.com/roost-batch/roost/startd/desktop/policy"
	"github.com/roost-batch/roost/startd/slot"
)

// guardProcess is the guard that observes the owner of a machine. It does what
// startd/desktop/guard does. It is a process of the host, independent of the startd.
type guardProcess struct {
	machine          *machineNode
	ownerPresent     bool           // the owner uses the machine
	ownerUntil       time.Duration  // when the owner leaves, in simulation time
	lastInput        roost.BootTime // last input of the owner; 0: never
	lastWake         roost.BootTime // last wake of the host; 0: never
	asleep           bool           // the host has woken and the guard has not yet looked long enough
	sequence         uint64         // number of the last observations sent
	lastAcknowledged uint64         // number of the last observations that the startd has applied
	connected        bool           // the startd is connected
	urgentPending    []uint64       // urgent observations that are not yet applied
	// number of the first observations that report that the guard itself has frozen
	// tasks; 0: it has not, or the startd has taken them over
	frozeAt   uint64
	dead      bool
	restartAt time.Duration // when a dead guard restarts
	unwatched bool          // the guard is dead, or has not looked since its restart
}

// Times of package guard, and of connecting the startd with it.
const (
	guardFreezeDelay  = 100 * time.Millisecond
	guardInterval     = 500 * time.Millisecond
	guardWakeDelay    = 10 * time.Second
	guardConnectDelay = 200 * time.Millisecond
	guardTimeoutDelay = 3 * time.Second // as in package startd: after this silence the machine counts as in use
	guardStartDelay   = 2 * time.Second // it looks at everything before its first report
)

// Kinds of a guard's due events. The rest of the number is that of the observations; for
// dueOwnerComes it is the milliseconds of the visit.
const (
	dueOwnerComes uint64 = iota
	dueOwnerLeft
	dueFreeze
	dueWoken
	dueLooked
	dueRestart
	dueLook
	dueGuards
)

// observationsMsg is what the guard sends to the startd.
type observationsMsg struct {
	policy.GuardObservations
	sequence uint64
	froze    bool
}

// guardConnected reports that the startd and the guard have connected.
type guardConnected struct{}

// OwnerComes lets the owner use a machine for a duration from now on, or from its next
// wake. Machines without an owner policy ignore it.
func (p *Pool) OwnerComes(name string, d time.Duration) {
	if m, ok := p.nodeByName(name).part.(*machineNode); ok && m.guard != nil && !m.isOff {
		m.guard.nextDue(0, dueOwnerComes, uint64(d/time.Millisecond))
	}
}

func (g *guardProcess) nextDue(after time.Duration, what, number uint64) {
	m := g.machine
	m.pool.loop.Schedule(eventloop.PlannedEvent{At: m.pool.loop.Now() + after, Place: m.id, Kind: evTask,
		Generation: m.hostLife, Number: number*dueGuards + what, Payload: g})
}

func (g *guardProcess) runDue(number uint64) {
	m, now := g.machine, g.machine.pool.loop.Now()
	switch what, n := number%dueGuards, number/dueGuards; what {
	case dueOwnerComes:
		g.ownerUntil = max(g.ownerUntil, now+time.Duration(n)*time.Millisecond)
		g.ownerTouched()
		g.nextDue(g.ownerUntil-now, dueOwnerLeft, 0)
		if !g.ownerPresent {
			g.ownerPresent = true
			m.pool.ownerStats.Visits++
			m.pool.observe(audit.Event{Type: audit.OwnerCame, Node: m.name})
			g.sendObservations(true)
		}
	case dueOwnerLeft:
		if g.ownerPresent && now >= g.ownerUntil {
			g.ownerTouched()
			g.ownerLeft()
			g.sendObservations(false)
		}
	case dueFreeze:
		if g.lastAcknowledged < n && slices.Contains(g.urgentPending, n) {
			g.freeze()
		}
	case dueWoken:
		if g.dead {
			return // a guard that started after the sleep does not know of it
		}
		g.lastWake, g.asleep = m.bootTime(), true
		g.nextDue(guardWakeDelay, dueLooked, 0)
		g.sendObservations(true)
	case dueLooked:
		if g.asleep && m.bootTime()-g.lastWake >= guardWakeDelay {
			g.asleep = false
			g.sendObservations(false)
		}
	case dueRestart:
		g.restart()
	case dueLook:
		g.sendFirst()
	}
}

// ownerTouched records input of the owner, if the guard is up to see it.
func (g *guardProcess) ownerTouched() {
	if !g.unwatched {
		g.lastInput = g.machine.bootTime()
	}
}

func (g *guardProcess) ownerLeft() {
	if g.ownerPresent {
		g.ownerPresent = false
		g.machine.pool.observe(audit.Event{Type: audit.OwnerLeft, Node: g.machine.name})
	}
}

// sendObservations reports the guard's observations. If the startd does not apply urgent
// ones in time, the guard freezes the tasks.
func (g *guardProcess) sendObservations(urgent bool) {
	if g.unwatched {
		return
	}
	g.sequence++
	if g.connected {
		g.machine.scheduleEvent(g.machine.pool.loop.Now()+time.Millisecond, evReport, g.sequence, g.observations())
	}
	if !urgent {
		return
	}
	g.urgentPending = append(g.urgentPending, g.sequence)
	if !g.connected {
		g.freeze()
		return
	}
	g.nextDue(guardFreezeDelay, dueFreeze, g.sequence)
}

func (g *guardProcess) observations() *observationsMsg {
	s := &observationsMsg{GuardObservations: policy.GuardObservations{Input: max(g.lastInput, g.lastWake),
		Asleep: g.asleep}, sequence: g.sequence, froze: g.frozeAt != 0}
	if s.Console = s.Input; g.ownerPresent {
		s.OwnerUseReason = "somebody is at it"
	}
	return s
}

// freeze stops all tasks because the startd did not act in time, starting ones included.
func (g *guardProcess) freeze() {
	g.urgentPending = nil
	anySuspended := false
	for _, id := range sortedKeys(g.machine.claimRunners) {
		if s := g.machine.claimRunners[id].starter; s.phase == phaseStarting || s.phase == phaseRunning {
			s.suspendForOwner(true)
			anySuspended = true
		}
	}
	if anySuspended {
		g.frozeAt = g.sequence + 1
	}
	g.sendObservations(false)
}

// acknowledged records which observations the startd has applied.
func (g *guardProcess) acknowledged(sequence uint64) {
	g.lastAcknowledged = sequence
	g.urgentPending = slices.DeleteFunc(g.urgentPending, func(n uint64) bool { return n <= sequence })
	if g.frozeAt != 0 && sequence >= g.frozeAt {
		g.frozeAt = 0
	}
}

// startdGone handles the end of the startd. It freezes the tasks if urgent observations
// are not yet applied.
func (g *guardProcess) startdGone() {
	if g.connected = false; len(g.urgentPending) > 0 {
		g.freeze()
	}
}

// reset restarts the guard's state after a reboot, with no input yet.
func (g *guardProcess) reset() {
	g.ownerLeft()
	if g.unwatched {
		g.machine.pool.observe(audit.Event{Type: audit.GuardWatching, Node: g.machine.name})
	}
	if g.machine.guardMissReported {
		g.machine.guardMissReported = false
		g.machine.pool.observe(audit.Event{Type: audit.GuardHeard, Node: g.machine.name})
	}
	*g = guardProcess{machine: g.machine, sequence: g.sequence}
}

// ownerState lets the production owner policy control the claims of a machine.
type ownerState struct {
	*machineNode
}

// followOwner begins to apply the owner policy, at a start of the startd.
func (m *machineNode) followOwner() {
	if m.guard == nil {
		return
	}
	for _, h := range m.claimRunners {
		h.suspendReason = ""
	}
	m.lastObservations = 0
	m.startGuardTimeout()
	m.enforcer = desktop.New(m.name, policy.New(m.policyInput()), m.core, ownerState{m})
	m.connectGuard()
}

// policyInput returns the input of the owner policy. In a quiet pool the policy is
// evaluated less often, so a condition on the time of day may take effect a minute late.
func (m *machineNode) policyInput() policy.PolicyOptions {
	o := policy.PolicyOptions{Policy: *m.config.OwnerPolicy, Name: m.name, Ad: m.core.Ad()}
	if m.pool.cfg.OnlyOnChange {
		o.Poll = time.Minute
	}
	return o
}

// handleObservations handles observations of the guard.
func (m *machineNode) handleObservations(s *observationsMsg) {
	m.lastObservations = s.sequence
	if m.guard.connected { // otherwise they come from a guard that is dead by now
		m.guardTimeouts++
		if m.guardMissReported {
			m.guardMissReported = false
			m.pool.observe(audit.Event{Type: audit.GuardHeard, Node: m.name})
		}
	}
	m.enforcer.Observe(m.bootTime(), m.wallTime(), s.GuardObservations, s.froze)
}

// applyOwnerPolicy evaluates the owner policy, and confirms to the guard what was
// applied.
func (m *machineNode) applyOwnerPolicy() roost.BootTime {
	did, wake := m.enforcer.Apply(m.bootTime())
	if did.GuardReported {
		m.guard.acknowledged(m.lastObservations)
	}
	return wake
}

// RunnerIDs implements desktop.ClaimController.
func (m ownerState) RunnerIDs() []slot.ClaimID { return slices.Sorted(maps.Keys(m.claimRunners)) }

// HasRunner implements desktop.ClaimController.
func (m ownerState) HasRunner(id slot.ClaimID) bool { return m.claimRunners[id] != nil }

// SetSuspended implements desktop.ClaimController. An attempt that is about to start ends
// instead of being frozen: the claim table handles that.
func (m ownerState) SetSuspended(id slot.ClaimID, why string) {
	h := m.claimRunners[id]
	h.suspendReason = why
	h.starter.suspendForOwner(why != "")
}

// Resume implements desktop.ClaimController.
func (m ownerState) Resume(id slot.ClaimID) { m.SetSuspended(id, "") }

// ReportSuspended implements desktop.ClaimController.
func (m ownerState) ReportSuspended(c *slot.Claim, why string) {
	m.sendToSchedd(c.Schedd, &wire.FromStartd{Of: &wire.FromStartd_Suspended{
		Suspended: &wire.Suspended{Attempt: reference(c.Attempt), Frozen: why != "", Reason: why},
	}})
}

// TrimMemory implements desktop.ClaimController. Memory is not simulated.
func (m ownerState) TrimMemory(slot.ClaimID) {}

// Kill implements desktop.ClaimController. Simulated starters never hang.
func (m ownerState) Kill(slot.ClaimID) {}

// TaskUsage implements desktop.ClaimController.
func (m ownerState) TaskUsage(c *slot.Claim) (memory roost.Bytes, savable bool) {
	return c.Resources.Memory, false
}

// LogEffect implements desktop.ClaimController. There is no log.
func (m ownerState) LogEffect(policy.Effect) {}

// reportAvailability reports to the observer whether the machine offers its resources.
func (m *machineNode) reportAvailability() {
	offers := m.enforcer == nil || m.enforcer.UnavailableReason() == ""
	if m.offered && offers == m.offersAll {
		return
	}
	m.offered, m.offersAll = true, offers
	s := audit.Event{Type: audit.Offered, Node: m.name}
	if offers {
		s.Resources = m.config.Resources
	}
	m.pool.observe(s)
}
