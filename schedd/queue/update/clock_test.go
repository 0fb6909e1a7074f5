package update

import (
	"testing"
	"time"
)

// TestClockSetBack checks that an update ends in time when the wall clock is set back by
// years. Its tasks settle then, or one of them waits.
func TestClockSetBack(t *testing.T) {
	p := DefaultPolicy()
	p.Settling, p.Progress = 5*time.Second, time.Minute
	before := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	u := Begin(Update{}, 1, 2, &p, before.UnixNano())
	fresh := TaskFact{Revision: 2, Condition: Ready, Since: before.UnixNano(), Began: before.UnixNano(), WasReady: true}
	now := before.AddDate(-3, 0, 0)
	if plan := Decide(u, &p, 1, []TaskFact{fresh}, now); plan.Update.State != Done {
		t.Errorf("the task settles: %v until %v", plan.Update.State, time.Unix(0, plan.Again))
	}
	waiting := []TaskFact{fresh, {Revision: 2, Since: before.UnixNano()}}
	plan := Decide(u, &p, 2, waiting, now)
	if plan.Update.State != Rolling || !plan.Changed || plan.Again > now.Add(p.Progress).UnixNano() {
		t.Errorf("a task waits: %v until %v, changed: %v", plan.Update.State, time.Unix(0, plan.Again), plan.Changed)
	}
	if again := Decide(plan.Update, &p, 2, waiting, now); again.Changed {
		t.Errorf("asked again: %+v", again)
	}
	plan = Decide(plan.Update, &p, 2, waiting, now.Add(p.Progress))
	if plan.Update.State == Rolling {
		t.Errorf("after %v: %v", p.Progress, plan.Update.State)
	}
}
