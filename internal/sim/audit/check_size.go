package audit

import (
	"maps"
	"slices"

	"github.com/roost-batch/roost"
)

// resize checks S9 when the limits of a claim are others.
func (m *auditedMachine) resize(a *Auditor, s *Event) {
	for id, t := range m.attempts {
		if t.claim == s.Claim {
			t.resources = s.Resources
			m.attempts[id] = t
		}
	}
	m.noteUse()
	a.checkOvercommit(SizeGuarantee, m, "what lives there", m.usedResources())
	m.checkAllocs(a)
}

// checkSize checks S9 when a machine has answered about the size of an attempt, and that
// is recorded. What the attempt has must be the same for all.
func (a *Auditor) checkSize(s *Event) {
	id := roost.AttemptID{Task: s.taskID(), Attempt: s.Attempt}
	for _, name := range a.machineNames() {
		m := a.machines[name]
		t, ok := m.attempts[id]
		if !ok {
			continue
		}
		lease, leased := m.leases[t.claim]
		if !sameSize(t.resources, s.Resources) || leased && !sameSize(lease.resources, s.Resources) {
			a.addViolation(SizeGuarantee, machineHistory(name), "attempt %d of %v has %s by the job queue, %s by the "+
				"books of %s, and its limits are %s", s.Attempt, id.Task, resourceText(s.Resources),
				resourceText(lease.resources), name, resourceText(t.resources))
		}
	}
}

// checkSizeBounds checks S15 when the tasks of a service are to get a size that follows
// their use.
func (a *Auditor) checkSizeBounds(j *auditedJob, s *Event) {
	x, memory := j.service, s.Resources.Memory
	if x.MaxMemory > 0 && memory > 0 && (memory < x.MinMemory || memory > x.MaxMemory) {
		a.addViolation(ScaleGuarantee, serviceHistory(s.Job), "each task of %v is to have %v of memory, and from %v "+
			"to %v may be", s.Job, memory, x.MinMemory, x.MaxMemory)
	}
}

// sameSize reports whether two amounts of what can be resized are the same.
func sameSize(r, s roost.Resources) bool { return r.CPU == s.CPU && r.Memory == s.Memory }

func (m *auditedMachine) removeAttempt(s *Event) {
	delete(m.attempts, roost.AttemptID{Task: s.taskID(), Attempt: s.Attempt})
}

// leasedResources returns the sum of all claims of the machine. Those inside an alloc
// have a part of what that has.
func (m *auditedMachine) leasedResources() (sum roost.Resources) {
	for _, l := range m.leases {
		if l.inside == 0 {
			sum = sum.Add(l.resources)
		}
	}
	return sum
}

// usedResources returns the sum of the resources of all live attempts.
func (m *auditedMachine) usedResources() (sum roost.Resources) {
	for _, t := range m.attempts {
		if t.inside == 0 {
			sum = sum.Add(t.resources)
		}
	}
	return sum
}

// checkAllocs checks S9 for all allocs of a machine. What is inside one is never more
// than it has, by the claims and by what lives there.
func (m *auditedMachine) checkAllocs(a *Auditor) {
	claims, living := map[uint64]roost.Resources{}, map[uint64]roost.Resources{}
	for _, l := range m.leases {
		if l.inside != 0 {
			claims[l.inside] = claims[l.inside].Add(l.resources)
		}
	}
	for _, t := range m.attempts {
		if t.inside != 0 {
			living[t.inside] = living[t.inside].Add(t.resources)
		}
	}
	for _, alloc := range slices.Sorted(maps.Keys(claims)) {
		if has, ok := m.leases[alloc]; ok && !claims[alloc].FitsIn(has.resources) {
			a.addViolation(SizeGuarantee, machineHistory(m.name), "the claims inside claim %d of %s have %s, and it "+
				"has %s", alloc, m.name, resourceText(claims[alloc]), resourceText(has.resources))
		}
	}
	for _, alloc := range slices.Sorted(maps.Keys(living)) {
		if has, ok := m.leases[alloc]; ok && !living[alloc].FitsIn(has.resources) {
			a.addViolation(SizeGuarantee, machineHistory(m.name), "what lives inside claim %d of %s has %s, and it "+
				"has %s", alloc, m.name, resourceText(living[alloc]), resourceText(has.resources))
		}
	}
}

// checkFreed checks S9 when the resources of a claim are free for others: nothing lives
// inside it.
func (m *auditedMachine) checkFreed(a *Auditor, s *Event) {
	for _, id := range slices.SortedFunc(maps.Keys(m.attempts), func(x, y roost.AttemptID) int {
		return byTask(x.Task, y.Task)
	}) {
		if t := m.attempts[id]; t.inside == s.Claim {
			a.addViolation(SizeGuarantee, machineHistory(m.name), "claim %d of %s is free, and attempt %d of %v lives "+
				"inside it", s.Claim, m.name, id.Attempt, id.Task)
		}
	}
}
