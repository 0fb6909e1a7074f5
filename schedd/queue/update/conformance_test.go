package update

import (
	"strings"
	"testing"
	"time"
)

// The cases below are those that the updaters of Aurora, Nomad and Kubernetes are known
// by. Their names say which; the list of all of them is in conformance_list_test.go.

const soon = time.Second

// with returns the default policy with a change.
func with(change func(*Policy)) Policy {
	p := DefaultPolicy()
	change(&p)
	return p
}

func TestAuroraSuccessfulBatchedUpdate(t *testing.T) {
	m := newModel(t, 6)
	m.begin(2, with(func(p *Policy) {
		p.AtOnce, p.MaxDown, p.MaxDownSet = Amount{Number: 2}, Amount{Number: 2}, true
	}), attemptPlan{ready: soon})
	m.run(5 * time.Minute)
	m.expect("rolling done", "222222")
	if got := strings.Join(m.stops, ""); got != "012345" {
		t.Errorf("stopped in the order %s", got)
	}
}

func TestAuroraRollback(t *testing.T) {
	m := newModel(t, 4)
	m.begin(2, DefaultPolicy(), attemptPlan{ready: soon, dies: 3 * time.Second})
	m.run(5 * time.Minute)
	m.expect("rolling undoing undone", "1111")
}

// TestAuroraRollbackFailed checks that an undo that fails, too, waits for its user,
// and goes on when told to.
func TestAuroraRollbackFailed(t *testing.T) {
	m := newModel(t, 2)
	m.begin(2, DefaultPolicy(), attemptPlan{ready: -1})
	m.behave[1] = attemptPlan{ready: -1}
	m.run(20 * time.Minute)
	m.expect("rolling undoing undo-paused", "11")
	m.behave[1] = attemptPlan{ready: soon}
	m.command(Resume)
	m.run(10 * time.Minute)
	m.expect("rolling undoing undo-paused undoing undone", "11")
}

// TestUndoLeavesOthersAlone checks that no task holds up an undo that has nothing to go
// back from, however it is. The update has not made it so.
func TestUndoLeavesOthersAlone(t *testing.T) {
	m := newModel(t, 3)
	m.begin(2, DefaultPolicy(), attemptPlan{ready: -1})
	m.run(4 * time.Minute)
	m.set(2, Unready)
	m.stuck[2] = true
	m.run(10 * time.Minute)
	m.expect("rolling undoing undone", "111")
	if m.facts[2].Condition != Unready || strings.Contains(strings.Join(m.stops, ""), "2") {
		t.Errorf("task 2 is %+v, stopped were %v", m.facts[2], m.stops)
	}
}

func TestAuroraRollbackPausedForwardUpdate(t *testing.T) {
	m := newModel(t, 4)
	m.begin(2, DefaultPolicy(), attemptPlan{ready: soon})
	m.run(20 * time.Second)
	m.command(Pause)
	m.run(time.Hour)
	m.command(Undo)
	m.run(5 * time.Minute)
	m.expect("rolling paused undoing undone", "1111")
}

func TestAuroraAbort(t *testing.T) {
	m := newModel(t, 4)
	m.begin(2, DefaultPolicy(), attemptPlan{ready: soon})
	m.run(20 * time.Second)
	m.command(Abort)
	m.run(time.Hour)
	m.expect("rolling aborted", "2211")
	if _, err := m.update.After(Close, m.mixed(), m.now.UnixNano()); err == nil {
		t.Error("a mixed job was closed")
	}
}

// TestAuroraRecoverAwaitingPulseFromStorage checks that what is on record is all that
// goes on; the planner has no memory of its own.
func TestAuroraRecoverAwaitingPulseFromStorage(t *testing.T) {
	m := newModel(t, 2)
	m.begin(2, with(func(p *Policy) { p.Pulse = 30 * time.Second }), attemptPlan{ready: soon})
	m.run(time.Hour)
	m.expect("waiting-pulse", "11")
	for range 4 {
		m.command(Pulse)
		m.run(20 * time.Second)
	}
	m.expect("waiting-pulse rolling done", "22")
}

func TestAuroraPulsePausedUpdate(t *testing.T) {
	m := newModel(t, 3)
	m.begin(2, with(func(p *Policy) { p.Pulse = 20 * time.Second }), attemptPlan{ready: soon})
	m.command(Pulse)
	m.command(Pause)
	m.run(time.Hour)
	m.command(Pulse)
	m.run(10 * time.Second)
	m.expect("waiting-pulse rolling paused", "211")
}

func TestAuroraUpdateSpecificInstances(t *testing.T) {
	m := newModel(t, 6)
	m.begin(2, with(func(p *Policy) { p.Tasks = []Range{{2, 3}} }), attemptPlan{ready: soon})
	m.run(5 * time.Minute)
	m.expect("rolling done", "112211")
}

