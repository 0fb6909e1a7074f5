package storm

import (
	"slices"
	"time"

	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/sim/fault"
)

// Shrink looks for a smaller case that breaks the same promise, and returns what it found and how that went. play plays a case; it is asked so often at most.
func Shrink(c *Case, was *Outcome, play func(*Case) *Outcome, tries int) (*Case, *Outcome) {
	s := &shrinking{best: c, outcome: was, promise: was.Breaches[0].Promise, play: play, tries: tries}
	for before := -1; before != s.found && s.tries > 0; {
		before = s.found
		s.faults()
		s.jobs()
		s.nodes()
		s.desks()
		s.times()
	}
	return s.best, s.outcome
}

type shrinking struct {
	best    *Case
	outcome *Outcome
	promise audit.Promise
	play    func(*Case) *Outcome
	tries   int
	found   int // smaller cases
}

func (s *shrinking) enough() bool { return s.tries <= 0 }

// try plays a case, and keeps it if the same promise breaks.
func (s *shrinking) try(c *Case) bool {
	if s.tries--; s.tries < 0 {
		return false
	}
	o := s.play(c)
	i := slices.IndexFunc(o.Breaches, func(b audit.Breach) bool { return b.Promise == s.promise })
	if i < 0 {
		return false
	}
	o.Breaches = o.Breaches[i:]
	s.best, s.outcome = c, o
	s.found++
	return true
}

// with tries the best case with a change.
func (s *shrinking) with(change func(*Case)) bool {
	c := *s.best
	change(&c)
	return s.try(&c)
}

func (s *shrinking) faults() {
	if len(s.best.Faults) == 0 {
		return
	}
	fails := func(some []fault.Fault) bool { return s.with(func(c *Case) { c.Faults = some }) }
	fault.Fewest(s.best.Faults, fails, s.enough)
}

func (s *shrinking) jobs() {
	fault.Fewest(s.best.Jobs, func(some []Job) bool { return len(some) > 0 && s.with(func(c *Case) { c.Jobs = some }) }, s.enough)
	for i := range s.best.Jobs {
		s.job(i)
	}
}

// job tries a job with less of everything.
func (s *shrinking) job(i int) {
	change := func(f func(j *Job)) bool {
		return s.with(func(c *Case) {
			c.Jobs = slices.Clone(c.Jobs)
			f(&c.Jobs[i])
		})
	}
	if len(s.best.Jobs[i].Acts) > 0 {
		fault.Fewest(s.best.Jobs[i].Acts, func(some []Act) bool { return change(func(j *Job) { j.Acts = some }) }, s.enough)
	}
	for tasks := 1; tasks < s.best.Jobs[i].Tasks && !s.enough(); tasks *= 2 {
		if change(func(j *Job) { j.Tasks = tasks }) {
			break
		}
	}
	if j := s.best.Jobs[i]; j.Code != 0 || j.Tries != 0 {
		change(func(j *Job) { j.Code, j.Tries = 0, 0 })
	}
}

// nodes leaves out those that nothing happens to.
func (s *shrinking) nodes() {
	if s.best.Managers > 1 {
		s.with(func(c *Case) { c.Managers = 1; c.Faults = known(c) })
	}
	if s.best.Schedds > 1 {
		s.with(func(c *Case) {
			c.Schedds, c.Jobs = 1, slices.Clone(c.Jobs)
			for i := range c.Jobs {
				c.Jobs[i].Schedd = 0
			}
			c.Faults = known(c)
		})
	}
	fails := func(some []Machine) bool {
		return s.fit(some) && s.with(func(c *Case) { c.Machines = some; c.Faults = known(c) })
	}
	fault.Fewest(s.best.Machines, fails, s.enough)
}

// desks has machines be nobody's, and not lie.
func (s *shrinking) desks() {
	for i := range s.best.Machines {
		if s.best.Machines[i].Lies > 0 && !s.enough() {
			s.with(func(c *Case) { c.Machines = slices.Clone(c.Machines); c.Machines[i].Lies = 0 })
		}
		if s.best.Machines[i].Desk != (Desk{}) && !s.enough() {
			s.with(func(c *Case) { c.Machines = slices.Clone(c.Machines); c.Machines[i].Desk = Desk{} })
		}
	}
}

// fit reports whether each job has a machine that can run it: one that has none waits for ever, and rightly.
func (s *shrinking) fit(machines []Machine) bool {
	most := 0
	for i := range machines {
		most = max(most, machines[i].Cores)
	}
	return !slices.ContainsFunc(s.best.Jobs, func(j Job) bool { return j.Cores > most })
}

// known are the faults that happen to nodes that there are. A central manager that is alone has nobody to get its log from.
func known(c *Case) []fault.Fault {
	nodes := c.Nodes()
	all := slices.Concat(nodes.Managers, nodes.Schedds, nodes.Machines)
	return slices.DeleteFunc(slices.Clone(c.Faults), func(f fault.Fault) bool {
		return f.Kind == fault.Flip && c.Managers == 1 && slices.Contains(nodes.Managers, f.Node) || !slices.Contains(all, f.Node) || f.Peer != "" && !slices.Contains(all, f.Peer)
	})
}

// times makes faults and tasks shorter, and has the run end soon.
func (s *shrinking) times() {
	fault.Shorten(s.best.Faults, func(some []fault.Fault) bool { return s.with(func(c *Case) { c.Faults = some }) }, s.enough)
	for i := range s.best.Jobs {
		for _, length := range []time.Duration{shortestTask, time.Second, 10 * time.Second} {
			if s.enough() || length >= s.best.Jobs[i].Length {
				break
			}
			if s.with(func(c *Case) { c.Jobs = slices.Clone(c.Jobs); c.Jobs[i].Length = length }) {
				break
			}
		}
	}
	calm := time.Duration(0)
	for i := range s.best.Faults {
		calm = max(calm, s.best.Faults[i].Over())
	}
	for i := range s.best.Jobs {
		j := &s.best.Jobs[i]
		calm = max(calm, j.At)
		for _, a := range j.Acts {
			calm = max(calm, j.At+a.After)
		}
	}
	if calm = calm.Truncate(time.Second) + 2*time.Second; calm < s.best.Calm && !s.enough() {
		s.with(func(c *Case) { c.Until -= c.Calm - calm; c.Calm = calm })
	}
}
