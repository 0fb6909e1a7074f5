package pool

import (
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
)

// StateSample is the state of a pool at an instant.
type StateSample struct {
	At          time.Duration
	Waiting     int // submitted tasks that do not run
	Running     int
	Ended       int // tasks that have ended
	Used        roost.Resources
	UsedByOwner map[string]roost.MilliCPU // CPU of running tasks by job owner; the caller must not modify it
	Endless     int                       // running tasks that never end
}

// Sample returns the present state of the pool.
func (p *Pool) Sample() StateSample {
	return StateSample{At: p.loop.Now(), Waiting: p.tasks - p.endedTasks - p.runningTasks, Running: p.runningTasks,
		Ended: p.endedTasks, Used: p.usedResources, UsedByOwner: p.usedByOwner, Endless: p.endlessTasks}
}

// IsStuck reports whether nothing more will happen. All jobs were submitted, no running
// task will end, and no task has begun or ended for the given time.
func (p *Pool) IsStuck(long time.Duration) bool {
	return p.runningTasks == p.endlessTasks && p.loop.Now()-max(p.lastChange, p.lastSubmit) > long
}

// JobOutcome is what became of a job of the config. Times are since the start of the
// simulation, -1 for what has not happened.
type JobOutcome struct {
	ID           roost.JobID
	IDShown      time.Duration // when its id was shown to the user
	FirstStarted time.Duration // when its first task began
	LastEnded    time.Duration // when its last process ended
	Attempts     int           // number of attempts that began
	Unfinished   int           // number of unfinished tasks
	Running      int           // number of running tasks
	Refused      error
}

// Outcomes returns the outcomes of all jobs, in the order of the config.
func (p *Pool) Outcomes() []JobOutcome {
	all := make([]JobOutcome, len(p.users))
	for i := range p.users {
		u := &p.users[i]
		o := JobOutcome{ID: u.id, IDShown: -1, FirstStarted: -1, LastEnded: -1, Attempts: u.attempts,
			Unfinished: u.unfinished, Running: u.running, Refused: u.refused}
		if !u.id.IsZero() {
			o.IDShown = u.shownAt
		}
		if u.attempts > 0 {
			o.FirstStarted = u.firstStarted
		}
		if u.attempts > u.running {
			o.LastEnded = u.lastEnded
		}
		all[i] = o
	}
	return all
}

// OwnerStats counts what machine owners have done to tasks.
type OwnerStats struct {
	Visits    int // visits of owners
	Suspended int // suspensions of tasks for owners
	Vacated   int // tasks vacated for owners
}

// OwnerStats returns the counts so far; ok is false if no machine has an owner.
func (p *Pool) OwnerStats() (l OwnerStats, ok bool) {
	return p.ownerStats, slices.ContainsFunc(p.machines, func(m *machineNode) bool { return m.guard != nil })
}

// HasOwners reports whether some owners come and go: then events never end.
func (p *Pool) HasOwners() bool { return p.hasOwners }

// StartWaits returns how long each started task had waited since its job's submission
// time. The order is that of the starts.
func (p *Pool) StartWaits() []time.Duration { return p.waits }

// MachineStatus is the state of a machine.
type MachineStatus struct {
	Name             string
	Total, Available roost.Resources // Available is what can still be claimed
	Running          int             // number of running tasks
}

// Machines returns the state of each machine, in the order of the config.
func (p *Pool) Machines() []MachineStatus {
	all := make([]MachineStatus, len(p.machines))
	for i, m := range p.machines {
		all[i] = MachineStatus{Name: m.name, Total: m.config.Resources}
		if m.core != nil {
			all[i].Available, all[i].Running = m.core.Free().LeftForBatch(), m.core.Running()
			continue
		}
		all[i].Available = m.config.Resources // its startd is down, or has not started yet
		for _, h := range m.claimRunners {
			if all[i].Available = all[i].Available.Sub(h.claim.Resources); h.starter.phase == phaseRunning {
				all[i].Running++
			}
		}
	}
	return all
}

// Total returns the resources of all machines together.
func (p *Pool) Total() (sum roost.Resources) {
	for _, m := range p.machines {
		sum = sum.Add(m.config.Resources)
	}
	return sum
}

// CoreSeconds returns the core-seconds that tasks have used.
func (p *Pool) CoreSeconds() float64 {
	return p.coreSeconds + p.usedResources.CPU.Cores()*(p.loop.Now()-p.lastChange).Seconds()
}

// Owners lists the users who submit jobs, in order.
func (p *Pool) Owners() []string {
	all := map[string]bool{}
	for i := range p.cfg.Jobs {
		all[p.callerOf(i).User] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// countTask counts a task that begins (by is 1) or ends (by is -1).
func (p *Pool) countTask(s *starterProcess, by int) {
	u, r := &p.users[s.job], s.runner.limit
	now := p.loop.Now()
	p.runningTasks += by
	u.running += by
	cpu := r.CPU
	p.coreSeconds = p.CoreSeconds()
	if p.lastChange = now; s.remaining >= ForEver {
		p.endlessTasks += by
	}
	if by > 0 {
		p.usedResources = p.usedResources.Add(r)
		if u.attempts++; u.attempts == 1 {
			u.firstStarted = now
		}
		if s.attempt.Attempt == 1 && !s.initial {
			p.waits = append(p.waits, now-p.cfg.Jobs[s.job].At)
		}
	} else {
		p.usedResources = p.usedResources.Sub(r)
		u.lastEnded = now
		cpu = -cpu
	}
	p.usedByOwner[p.callerOf(s.job).User] += cpu
}
