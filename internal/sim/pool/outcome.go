package pool

import (
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
)

// State is how a pool stands at an instant.
type State struct {
	At      time.Duration
	Waiting int // tasks that were submitted and do not run
	Running int
	Over    int // tasks that have come to their end
	Used    roost.Resources
	By      map[string]roost.MilliCPU // by owner, what runs has of the processors; the caller only reads it
	Endless int                       // of those that run, tasks that do for ever
}

// State is how the pool stands now.
func (p *Pool) State() State {
	return State{At: p.k.Now(), Waiting: p.tasks - p.over - p.lives, Running: p.lives, Over: p.over, Used: p.used, By: p.by, Endless: p.endless}
}

// Stuck reports whether nothing more is to be expected: all jobs were submitted, nothing runs that will end, and for so long nothing has begun or ended.
func (p *Pool) Stuck(long time.Duration) bool {
	return p.lives == p.endless && p.k.Now()-max(p.moved, p.last) > long
}

// Outcome is what has become of one job of the config. Times are since the beginning, and -1 for what has not been.
type Outcome struct {
	ID       roost.JobID
	Shown    time.Duration // its id, to its user
	First    time.Duration // the first of its tasks began
	Last     time.Duration // the last process of it ended
	Attempts int           // that began
	Open     int           // tasks that have not come to their end
	Running  int           // tasks that run
	Refused  error
}

// Outcomes are those of all jobs of the config, in its order.
func (p *Pool) Outcomes() []Outcome {
	all := make([]Outcome, len(p.users))
	for i := range p.users {
		u := &p.users[i]
		o := Outcome{ID: u.id, Shown: -1, First: -1, Last: -1, Attempts: u.begun, Open: u.open, Running: u.lives, Refused: u.refused}
		if !u.id.IsZero() {
			o.Shown = u.shown
		}
		if u.begun > 0 {
			o.First = u.first
		}
		if u.begun > u.lives {
			o.Last = u.last
		}
		all[i] = o
	}
	return all
}

// Lending is what owners of machines have made of what ran there.
type Lending struct {
	Visits int // of owners
	Stood  int // tasks that stood still for them, each time
	Left   int // tasks that had to leave
}

// Lending is what it has been so far; ok is false where no machine has an owner.
func (p *Pool) Lending() (l Lending, ok bool) {
	return p.lending, slices.ContainsFunc(p.machines, func(m *machineNode) bool { return m.guard != nil })
}

// Haunted reports whether owners come and go by themselves: then something happens for ever.
func (p *Pool) Haunted() bool { return p.owned }

// Waits are how long each task that has begun had waited for that, from when its job was to be submitted, in the order of the beginnings.
func (p *Pool) Waits() []time.Duration { return p.waits }

// Standing is how a machine stands.
type Standing struct {
	Name        string
	Total, Left roost.Resources // Left is what can be given
	Running     int             // tasks
}

// Machines is how each machine stands, in the order of the config.
func (p *Pool) Machines() []Standing {
	all := make([]Standing, len(p.machines))
	for i, m := range p.machines {
		all[i] = Standing{Name: m.name, Total: m.of.Resources}
		if m.core != nil {
			all[i].Left, all[i].Running = m.core.Free().Left(), m.core.Running()
			continue
		}
		all[i].Left = m.of.Resources // its startd is down, or is yet to start
		for _, h := range m.hands {
			if all[i].Left = all[i].Left.Sub(h.claim.Resources); h.starter.phase == running {
				all[i].Running++
			}
		}
	}
	return all
}

// Total is what all machines have together.
func (p *Pool) Total() (sum roost.Resources) {
	for _, m := range p.machines {
		sum = sum.Add(m.of.Resources)
	}
	return sum
}

// Spent is the core-seconds for which tasks have run.
func (p *Pool) Spent() float64 { return p.spent + p.used.CPU.Cores()*(p.k.Now()-p.moved).Seconds() }

// Owners are those who have submitted jobs, in order.
func (p *Pool) Owners() []string {
	all := map[string]bool{}
	for i := range p.cfg.Jobs {
		all[p.who(i).User] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// counts takes in that a task begins to live, or lives no more.
func (p *Pool) counts(s *starter, by int) {
	u, r := &p.users[s.job], s.h.claim.Resources
	now := p.k.Now()
	p.lives += by
	u.lives += by
	cpu := r.CPU
	p.spent = p.Spent()
	if p.moved = now; s.left >= ForEver {
		p.endless += by
	}
	if by > 0 {
		p.used = p.used.Add(r)
		if u.begun++; u.begun == 1 {
			u.first = now
		}
		if s.attempt.Attempt == 1 && !s.carried {
			p.waits = append(p.waits, now-p.cfg.Jobs[s.job].At)
		}
	} else {
		p.used = p.used.Sub(r)
		u.last = now
		cpu = -cpu
	}
	p.by[p.who(s.job).User] += cpu
}
