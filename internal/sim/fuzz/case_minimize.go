package fuzz

import (
	"slices"
	"time"

	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/sim/faults"
)

// Minimize looks for a smaller case that violates the same guarantee. It returns the
// smallest case that it finds, and the outcome of its run. play runs a case, and is
// called at most tries times.
func Minimize(c *PoolCase, was *RunOutcome, play func(*PoolCase) *RunOutcome, tries int) (*PoolCase, *RunOutcome) {
	s := &caseMinimizer{smallest: c, outcome: was, guarantee: was.Violations[0].Guarantee, play: play, tries: tries}
	for before := -1; before != s.foundCount && s.tries > 0; {
		before = s.foundCount
		s.reduceFaults()
		s.reduceJobs()
		s.reduceDrains()
		s.removeNodes()
		s.removeOwners()
		s.shortenTimes()
	}
	return s.smallest, s.outcome
}

type caseMinimizer struct {
	smallest   *PoolCase
	outcome    *RunOutcome
	guarantee  audit.Guarantee
	play       func(*PoolCase) *RunOutcome
	tries      int
	foundCount int // number of smaller cases found
}

func (s *caseMinimizer) isExhausted() bool { return s.tries <= 0 }

// tryCase runs a case and adopts it if it violates the same guarantee.
func (s *caseMinimizer) tryCase(c *PoolCase) bool {
	if s.tries--; s.tries < 0 {
		return false
	}
	o := s.play(c)
	i := slices.IndexFunc(o.Violations, func(b audit.Violation) bool { return b.Guarantee == s.guarantee })
	if i < 0 {
		return false
	}
	o.Violations = o.Violations[i:]
	s.smallest, s.outcome = c, o
	s.foundCount++
	return true
}

// tryChange tries the smallest case so far with a change.
func (s *caseMinimizer) tryChange(change func(*PoolCase)) bool {
	c := *s.smallest
	change(&c)
	return s.tryCase(&c)
}

func (s *caseMinimizer) reduceFaults() {
	if len(s.smallest.Faults) == 0 {
		return
	}
	fails := func(some []faults.Fault) bool { return s.tryChange(func(c *PoolCase) { c.Faults = some }) }
	faults.Minimize(s.smallest.Faults, fails, s.isExhausted)
}

func (s *caseMinimizer) reduceJobs() {
	faults.Minimize(s.smallest.Jobs, func(some []CaseJob) bool {
		return len(some) > 0 && s.tryChange(func(c *PoolCase) { c.Jobs = some })
	}, s.isExhausted)
	for i := range s.smallest.Jobs {
		s.reduceJob(i)
	}
}

func (s *caseMinimizer) reduceDrains() {
	if len(s.smallest.Drains) > 0 {
		faults.Minimize(s.smallest.Drains, func(some []CaseDrain) bool {
			return s.tryChange(func(c *PoolCase) { c.Drains = some })
		}, s.isExhausted)
	}
}

// reduceJob tries smaller values of everything in a job.
func (s *caseMinimizer) reduceJob(i int) {
	change := func(f func(j *CaseJob)) bool {
		return s.tryChange(func(c *PoolCase) {
			c.Jobs = slices.Clone(c.Jobs)
			f(&c.Jobs[i])
		})
	}
	if len(s.smallest.Jobs[i].Actions) > 0 {
		// a service that nobody removes goes on for ever, which is correct
		isRemoval := func(a UserAction) bool { return a.Verb == Remove }
		j := &s.smallest.Jobs[i]
		mayGoOn := j.Service == nil && !j.IsAlloc && j.Schedule == nil
		faults.Minimize(s.smallest.Jobs[i].Actions, func(some []UserAction) bool {
			return (mayGoOn || slices.ContainsFunc(some, isRemoval)) && change(func(j *CaseJob) { j.Actions = some })
		}, s.isExhausted)
	}
	for tasks := 1; tasks < s.smallest.Jobs[i].Tasks && !s.isExhausted(); tasks *= 2 {
		if change(func(j *CaseJob) { j.Tasks = tasks }) {
			break
		}
	}
	if v := s.smallest.Jobs[i].Service; v != nil && v.Surge > 0 && v.MaxDown > 0 {
		change(func(j *CaseJob) { own := *j.Service; own.Surge = 0; j.Service = &own })
	}
	if j := s.smallest.Jobs[i]; j.Code != 0 || j.Tries != 0 {
		change(func(j *CaseJob) { j.Code, j.Tries = 0, 0 })
	}
}

