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

// guardProcess sees the owner of a machine, as startd/desktop/guard does: a process of the host,
// beside the startd and independent of it.
type guardProcess struct {
	machine          *machineNode
	ownerPresent     bool          // somebody is
	ownerUntil       time.Duration // and stays, by the clock of the pool
	lastInput        slot.BootTime // the last; 0: never
	lastWake         slot.BootTime // the last time that the host did; 0: never
	asleep           bool          // since then it has not had the time to look
	sequence         uint64        // of what it has said last
	lastAcknowledged uint64        // what of that the startd has acted on
	connected        bool          // the startd listens
	urgentPending    []uint64      // what cannot wait, and was not acted on
	// it has stopped tasks itself, and said so first in these signs; 0: or they were
	// taken over since
	frozeAt   uint64
	dead      bool
	restartAt time.Duration // then it is started again
	unwatched bool          // it is dead, or has not looked since it was started
}

// What package guard has them, and how long the startd and it take to find each other.
const (
	guardFreezeDelay  = 100 * time.Millisecond
	guardInterval     = 500 * time.Millisecond
	guardWakeDelay    = 10 * time.Second
	guardConnectDelay = 200 * time.Millisecond
	guardTimeoutDelay = 3 * time.Second // package startd: after so long without it the machine is its owner's
	guardStartDelay   = 2 * time.Second // it looks at all there is before it says anything
)

// What is due of a guard; the rest of the number is the signs', or for dueOwnerComes the
// milliseconds of the visit.
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

// observationsMsg are what the startd hears of the guard.
type observationsMsg struct {
	policy.GuardObservations
	sequence uint64
	froze    bool
}

// guardConnected is the news that the startd and the guard have found each other.
type guardConnected struct{}

// OwnerComes has somebody use a machine himself for a while, from now on, or from when it
// wakes. On a machine that has no policy for that nothing happens.
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
			return // who is started after the sleep knows nothing of it
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

// ownerTouched takes in that somebody has touched the machine, if it sees that.
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

// sendObservations says what it sees. What is urgent the startd acts on in time, or else
// the guard does.
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

// freeze stops the tasks of a startd that did not act in time, those that are only about
// to run included.
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

// acknowledged takes in what the startd has acted on.
func (g *guardProcess) acknowledged(sequence uint64) {
	g.lastAcknowledged = sequence
	g.urgentPending = slices.DeleteFunc(g.urgentPending, func(n uint64) bool { return n <= sequence })
	if g.frozeAt != 0 && sequence >= g.frozeAt {
		g.frozeAt = 0
	}
}

// startdGone takes in that the startd is gone: what it has not acted on nobody will.
func (g *guardProcess) startdGone() {
	if g.connected = false; len(g.urgentPending) > 0 {
		g.freeze()
	}
}

// reset begins anew, on a machine that nobody has touched.
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

// ownerState follows the owner of a machine, as startd does. It is the machine's hands,
// for that.
type ownerState struct {
	*machineNode
}

// followOwner begins to, at a start of the startd.
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

// policyInput is what the owner's policy is weighed with. In a quiet pool that is done
// less often: what depends on the time of day may be seen a minute late.
func (m *machineNode) policyInput() policy.PolicyOptions {
	o := policy.PolicyOptions{Policy: *m.config.OwnerPolicy, Name: m.name, Ad: m.core.Ad()}
	if m.pool.cfg.OnlyOnChange {
		o.Poll = time.Minute
	}
	return o
}

// handleObservations takes in what the guard sees.
func (m *machineNode) handleObservations(s *observationsMsg) {
	m.lastObservations = s.sequence
	if m.guard.connected { // and not what one has said that is dead by now
		m.guardTimeouts++
		if m.guardMissReported {
			m.guardMissReported = false
			m.pool.observe(audit.Event{Type: audit.GuardHeard, Node: m.name})
		}
	}
	m.enforcer.Observe(m.bootTime(), m.wallTime(), s.GuardObservations, s.froze)
}

// applyOwnerPolicy asks what the owner's policy says, and has the guard know that it was
// acted on.
func (m *machineNode) applyOwnerPolicy() slot.BootTime {
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

// SetSuspended implements desktop.ClaimController. What is only about to run goes in
// place of standing still: the books see to that.
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

// TrimMemory implements desktop.ClaimController: memory that is given back shows nowhere.
func (m ownerState) TrimMemory(slot.ClaimID) {}

// Kill implements desktop.ClaimController. No starter is stuck here.
func (m ownerState) Kill(slot.ClaimID) {}

// TaskUsage implements desktop.ClaimController.
func (m ownerState) TaskUsage(c *slot.Claim) (memory roost.Bytes, savable bool) {
	return c.Resources.Memory, false
}

// LogEffect implements desktop.ClaimController: there is no log.
func (m ownerState) LogEffect(policy.Effect) {}

// reportAvailability tells the observer whether the machine is lent.
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
