package audit

import (
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

// TestDisruptionsPermitted checks that each update may stop as many tasks as its bound
// is, and an undo any number. What has ended by the records costs nothing.
func TestDisruptionsPermitted(t *testing.T) {
	two := idShown("k", taskOne)
	two.Tasks = 2
	begin := joinHistories(machineOffered("m1", 2), two, Event{Type: ServiceStored, Job: taskOne,
		Service: &ServiceTerms{MaxDown: 2, Surge: 1, Disruptions: 1}}, twoTasksRun())
	gone := taskEvent(TaskUnready, 1)
	gone.Attempt = 1
	hold := taskEvent(StopRequested, AllTasks)
	for name, history := range map[string][]Event{
		"two updates":   joinHistories(updateMoves(2), stopOfUpdate(0), updateMoves(3), stopOfUpdate(1)),
		"an undo":       joinHistories(updateMoves(2), updateMoves(1), stopOfUpdate(0), stopOfUpdate(1)),
		"a surge task":  joinHistories(countSet(1, 1), updateMoves(2), stopOfUpdate(0), stopOfUpdate(1)),
		"one is gone":   joinHistories(updateMoves(2), stopOfUpdate(0), gone, stopOfUpdate(1)),
		"the same ad":   joinHistories(revisionSet(1, 7, 2), revisionSet(2, 8, 3), revisionSet(1, 7, 2)),
		"a hold":        joinHistories(updateMoves(2), stopOfUpdate(0), hold, stopOfUpdate(1)),
		"a hold of one": joinHistories(updateMoves(2), stopOfUpdate(0), taskEvent(StopRequested, 1), stopOfUpdate(1)),
		"a drain":       joinHistories(updateMoves(2), stopOfUpdate(0), taskEvent(PlannedStop, 1)),
	} {
		if all := observeAll(joinHistories(begin, history)).Violations(); len(all) != 0 {
			t.Errorf("%s: %v", name, all)
		}
	}
}

// TestHeldTasksNotPlanned checks that tasks that their user stops are not down by plan.
// Another one may then be stopped before the user has the answer.
func TestHeldTasksNotPlanned(t *testing.T) {
	two := idShown("k", taskOne)
	two.Tasks = 2
	begin := joinHistories(machineOffered("m1", 2), two, Event{Type: ServiceStored, Job: taskOne,
		Service: &ServiceTerms{MaxDown: 1}}, twoTasksRun(), taskEvent(PlannedStop, 0))
	for index, want := range map[int]int{AllTasks: 0, 0: 0, 1: 1} {
		history := joinHistories(begin, taskEvent(StopRequested, index), taskEvent(PlannedStop, 1))
		if all := observeAll(history).Violations(); len(all) != want {
			t.Errorf("task %d is stopped by its user: %v", index, all)
		}
	}
}

// TestRunsOnce checks that an instant may be decided again with the same run. It may have
// none while its job is held, or where instants may be left out.
func TestRunsOnce(t *testing.T) {
	steady := Event{Type: SubmissionStored, Node: "s1", Key: "k", Job: taskOne, Tasks: 1, Resources: oneCore,
		Schedule: &ScheduleTerms{Every: time.Minute, Steady: true, Complete: true}}
	skips := steady
	skips.Schedule = &ScheduleTerms{Every: time.Minute}
	skipped := Event{Type: RunSkipped, Job: taskOne, Instant: 120, Detail: "missed"}
	ended := []Event{{Type: Removed, Job: roost.JobID{Seq: 2, Host: "s1"}}, {Type: Removed, Job: taskOne}}
	run := joinHistories(runStored(2, 60), runDecided(2, 60))
	for name, history := range map[string][]Event{
		"decided again": joinHistories(steady, run, runDecided(2, 60), ended),
		"held": joinHistories(steady, run, Event{Type: HeldByUser, Job: taskOne, Index: AllTasks},
			Event{Type: FaultsEnded}, eventAt(5*time.Minute, Event{Type: Released, Job: taskOne, Index: AllTasks}),
			skipped, ended),
		"left out": joinHistories(skips, run, skipped, Event{Type: FaultsEnded}, eventAt(5*time.Minute, entryAt(1, 0)),
			ended),
	} {
		a := observeAll(history)
		if a.Finish(time.Hour); len(a.Violations()) != 0 {
			t.Errorf("%s: %v", name, a.Violations())
		}
	}
	a := observeAll(joinHistories(steady, run, ended[1:]))
	if a.Finish(time.Hour); len(a.Violations()) != 1 || a.Violations()[0].Guarantee != 9 {
		t.Errorf("a run that does not end: %v", a.Violations())
	}
}

// TestRestartsAfterLoss checks that planned stops are no restarts by which a task has to
// leave its claim. That holds for a service, too, whose records are lost in part.
func TestRestartsAfterLoss(t *testing.T) {
	history := joinHistories(machineOffered("m1", 2), idShown("k", taskOne), Event{Type: ServiceStored, Job: taskOne,
		Service: &ServiceTerms{MaxDown: 1, Restarts: 1}}, Event{Type: RecordLost, Job: taskOne})
	run := func(attempt roost.AttemptNumber) []Event {
		return joinHistories(machineEvent(Assigned, attempt, "m1"), taskBegins(attempt, "A=1"))
	}
	for attempt := roost.AttemptNumber(1); attempt < 5; attempt++ {
		history = joinHistories(history, run(attempt), taskEvent(PlannedStop, 0), machineEvent(Ended, attempt, "m1"))
	}
	if all := observeAll(history).Violations(); len(all) != 0 {
		t.Errorf("after planned stops: %v", all)
	}
	history = joinHistories(history, run(5), machineEvent(Ended, 5, "m1"), run(6), machineEvent(Ended, 6, "m1"), run(7))
	if all := observeAll(history).Violations(); len(all) != 1 || all[0].Guarantee != BackoffGuarantee {
		t.Errorf("after two restarts: %v", all)
	}
}

// TestTaskAvoidsMachine checks that a task may wait beside a machine on which it failed
// twice. It may do so for as long as it avoids that machine.
func TestTaskAvoidsMachine(t *testing.T) {
	history := joinHistories(machineOffered("m1", 2), idShown("k", taskOne))
	for i := range roost.AttemptNumber(2) {
		run := taskRun(i+1, "m1")[:5]
		run[3].Code = 3
		history = joinHistories(history, run)
	}
	history = joinHistories(history, Event{Type: FaultsEnded}, eventAt(time.Minute, entryAt(1, 0)))
	for wait, want := range map[time.Duration]int{20 * time.Minute: 0, 40 * time.Minute: 1} {
		if all := observeAll(joinHistories(history, eventAt(wait, entryAt(2, 0)))).Violations(); len(all) != want {
			t.Errorf("after %v: %v", wait, all)
		}
	}
}

// TestNamesPermitted checks that a name may point to what has ended where its collector
// is slow. Two attempts may live at once where their job allows that.
func TestNamesPermitted(t *testing.T) {
	begin := joinHistories(machineOffered("m1", 2), machineOffered("m2", 2), idShown("k", taskOne),
		Event{Type: ServiceStored, Job: taskOne, Service: &ServiceTerms{MaxDown: 1, Overlap: true}},
		Event{Type: NamesServed, Node: "n1"}, machineEvent(Assigned, 1, "m1"), taskBegins(1, "A=1"),
		nameSet(1, "ready"))
	second := machineEvent(Began, 2, "m2")
	second.Claim = 8
	for name, history := range map[string][]Event{
		"two live": joinHistories(machineEvent(Assigned, 2, "m2"), second, nameSet(2, "ready"),
			machineEvent(Ended, 1, "m1")),
		"a slow collector": joinHistories(Event{Type: Injected, Node: "n1", Until: time.Minute},
			machineEvent(Ended, 1, "m1"), eventAt(time.Minute, entryAt(1, 0)), nameSet(0, ""),
			eventAt(2*time.Minute, entryAt(2, 0))),
		"a collector that dies": joinHistories(machineEvent(Ended, 1, "m1"), Event{Type: NamesGone, Node: "n1"},
			eventAt(time.Minute, entryAt(1, 0)), Event{Type: NamesServed, Node: "n1"}, nameSet(1, "lost"),
			eventAt(2*time.Minute, entryAt(2, 0))),
	} {
		if all := observeAll(joinHistories(begin, history)).Violations(); len(all) != 0 {
			t.Errorf("%s: %v", name, all)
		}
	}
}
