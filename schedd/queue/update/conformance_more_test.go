package update

import (
	"strings"
	"testing"
	"time"
)

// TestAuroraUpdateSpecificInstancesSkipUnchanged checks that tasks of the list that are
// so already are left alone.
func TestAuroraUpdateSpecificInstancesSkipUnchanged(t *testing.T) {
	m := newModel(t, 4)
	m.begin(2, with(func(p *Policy) { p.Tasks = []Range{{0, 1}} }), attemptPlan{ready: soon})
	m.run(5 * time.Minute)
	m.begin(2, with(func(p *Policy) { p.Tasks = []Range{{1, 2}} }), attemptPlan{ready: soon})
	m.run(5 * time.Minute)
	m.expect("rolling done rolling done", "2221")
	if got := strings.Join(m.stops, ""); got != "012" {
		t.Errorf("stopped in the order %s", got)
	}
}

// TestAuroraSLAAwareUpdateWithRollback checks that neither an update nor its undo takes
// down more tasks than the budget allows.
func TestAuroraSLAAwareUpdateWithRollback(t *testing.T) {
	m := newModel(t, 5)
	m.begin(2, with(func(p *Policy) {
		p.AtOnce, p.MaxDown, p.MaxDownSet = Amount{Number: 3}, Amount{Number: 1}, true
	}), attemptPlan{ready: soon})
	down := 0
	watch := func(d time.Duration) {
		for range int(d / time.Second) {
			m.run(time.Second)
			n := 0
			for _, f := range m.facts {
				if f.Condition != Ready {
					n++
				}
			}
			down = max(down, n)
		}
	}
	watch(30 * time.Second)
	m.command(Undo)
	watch(5 * time.Minute)
	m.expect("rolling undoing undone", "11111")
	if down != 1 {
		t.Errorf("%d tasks were down, and max_down = 1", down)
	}
}

// TestAuroraOldTaskDiesAndRescheduled checks that a task that dies before its turn begins
// in the new revision. It is not stopped for that afterwards.
func TestAuroraOldTaskDiesAndRescheduled(t *testing.T) {
	m := newModel(t, 4)
	m.begin(2, DefaultPolicy(), attemptPlan{ready: soon})
	m.run(5 * time.Second)
	m.exit(2)
	m.run(3 * time.Second)
	if m.facts[2].Revision != 2 {
		t.Errorf("the task that died is %+v", m.facts[2])
	}
	m.run(5 * time.Minute)
	m.expect("rolling done", "2222")
	if got := strings.Join(m.stops, ""); got != "013" {
		t.Errorf("stopped in the order %s", got)
	}
}

// TestNomadFailedNoMorePlacements checks that an update that was given up replaces
// nothing more, also where a task ends.
func TestNomadFailedNoMorePlacements(t *testing.T) {
	m := newModel(t, 4)
	m.begin(2, with(func(p *Policy) { p.OnFailure = StayOnFailure }), attemptPlan{ready: soon, dies: 3 * time.Second})
	m.run(20 * time.Second)
	m.expect("rolling aborted", "2111")
	m.exit(3)
	m.run(time.Hour)
	m.expect("rolling aborted", "2111")
	if got := strings.Join(m.stops, ""); got != "0" {
		t.Errorf("stopped in the order %s", got)
	}
}

// TestNomadClientDisconnectCanaries checks that a canary whose machine falls silent is no
// failure. When the machine is back, so is the canary, and nothing was replaced.
func TestNomadClientDisconnectCanaries(t *testing.T) {
	m := newModel(t, 4)
	m.begin(2, with(func(p *Policy) { p.Canary = 1 }), attemptPlan{ready: soon})
	m.run(8 * time.Second)
	m.set(0, Lost)
	m.stuck[0] = true
	m.run(2 * time.Minute)
	m.expect("rolling", "2111")
	m.set(0, Ready)
	m.stuck[0] = false
	m.run(time.Minute)
	m.expect("rolling waiting-promote", "2111")
	if got := strings.Join(m.stops, ""); got != "0" {
		t.Errorf("stopped in the order %s", got)
	}
	m.command(Promote)
	m.run(2 * time.Minute)
	m.expect("rolling waiting-promote rolling done", "2222")
}

// TestKubernetesTooFewPods checks that a drain takes down no task where too few are ready
// already.
func TestKubernetesTooFewPods(t *testing.T) {
	m := newModel(t, 3)
	p := with(func(p *Policy) { p.MaxDown, p.MaxDownSet = Amount{Number: 1}, true })
	m.policies[1] = &p
	m.noRoom[0] = true
	m.exit(0)
	m.drain(1)
	if m.facts[1].Condition != Ready {
		t.Fatal("a drain took down a task beside one that had failed, and max_down = 1")
	}
	m.noRoom[0] = false
	m.run(time.Minute)
	m.drain(1)
	if m.facts[1].Condition == Ready {
		t.Fatal("the drain found no room although all tasks were ready")
	}
}

// TestKubernetesBlocksEvictionUntilUpdated checks that a budget of none blocks a drain
// until its user makes it larger.
func TestKubernetesBlocksEvictionUntilUpdated(t *testing.T) {
	m := newModel(t, 3)
	p := with(func(p *Policy) { p.Surge, p.MaxDownSet = Amount{Number: 1}, true })
	m.policies[1] = &p
	m.drain(0)
	m.run(time.Minute)
	if m.facts[0].Condition != Ready {
		t.Fatal("a drain took down a task, and max_down = 0")
	}
	larger := with(func(p *Policy) { p.MaxDown, p.MaxDownSet = Amount{Number: 1}, true })
	m.policies[1] = &larger
	m.drain(0)
	if m.facts[0].Condition == Ready {
		t.Fatal("the drain found no room with max_down = 1")
	}
}
