package audit

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
)

// deadline is an instant by which something must have happened.
type deadline = time.Duration

// never is a deadline that does not come.
const never deadline = 1<<63 - 1

// machine is what is known of one.
type machine struct {
	name    string
	lends   roost.Resources
	most    roost.Resources // that it has lent so far: of less than before what was given away stays so for a while
	leases  map[uint64]lease
	living  map[roost.AttemptID]tenant
	asleep  bool
	woke    time.Duration
	roomFor map[roost.Resources]time.Duration // since when there is
	seated  bool                              // somebody uses it himself
	came    time.Duration                     // since when
	blind   bool                              // nobody sees that
	looked  time.Duration                     // since when somebody does
	missed  bool                              // nothing is heard of its guard
	since   time.Duration                     // since when
}

// lease is a claim in a machine's books.
type lease struct {
	resources roost.Resources
	until     time.Duration
}

// tenant is an attempt that lives on a machine.
type tenant struct {
	resources roost.Resources
	claim     uint64
	until     deadline // no process of it may live then
	told      bool
	still     bool          // it stands still
	moved     time.Duration // since when it does not
	disturbs  bool          // that was told
}

func (a *Auditor) machine(name string) *machine {
	m := a.machines[name]
	if m == nil {
		m = &machine{name: name, leases: map[uint64]lease{}, living: map[roost.AttemptID]tenant{}, roomFor: map[roost.Resources]time.Duration{}}
		a.machines[name] = m
	}
	return m
}

// seeMachine holds the books of machines against P5, and notes until when claims last.
func (a *Auditor) seeMachine(s *Seen) {
	m := a.machine(s.Node)
	switch s.What {
	case Offered:
		m.lends = s.Resources
		m.most = larger(m.most, s.Resources)
		clear(m.roomFor)
	case Leased:
		m.leases[s.Claim] = lease{s.Resources, s.Until}
		m.prolong(a, s)
		a.overcommitted(m, "its books", m.leased())
	case Renewed:
		m.leases[s.Claim] = lease{m.leases[s.Claim].resources, s.Until}
		m.prolong(a, s)
	case Freed:
		delete(m.leases, s.Claim)
	case Froze:
		m.asleep = true
	case Woke:
		m.asleep, m.woke = false, s.At
		a.doomed = min(a.doomed, s.At)
	}
}

// prolong moves the deadline of what lives on a claim.
func (m *machine) prolong(a *Auditor, s *Seen) {
	for id, t := range m.living {
		if t.claim == s.Claim {
			t.until = s.Until
			m.living[id] = t
			a.doomed = min(a.doomed, t.until+a.rules.KillGrace)
		}
	}
}

// begin enters an attempt whose first process lives. Which claims there are is the word of the machine's books, and what lives there is not: both may not
// be more than there is.
func (m *machine) begin(a *Auditor, s *Seen) {
	until := never
	if held, ok := m.leases[s.Claim]; ok {
		until = held.until
		a.doomed = min(a.doomed, until+a.rules.KillGrace)
	}
	m.living[roost.AttemptID{Task: s.task(), Attempt: s.Attempt}] = tenant{resources: s.Resources, claim: s.Claim, until: until, moved: s.At}
	free := m.lends.Sub(m.used())
	for r := range m.roomFor {
		if !r.Fits(free) {
			delete(m.roomFor, r)
		}
	}
	a.overcommitted(m, "what lives there", m.used())
}

func (m *machine) end(s *Seen) {
	delete(m.living, roost.AttemptID{Task: s.task(), Attempt: s.Attempt})
}

// leased is what a machine's books have given away.
func (m *machine) leased() (sum roost.Resources) {
	for _, l := range m.leases {
		sum = sum.Add(l.resources)
	}
	return sum
}

// used is what those have been promised who live on it.
func (m *machine) used() (sum roost.Resources) {
	for _, t := range m.living {
		sum = sum.Add(t.resources)
	}
	return sum
}

func (a *Auditor) overcommitted(m *machine, by string, sum roost.Resources) {
	if m.most != (roost.Resources{}) && !sum.Fits(m.most) {
		a.breach(5, ofMachine(m.name), "by %s %s has given away %s, and has %s", by, m.name, amounts(sum), amounts(m.most))
	}
}

// overdue holds what lives against P10: its lease is over, and so is the time to kill it. A machine that sleeps runs nothing; when it wakes, it has that time
// from then on.
func (a *Auditor) overdue(at time.Duration) {
	if at < a.doomed {
		return
	}
	a.doomed = never
	var late []overdue
	for _, m := range a.machines {
		if m.asleep {
			continue
		}
		for id, t := range m.living {
			if t.until == never || t.told {
				continue
			}
			due := max(t.until, m.woke) + a.rules.KillGrace
			if at > due {
				t.told = true
				m.living[id] = t
				late = append(late, overdue{due, m.name, id})
				continue
			}
			a.doomed = min(a.doomed, due)
		}
	}
	slices.SortFunc(late, func(x, y overdue) int { return cmp.Or(cmp.Compare(x.due, y.due), byTask(x.id.Task, y.id.Task)) })
	for _, o := range late {
		a.now = max(a.now, o.due)
		claim := a.machines[o.node].living[o.id].claim
		about := ofTask(o.id.Task)
		keep := func(s *Seen) bool {
			return about(s) || s.Node == o.node && (s.Claim == claim && s.Claim != 0 || s.What == Froze || s.What == Woke)
		}
		a.breach(10, keep, "attempt %d of %v lives on %s, and the lease of claim %d was over at %s", o.id.Attempt, o.id.Task, o.node, claim,
			Clock(a.machines[o.node].living[o.id].until))
	}
}

// overdue is an attempt that has outlived its lease.
type overdue struct {
	due  time.Duration
	node string
	id   roost.AttemptID
}

// larger is the larger of two in each respect.
func larger(r, s roost.Resources) roost.Resources {
	return roost.Resources{CPU: max(r.CPU, s.CPU), Memory: max(r.Memory, s.Memory), Disk: max(r.Disk, s.Disk), GPUs: max(r.GPUs, s.GPUs)}
}

// names lists the machines in order.
func (a *Auditor) names() []string { return slices.Sorted(maps.Keys(a.machines)) }
