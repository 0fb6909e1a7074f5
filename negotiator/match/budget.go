package match

import "strings"

// jobKey is the job of a claim's task: "12[3].host" and "12.host" are of one.
type jobKey struct{ number, host string }

func keyOf(task string) jobKey {
	i := strings.IndexAny(task, "[.")
	if i < 0 {
		return jobKey{number: task}
	}
	_, host, indexed := strings.Cut(task[i:], "]")
	if !indexed {
		host = task[i:]
	}
	return jobKey{task[:i], host}
}

// JobName is the job of a claim's task, "" if it is not known.
func (c *Claim) JobName() string {
	j := keyOf(c.Job)
	return j.number + j.host
}

// openBudgets notes what was displaced lately.
func (p *plan) openBudgets() {
	if b := &p.Preemption; b.Bounded {
		p.hurt = make(map[jobKey]int, len(b.Evicted))
		for job, n := range b.Evicted {
			p.hurt[keyOf(job)] += n
		}
	}
}

// budgeted reports whether a claim's job may lose one more task.
func (p *plan) budgeted(c *Claim) bool {
	b := &p.Preemption
	return !b.Bounded || c.Job == "" || p.hurt[keyOf(c.Job)] < b.PerJob
}

// affords reports whether the budgets bear that so many claims of a machine go, some perhaps of one job.
func (p *plan) affords(m *Machine, victims []int32) bool {
	b := &p.Preemption
	if !b.Bounded {
		return true
	}
	for i, v := range victims {
		if m.Claims[v].Job == "" {
			continue
		}
		job, alike := keyOf(m.Claims[v].Job), 1
		for _, o := range victims[:i] {
			if keyOf(m.Claims[o].Job) == job {
				alike++
			}
		}
		if p.hurt[job]+alike > b.PerJob {
			return false
		}
	}
	return p.evicted+len(victims) <= b.Cell
}

func (p *plan) exhausted() bool { return p.Preemption.Bounded && p.evicted >= p.Preemption.Cell }

// spend counts an eviction.
func (p *plan) spend(c *Claim) {
	p.evicted++
	if p.Preemption.Bounded {
		p.hurt[keyOf(c.Job)]++
	}
}

// unspend takes that back.
func (p *plan) unspend(c *Claim) {
	p.evicted--
	if p.Preemption.Bounded {
		p.hurt[keyOf(c.Job)]--
	}
}