// TestAuroraStuckInPending checks that a task that waits for a machine has not
// failed; the clock of progress ends the wait.
func TestAuroraStuckInPending(t *testing.T) {
	m := newModel(t, 3)
	m.begin(2, DefaultPolicy(), attemptPlan{ready: soon})
	m.noRoom[0] = true
	m.run(9 * time.Minute)
	m.expect("rolling", "211")
	m.run(2 * time.Minute)
	m.expect("rolling undoing", "111")
}

func TestAuroraSlowToScheduleTask(t *testing.T) {
	m := newModel(t, 2)
	m.begin(2, DefaultPolicy(), attemptPlan{ready: soon})
	m.noRoom[0] = true
	m.run(9 * time.Minute)
	m.noRoom[0] = false
	m.run(2 * time.Minute)
	m.expect("rolling done", "22")
}

func TestAuroraSlowToKill(t *testing.T) {
	m := newModel(t, 2)
	m.stopTime = 2 * time.Minute
	m.begin(2, DefaultPolicy(), attemptPlan{ready: soon})
	m.run(10 * time.Minute)
	m.expect("rolling done", "22")
}

// TestAuroraOldTaskDies checks that a task that is down anyway is updated first, and
// costs no budget.
func TestAuroraOldTaskDies(t *testing.T) {
	m := newModel(t, 4)
	m.exit(3)
	m.begin(2, DefaultPolicy(), attemptPlan{ready: soon})
	m.run(time.Second)
	m.expect("rolling", "1112")
	m.run(5 * time.Minute)
	m.expect("rolling done", "2222")
}

func TestAuroraVarBatchUpdateAutoPause(t *testing.T) {
	m := newModel(t, 4)
	m.begin(2, with(func(p *Policy) { p.Canary = 2 }), attemptPlan{ready: soon})
	m.run(5 * time.Minute)
	m.expect("rolling waiting-promote", "2211")
	m.command(Promote)
	m.run(5 * time.Minute)
	m.expect("rolling waiting-promote rolling done", "2222")
}

func TestNomadDestructiveMaxParallel(t *testing.T) {
	m := newModel(t, 10)
	m.begin(2, with(func(p *Policy) {
		p.AtOnce, p.MaxDown, p.MaxDownSet = Amount{Number: 5}, Amount{Number: 3}, true
	}), attemptPlan{ready: soon})
	if len(m.stops) != 3 {
		t.Errorf("%v were stopped at once, and max_down = 3", m.stops)
	}
	m.run(5 * time.Minute)
	m.expect("rolling done", "2222222222")
}

// TestNomadLostNodeCanary checks that a canary on a machine that is lost is started
// elsewhere; nothing else is replaced.
func TestNomadLostNodeCanary(t *testing.T) {
	m := newModel(t, 4)
	m.begin(2, with(func(p *Policy) { p.Canary = 1 }), attemptPlan{ready: soon})
	m.run(8 * time.Second)
	m.set(0, Lost)
	m.run(2 * time.Minute)
	m.expect("rolling waiting-promote", "2111")
}

func TestNomadDrainNodeCanary(t *testing.T) {
	m := newModel(t, 4)
	m.begin(2, with(func(p *Policy) { p.Canary = 1 }), attemptPlan{ready: soon})
	m.run(8 * time.Second)
	m.drain(0)
	m.run(2 * time.Minute)
	m.expect("rolling waiting-promote", "2111")
}

func TestNomadPromoteCanariesEqualCount(t *testing.T) {
	m := newModel(t, 2)
	m.begin(2, with(func(p *Policy) { p.Canary, p.Surge = 2, Amount{Number: 2} }), attemptPlan{ready: soon})
	m.run(time.Minute)
	m.expect("rolling waiting-promote", "1122")
	m.command(Promote)
	m.run(time.Minute)
	m.expect("rolling waiting-promote rolling done", "22")
}

func TestNomadAutoRevertCancelCanaries(t *testing.T) {
	m := newModel(t, 3)
	m.begin(2, with(func(p *Policy) { p.Canary, p.Surge = 1, Amount{Number: 1} }), attemptPlan{ready: -1})
	m.run(6 * time.Minute)
	m.expect("rolling undoing undone", "111")
	if len(m.stops) != 0 {
		t.Errorf("tasks %v were stopped for a canary that failed", m.stops)
	}
}

func TestNomadPausedNoMorePlacements(t *testing.T) {
	m := newModel(t, 4)
	m.begin(2, DefaultPolicy(), attemptPlan{ready: soon})
	m.command(Pause)
	stops := len(m.stops)
	m.run(time.Hour)
	m.expect("rolling paused", "2111")
	if len(m.stops) != stops {
		t.Errorf("%v were stopped while it was paused", m.stops)
	}
}

// TestNomadProgressDeadlineLatePromote checks that the clock stands while canaries
// wait, so that a late promotion is not a failure.
func TestNomadProgressDeadlineLatePromote(t *testing.T) {
	m := newModel(t, 3)
	m.begin(2, with(func(p *Policy) { p.Canary = 1 }), attemptPlan{ready: soon})
	m.run(3 * time.Hour)
	m.command(Promote)
	m.run(2 * time.Minute)
	m.expect("rolling waiting-promote rolling done", "222")
}

