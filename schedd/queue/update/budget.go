package update

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/mutant"
)

// Budget is how many tasks of a job planned causes may still take down at one instant.
// All of them ask it: updates, drains, restarts by a check, moves and resizes.
type Budget struct {
	Limit   int   // max_down of the job
	Planned int   // tasks that planned causes have taken down, and that are not ready again
	Failing int   // tasks that are down for another reason
	Spare   int   // tasks beyond the count of the job that are ready
	Changes int64 // when Failing becomes smaller by itself, unix nanoseconds; 0: never
}

// Room is how many more ready tasks may be stopped. A task that is down anyway costs
// nothing.
func (b Budget) Room() int {
	if mutant.Active(mutant.BudgetIgnored) {
		return roost.MaxTasks
	}
	return max(b.Limit+b.Spare-b.Planned-b.Failing, 0)
}

// Exceeded reports whether planned causes have taken down more than they may.
func (b Budget) Exceeded() bool { return b.Planned > b.Limit+b.Spare }

// Budget adds up the budget of a job of count tasks; the facts beyond count are of its
// surge tasks. A task that failed counts for as long as it may need to come back, which
// is ready_within: one that cannot run at all would block every update otherwise.
func (u *Update) Budget(p *Policy, count int, facts []TaskFact, now int64) Budget {
	b := Budget{Limit: p.maxDown(count)}
	for i := range facts {
		f := &facts[i]
		switch {
		case i >= count:
			if f.Condition == Ready {
				b.Spare++
			}
		case f.Condition == Ready, f.Absent:
		case f.Planned && !u.hasFailed(i):
			b.Planned++
		case f.WasReady:
			if until := f.Since + int64(p.ReadyWithin); now < until {
				b.Failing++
				b.Changes = earlier(b.Changes, until)
			}
		}
	}
	return b
}

// earlier is the earlier of two times, where 0 is never.
func earlier(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
