package match

import "strings"

// claimJobKey identifies the job of a claim's task: "12[3].host" and "12.host" have the
// same key.
type claimJobKey struct{ number, host string }

func claimJobKeyOf(task string) claimJobKey {
	i := strings.IndexAny(task, "[.")
	if i < 0 {
		return claimJobKey{number: task}
	}
	_, host, indexed := strings.Cut(task[i:], "]")
	if !indexed {
		host = task[i:]
	}
	return claimJobKey{task[:i], host}
}

// JobName returns the job of a claim's task, "" if it is unknown.
func (c *MachineClaim) JobName() string {
	j := claimJobKeyOf(c.Job)
	return j.number + j.host
}

// initBudgets counts the recent evictions by job.
func (p preemptionPlanner) initBudgets() {
	if b := &p.Preemption; b.HasBudgets {
		p.evictionsByJob = make(map[claimJobKey]int, len(b.EvictionsByJob))
		for job, n := range b.EvictionsByJob {
			p.evictionsByJob[claimJobKeyOf(job)] += n
		}
	}
}

// jobMayLoseTask reports whether a claim's job may lose one more task.
func (p preemptionPlanner) jobMayLoseTask(c *MachineClaim) bool {
	b := &p.Preemption
	return !b.HasBudgets || c.Job == "" || p.evictionsByJob[claimJobKeyOf(c.Job)] < b.PerJob
}

// withinBudget reports whether the budgets allow these victims on a machine. Some of them
// may belong to the same job.
func (p preemptionPlanner) withinBudget(m *Machine, victims []int32) bool {
	b := &p.Preemption
	if !b.HasBudgets {
		return true
	}
	for i, v := range victims {
		if m.Claims[v].Job == "" {
			continue
		}
		job, alike := claimJobKeyOf(m.Claims[v].Job), 1
		for _, o := range victims[:i] {
			if claimJobKeyOf(m.Claims[o].Job) == job {
				alike++
			}
		}
		if p.evictionsByJob[job]+alike > b.PerJob {
			return false
		}
	}
	return p.evictedCount+len(victims) <= b.MaxInCycle
}

func (p preemptionPlanner) cycleBudgetUsed() bool {
	return p.Preemption.HasBudgets && p.evictedCount >= p.Preemption.MaxInCycle
}

// countEviction counts an eviction.
func (p preemptionPlanner) countEviction(c *MachineClaim) {
	p.evictedCount++
	if p.Preemption.HasBudgets {
		p.evictionsByJob[claimJobKeyOf(c.Job)]++
	}
}

// uncountEviction takes back one eviction.
func (p preemptionPlanner) uncountEviction(c *MachineClaim) {
	p.evictedCount--
	if p.Preemption.HasBudgets {
		p.evictionsByJob[claimJobKeyOf(c.Job)]--
	}
}
