package audit

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
)

// dueInstant is the time by which something must have happened.
type dueInstant = time.Duration

// noDeadline is a deadline that never comes.
const noDeadline dueInstant = 1<<63 - 1

// auditedMachine is the auditor's state of a machine.
type auditedMachine struct {
	name    string
	offered roost.Resources
	// the most that it has offered so far: when the offer shrinks, claims that exceed it
	// remain for a while
	mostOffered  roost.Resources
	leases       map[uint64]claimLease
	attempts     map[roost.AttemptID]liveAttempt
	lastTasks    map[uint64]roost.TaskID // by claim: which task ran there last
	asleep       bool
	wokeAt       time.Duration
	roomSince    map[roost.Resources]time.Duration // by task size: since when the machine has room for it
	ownerPresent bool                              // the machine owner is using the machine
	ownerSince   time.Duration                     // when the owner came
	unwatched    bool                              // the guard is dead, so nothing observes the owner
	watchedSince time.Duration                     // when the guard last began to observe
	guardMissing bool                              // the startd has lost contact with the guard
	missingSince time.Duration                     // when the contact was lost
}

// claimLease is a claim in a machine's claim table.
type claimLease struct {
	resources roost.Resources
	until     time.Duration
	submitter string
	inside    uint64 // the claim of the alloc inside which it is; 0: it is a part of the machine
}

// liveAttempt is an attempt with live processes on a machine.
type liveAttempt struct {
	resources           roost.Resources
	claim, inside       uint64
	until               dueInstant // when all its processes must be gone
	disturbanceReported bool
	suspended           bool          // the attempt is frozen
	runningSince        time.Duration // when it was last started or resumed
	disturbsOwner       bool          // a violation for the owner's sake is recorded
}

func (a *Auditor) machine(name string) *auditedMachine {
	m := a.machines[name]
	if m == nil {
		m = &auditedMachine{name: name, leases: map[uint64]claimLease{}, attempts: map[roost.AttemptID]liveAttempt{},
			roomSince: map[roost.Resources]time.Duration{}, lastTasks: map[uint64]roost.TaskID{}}
		a.machines[name] = m
	}
	return m
}

// checkMachine checks P5 and tracks the leases of claims.
func (a *Auditor) checkMachine(s *Event) {
	m := a.machine(s.Node)
	switch s.Type {
	case Offered:
		m.offered = s.Resources
		m.mostOffered = maxResources(m.mostOffered, s.Resources)
		clear(m.roomSince)
	case Leased:
		guarantee := Guarantee(5)
		if _, resized := m.leases[s.Claim]; resized {
			guarantee = SizeGuarantee
		}
		m.leases[s.Claim] = claimLease{s.Resources, s.Until, s.Submitter, s.Inside}
		m.extendClaim(a, s)
		a.checkOvercommit(guarantee, m, "its books", m.leasedResources())
		m.checkAllocs(a)
	case Sized:
		m.resize(a, s)
	case Renewed:
		renewed := m.leases[s.Claim]
		renewed.until = s.Until
		m.leases[s.Claim] = renewed
		m.extendClaim(a, s)
	case Freed:
		delete(m.leases, s.Claim)
		m.checkFreed(a, s)
	case Slept:
		m.asleep = true
	case Woke:
		m.asleep, m.wokeAt = false, s.At
		a.nextExpiry = min(a.nextExpiry, s.At)
	}
}

// extendClaim moves the deadline of the attempts on a claim.
func (m *auditedMachine) extendClaim(a *Auditor, s *Event) {
	for id, t := range m.attempts {
		if t.claim == s.Claim {
			t.until = s.Until
			m.attempts[id] = t
			a.nextExpiry = min(a.nextExpiry, t.until+a.rules.KillGrace)
		}
	}
}

// addAttempt adds an attempt whose first process lives. The claim table shows which
// claims exist, and the processes show what runs. Neither may exceed the machine's
// resources.
func (m *auditedMachine) addAttempt(a *Auditor, s *Event) {
	until := noDeadline
	if held, ok := m.leases[s.Claim]; ok {
		until = held.until
		a.nextExpiry = min(a.nextExpiry, until+a.rules.KillGrace)
	}
	m.attempts[roost.AttemptID{Task: s.taskID(), Attempt: s.Attempt}] = liveAttempt{resources: s.Resources,
		claim: s.Claim, inside: s.Inside, until: until, runningSince: s.At}
	m.noteUse()
	a.checkOvercommit(5, m, "what lives there", m.usedResources())
	m.checkAllocs(a)
}

// noteUse forgets since when the machine has room that it has no longer.
func (m *auditedMachine) noteUse() {
	free := m.offered.Sub(m.usedResources())
	for r := range m.roomSince {
		if !r.FitsIn(free) {
			delete(m.roomSince, r)
		}
	}
}

func (a *Auditor) checkOvercommit(p Guarantee, m *auditedMachine, by string, sum roost.Resources) {
	if m.mostOffered != (roost.Resources{}) && !sum.FitsIn(m.mostOffered) {
		a.addViolation(p, machineHistory(m.name), "by %s %s has given away %s, and has %s", by, m.name,
			resourceText(sum), resourceText(m.mostOffered))
	}
}

// checkExpired checks P10: no attempt lives longer than its lease and the kill grace. A
// sleeping machine runs nothing; the grace begins when it wakes.
func (a *Auditor) checkExpired(at time.Duration) {
	if at < a.nextExpiry {
		return
	}
	a.nextExpiry = noDeadline
	var late []expiredAttempt
	for _, m := range a.machines {
		if m.asleep {
			continue
		}
		for id, t := range m.attempts {
			if t.until == noDeadline || t.disturbanceReported {
				continue
			}
			due := max(t.until, m.wokeAt) + a.rules.KillGrace
			if at > due {
				t.disturbanceReported = true
				m.attempts[id] = t
				late = append(late, expiredAttempt{due, m.name, id})
				continue
			}
			a.nextExpiry = min(a.nextExpiry, due)
		}
	}
	slices.SortFunc(late, func(x, y expiredAttempt) int {
		return cmp.Or(cmp.Compare(x.due, y.due), byTask(x.id.Task, y.id.Task))
	})
	for _, o := range late {
		a.now = max(a.now, o.due)
		claim := a.machines[o.node].attempts[o.id].claim
		about := taskHistory(o.id.Task)
		matches := func(s *Event) bool {
			return about(s) || s.Node == o.node &&
				(s.Claim == claim && s.Claim != 0 || s.Type == Slept || s.Type == Woke)
		}
		a.addViolation(10, matches, "attempt %d of %v lives on %s, and the lease of claim %d was over at %s",
			o.id.Attempt, o.id.Task, o.node, claim,
			ClockText(a.machines[o.node].attempts[o.id].until))
	}
}

// expiredAttempt is an attempt that was still running at its deadline.
type expiredAttempt struct {
	due  time.Duration
	node string
	id   roost.AttemptID
}

// maxResources returns the larger value of each resource.
func maxResources(r, s roost.Resources) roost.Resources {
	return roost.Resources{CPU: max(r.CPU, s.CPU), Memory: max(r.Memory, s.Memory), Disk: max(r.Disk, s.Disk),
		GPUs: max(r.GPUs, s.GPUs)}
}

// machineNames lists the machines in order.
func (a *Auditor) machineNames() []string { return slices.Sorted(maps.Keys(a.machines)) }