// removeNodes tries to leave out nodes that nothing happens to.
func (s *caseMinimizer) removeNodes() {
	if s.smallest.Managers > 1 {
		s.tryChange(func(c *PoolCase) { c.Managers = 1; c.Faults = faultsOnKnown(c) })
	}
	if s.smallest.Schedds > 1 {
		s.tryChange(func(c *PoolCase) {
			c.Schedds, c.Jobs = 1, slices.Clone(c.Jobs)
			for i := range c.Jobs {
				c.Jobs[i].Schedd = 0
			}
			c.Faults = faultsOnKnown(c)
		})
	}
	s.reduceMembers()
	fails := func(some []CaseMachine) bool {
		return s.jobsFit(some) && s.tryChange(func(c *PoolCase) { c.Machines = some; c.Faults = faultsOnKnown(c) })
	}
	faults.Minimize(s.smallest.Machines, fails, s.isExhausted)
}

// removeOwners tries machines without owners and without unrequested outputs.
func (s *caseMinimizer) removeOwners() {
	for i := range s.smallest.Machines {
		if s.smallest.Machines[i].UnrequestedOutputs > 0 && !s.isExhausted() {
			s.tryChange(func(c *PoolCase) {
				c.Machines = slices.Clone(c.Machines)
				c.Machines[i].UnrequestedOutputs = 0
			})
		}
		if s.smallest.Machines[i].Owner != (DesktopPolicy{}) && !s.isExhausted() {
			s.tryChange(func(c *PoolCase) {
				c.Machines = slices.Clone(c.Machines)
				c.Machines[i].Owner = DesktopPolicy{}
			})
		}
	}
}

// jobsFit reports whether each job has a machine that can run it. A job without one would
// wait forever, which is correct.
func (s *caseMinimizer) jobsFit(machines []CaseMachine) bool {
	most := 0
	for i := range machines {
		most = max(most, machines[i].Cores)
	}
	return !slices.ContainsFunc(s.smallest.Jobs, func(j CaseJob) bool {
		return j.Cores > most || slices.ContainsFunc(j.Actions, func(a UserAction) bool {
			return a.Cores > most || a.Memory > 2*most
		})
	})
}

// faultsOnKnown returns the faults that concern existing nodes only. Bit flips on a
// single central manager are left out, because no peer could restore its log.
func faultsOnKnown(c *PoolCase) []faults.Fault {
	nodes := c.Nodes()
	all := slices.Concat(nodes.Managers, nodes.Schedds, nodes.Machines)
	return slices.DeleteFunc(slices.Clone(c.Faults), func(f faults.Fault) bool {
		return f.Kind == faults.BitFlip && c.Managers == 1 && slices.Contains(nodes.Managers, f.Node) ||
			f.Kind == faults.BitFlip && c.Members == 1 && isMember(f.Node) ||
			!slices.Contains(all, f.Node) || f.Peer != "" && !slices.Contains(all, f.Peer)
	})
}

// shortenTimes tries shorter faults and tasks, and an earlier end of the run.
func (s *caseMinimizer) shortenTimes() {
	faults.ShortenFaults(s.smallest.Faults, func(some []faults.Fault) bool {
		return s.tryChange(func(c *PoolCase) { c.Faults = some })
	}, s.isExhausted)
	for i := range s.smallest.Jobs {
		for _, length := range []time.Duration{minTask, time.Second, 10 * time.Second} {
			if s.isExhausted() || length >= s.smallest.Jobs[i].Length || s.smallest.Jobs[i].IsAlloc {
				break
			}
			if s.tryChange(func(c *PoolCase) { c.Jobs = slices.Clone(c.Jobs); c.Jobs[i].Length = length }) {
				break
			}
		}
	}
	calm := time.Duration(0)
	for i := range s.smallest.Faults {
		calm = max(calm, s.smallest.Faults[i].End())
	}
	for i := range s.smallest.Jobs {
		j := &s.smallest.Jobs[i]
		calm = max(calm, j.At)
		for _, a := range j.Actions {
			calm = max(calm, j.At+a.Delay)
		}
	}
	for _, d := range s.smallest.Drains {
		calm = max(calm, d.At+d.Span)
	}
	if calm = calm.Truncate(time.Second) + 2*time.Second; calm < s.smallest.FaultsEnd && !s.isExhausted() {
		s.tryChange(func(c *PoolCase) { c.RunEnd -= c.FaultsEnd - calm; c.FaultsEnd = calm })
	}
}
