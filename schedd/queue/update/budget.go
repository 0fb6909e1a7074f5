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

// Budget adds up the budget of a job of count tasks. With its surge tasks it has so many
// in all.
func (t *Tally) Budget(u *Update, p *Policy, count, tasks int, now int64) Budget {
	t.look(u, p, count, tasks, now)
	job, surge := t.sum(0, count), t.sum(count, tasks)
	return budgetOf(p, count, &job, &surge)
}

// Charged is Budget without the tasks that are down for another reason, which are not
// charged. What time changes is as it was at the last look, or is now.
func (t *Tally) Charged(u *Update, p *Policy, count, tasks int, now int64) Budget {
	b := t.Budget(u, p, count, tasks, t.LookedAt(now))
	b.Failing, b.Changes = 0, 0
	return b
}

func budgetOf(p *Policy, count int, job, surge *tallySum) Budget {
	return Budget{Limit: p.maxDown(count), Planned: job.of(downPlanned), Failing: job.of(downFailing),
		Spare: surge.of(isReady), Changes: job.failingUntil}
}

// States counts the tasks by how far they have come.
func (t *Tally) States(u *Update, p *Policy, count, tasks int, now int64) map[TaskState]int {
	t.look(u, p, count, tasks, now)
	states := map[TaskState]int{}
	for s := range TaskResizing + 1 {
		if n := t.nodes[1].of(firstStateKind + taskKind(s)); n > 0 {
			states[s] = n
		}
	}
	return states
}

// earlier is the earlier of two times, where 0 is never.
func earlier(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
