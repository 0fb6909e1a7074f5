package match

import "strings"

// claimJobKey is the job of a claim's task: "12[3].host" and "12.host" are of one.
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

// JobName is the job of a claim's task, "" if it is not known.
func (c *MachineClaim) JobName() string {
	j := claimJobKeyOf(c.Job)
	return j.number + j.host
}

// initBudgets notes what was displaced lately.
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

// withinBudget reports whether the budgets bear that so many claims of a machine go, some
// perhaps of one job.
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

// uncountEviction takes that back.
func (p preemptionPlanner) uncountEviction(c *MachineClaim) {
	p.evictedCount--
	if p.Preemption.HasBudgets {
		p.evictionsByJob[claimJobKeyOf(c.Job)]--
	}
}