func TestNomadWatchFailEarly(t *testing.T) {
	m := newModel(t, 3)
	m.begin(2, with(func(p *Policy) { p.OnFailure = PauseOnFailure }),
		attemptPlan{ready: 2 * soon, dies: 3 * time.Second})
	m.run(20 * time.Second)
	m.expect("rolling paused", "211")
}

// TestKubernetesRollover checks that a newer update supersedes the one before. An
// undo goes back to the start.
func TestKubernetesRollover(t *testing.T) {
	m := newModel(t, 4)
	m.begin(2, DefaultPolicy(), attemptPlan{ready: soon})
	m.run(20 * time.Second)
	m.begin(3, DefaultPolicy(), attemptPlan{ready: soon})
	m.run(20 * time.Second)
	m.command(Undo)
	m.run(5 * time.Minute)
	m.expect("rolling undoing undone", "1111")
	m.begin(4, DefaultPolicy(), attemptPlan{ready: soon})
	m.run(5 * time.Minute)
	m.expect("rolling undoing undone rolling done", "4444")
}

func TestKubernetesNoDisruptionDuringRollout(t *testing.T) {
	m := newModel(t, 3)
	p := with(func(p *Policy) { p.Surge, p.MaxDownSet = Amount{Number: 1}, true })
	m.begin(2, p, attemptPlan{ready: 5 * time.Second})
	for range 300 {
		m.run(time.Second)
		ready := 0
		for _, f := range m.facts {
			if f.Condition == Ready {
				ready++
			}
		}
		if ready < m.count {
			t.Fatalf("%d tasks were ready, and max_down = 0", ready)
		}
	}
	m.expect("rolling done", "222")
}

// TestKubernetesBlocksEviction checks that an eviction is refused while an update has
// the budget, and allowed afterwards.
func TestKubernetesBlocksEviction(t *testing.T) {
	m := newModel(t, 3)
	m.begin(2, DefaultPolicy(), attemptPlan{ready: 5 * time.Second})
	m.drain(2)
	if m.facts[2].Condition != Ready {
		t.Fatal("a drain and an update took down two tasks")
	}
	m.run(5 * time.Minute)
	m.drain(2)
	if m.facts[2].Condition == Ready {
		t.Fatal("the drain found no room after the update")
	}
}

// TestBorgDisruptions checks Borg's bound on the disruptions of an update: what is
// beyond is left as it is.
func TestBorgDisruptions(t *testing.T) {
	m := newModel(t, 5)
	m.begin(2, with(func(p *Policy) { p.Disruptions = 2 }), attemptPlan{ready: soon})
	m.run(10 * time.Minute)
	m.expect("rolling partial", "22111")
}

// TestNomadLimitHealthAccounting checks that only tasks that have settled make room for
// the next ones.
func TestNomadLimitHealthAccounting(t *testing.T) {
	m := newModel(t, 6)
	m.begin(2, with(func(p *Policy) {
		p.AtOnce, p.MaxDown, p.MaxDownSet = Amount{Number: 4}, Amount{Number: 4}, true
	}), attemptPlan{ready: soon})
	m.run(8 * time.Second) // they are ready, and have not settled
	if got := strings.Join(m.stops, ""); got != "0123" {
		t.Errorf("stopped in the order %s before any had settled", got)
	}
	m.run(time.Minute)
	m.expect("rolling done", "222222")
}

// TestNomadTaintedNodeRollingUpgrade checks that tasks of a lost machine come back in the
// new revision.
func TestNomadTaintedNodeRollingUpgrade(t *testing.T) {
	m := newModel(t, 5)
	m.begin(2, DefaultPolicy(), attemptPlan{ready: soon})
	m.run(5 * time.Second)
	m.set(3, Lost)
	m.set(4, Lost)
	m.run(10 * time.Minute)
	m.expect("rolling done", "22222")
	if got := strings.Join(m.stops, ""); strings.Contains(got, "3") && strings.Contains(got, "4") {
		t.Errorf("stopped in the order %s, and tasks 3 and 4 had ended with their machine", got)
	}
}

// TestNomadProgressDeadlineCanaries checks that canaries that find no machine fail the
// update when the time for progress is over.
func TestNomadProgressDeadlineCanaries(t *testing.T) {
	m := newModel(t, 3)
	m.noRoom[3] = true
	m.begin(2, with(func(p *Policy) { p.Canary, p.Surge = 1, Amount{Number: 1} }), attemptPlan{ready: soon})
	m.run(30 * time.Minute)
	m.expect("rolling undoing undone", "111")
}

// TestKubernetesIterativeRollouts begins updates at irregular times, each before the one
// before has ended. The last one ends.
func TestKubernetesIterativeRollouts(t *testing.T) {
	m := newModel(t, 5)
	for to, pause := range []time.Duration{7, 1, 13, 3, 29, 2} {
		m.begin(uint32(to)+2, DefaultPolicy(), attemptPlan{ready: soon})
		m.run(pause * time.Second)
	}
	m.run(10 * time.Minute)
	m.expect("rolling done", "77777")
}
