package update

import (
	"testing"
	"time"
)

// decide asks a new tally of some tasks.
func decide(u Update, p *Policy, count int, facts []TaskFact, now time.Time) Plan {
	return NewTally(func(i int) TaskFact { return facts[i] }).Decide(u, p, count, len(facts), now)
}

// TestClockSetBack checks that an update ends in time when the wall clock is set back by
// years. Its tasks settle then, or one of them waits.
func TestClockSetBack(t *testing.T) {
	p := DefaultPolicy()
	p.Settling, p.Progress = 5*time.Second, time.Minute
	before := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	u := Begin(Update{}, 1, 2, &p, before.UnixNano())
	fresh := TaskFact{Revision: 2, Condition: Ready, Since: before.UnixNano(), Began: before.UnixNano(), WasReady: true}
	now := before.AddDate(-3, 0, 0)
	if plan := decide(u, &p, 1, []TaskFact{fresh}, now); plan.Update.State != Done {
		t.Errorf("the task settles: %v until %v", plan.Update.State, time.Unix(0, plan.Again))
	}
	waiting := []TaskFact{fresh, {Revision: 2, Since: before.UnixNano()}}
	plan := decide(u, &p, 2, waiting, now)
	if plan.Update.State != Rolling || !plan.Changed || plan.Again > now.Add(p.Progress).UnixNano() {
		t.Errorf("a task waits: %v until %v, changed: %v", plan.Update.State, time.Unix(0, plan.Again), plan.Changed)
	}
	if again := decide(plan.Update, &p, 2, waiting, now); again.Changed {
		t.Errorf("asked again: %+v", again)
	}
	plan = decide(plan.Update, &p, 2, waiting, now.Add(p.Progress))
	if plan.Update.State == Rolling {
		t.Errorf("after %v: %v", p.Progress, plan.Update.State)
	}
}
