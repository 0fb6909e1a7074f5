package pool

import (
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
)

// StateSample is how a pool stands at an instant.
type StateSample struct {
	At          time.Duration
	Waiting     int // tasks that were submitted and do not run
	Running     int
	Ended       int // tasks that have come to their end
	Used        roost.Resources
	UsedByOwner map[string]roost.MilliCPU // by owner, what runs has of the processors; the caller only reads it
	Endless     int                       // of those that run, tasks that do for ever
}

// Sample is how the pool stands now.
func (p *Pool) Sample() StateSample {
	return StateSample{At: p.loop.Now(), Waiting: p.tasks - p.endedTasks - p.runningTasks, Running: p.runningTasks,
		Ended: p.endedTasks, Used: p.usedResources, UsedByOwner: p.usedByOwner, Endless: p.endlessTasks}
}

// IsStuck reports whether nothing more is to be expected: all jobs were submitted,
// nothing runs that will end, and for so long nothing has begun or ended.
func (p *Pool) IsStuck(long time.Duration) bool {
	return p.runningTasks == p.endlessTasks && p.loop.Now()-max(p.lastChange, p.lastSubmit) > long
}

// JobOutcome is what has become of one job of the config. Times are since the beginning,
// and -1 for what has not been.
type JobOutcome struct {
	ID           roost.JobID
	IDShown      time.Duration // its id, to its user
	FirstStarted time.Duration // the first of its tasks began
	LastEnded    time.Duration // the last process of it ended
	Attempts     int           // that began
	Unfinished   int           // tasks that have not come to their end
	Running      int           // tasks that run
	Refused      error
}

// Outcomes are those of all jobs of the config, in its order.
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

// OwnerStats is what owners of machines have made of what ran there.
type OwnerStats struct {
	Visits    int // of owners
	Suspended int // tasks that stood still for them, each time
	Vacated   int // tasks that had to leave
}

// OwnerStats is what it has been so far; ok is false where no machine has an owner.
func (p *Pool) OwnerStats() (l OwnerStats, ok bool) {
	return p.ownerStats, slices.ContainsFunc(p.machines, func(m *machineNode) bool { return m.guard != nil })
}

// HasOwners reports whether owners come and go by themselves: then something happens for
// ever.
func (p *Pool) HasOwners() bool { return p.hasOwners }

// StartWaits are how long each task that has begun had waited for that, from when its job
// was to be submitted, in the order of the beginnings.
func (p *Pool) StartWaits() []time.Duration { return p.waits }

// MachineStatus is how a machine stands.
type MachineStatus struct {
	Name             string
	Total, Available roost.Resources // Left is what can be given
	Running          int             // tasks
}

// Machines is how each machine stands, in the order of the config.
func (p *Pool) Machines() []MachineStatus {
	all := make([]MachineStatus, len(p.machines))
	for i, m := range p.machines {
		all[i] = MachineStatus{Name: m.name, Total: m.config.Resources}
		if m.core != nil {
			all[i].Available, all[i].Running = m.core.Free().LeftForBatch(), m.core.Running()
			continue
		}
		all[i].Available = m.config.Resources // its startd is down, or is yet to start
		for _, h := range m.claimRunners {
			if all[i].Available = all[i].Available.Sub(h.claim.Resources); h.starter.phase == phaseRunning {
				all[i].Running++
			}
		}
	}
	return all
}

// Total is what all machines have together.
func (p *Pool) Total() (sum roost.Resources) {
	for _, m := range p.machines {
		sum = sum.Add(m.config.Resources)
	}
	return sum
}

// CoreSeconds is the core-seconds for which tasks have run.
func (p *Pool) CoreSeconds() float64 {
	return p.coreSeconds + p.usedResources.CPU.Cores()*(p.loop.Now()-p.lastChange).Seconds()
}

// Owners are those who have submitted jobs, in order.
func (p *Pool) Owners() []string {
	all := map[string]bool{}
	for i := range p.cfg.Jobs {
		all[p.callerOf(i).User] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// countTask takes in that a task begins to live, or lives no more.
func (p *Pool) countTask(s *starterProcess, by int) {
	u, r := &p.users[s.job], s.runner.claim.Resources
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
