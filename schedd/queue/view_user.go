package queue

import (
	"fmt"

	"github.com/roost-batch/roost"
)

// userView counts the gangs of an array, which are a task each to their user. The counts
// of the tasks behind them mean nothing to a user.
type userView struct {
	byGang []userState // by gang; empty where each task is one to its user
	counts [roost.Removed + 1]int
	failed int
}

// userState is how a task stands for its user.
type userState struct {
	state  roost.TaskState
	failed bool
}

// userState is the state of a task for its user; of the leader of a gang, that of the
// gang. Its program may have ended while the others are still on their way.
func (j *job) userState(i int) userState {
	s := j.state[i]
	if j.tasksPerIndex() > 1 && s.IsFinal() && j.gangs.openTasks[i/j.tasksPerIndex()] > 0 {
		return userState{roost.Running, false}
	}
	if s == roost.Blocked && runsFlow(j) {
		return userState{roost.Running, false}
	}
	return userState{s, s == roost.Completed && !j.records.HasSucceeded(i)}
}

// runsFlow reports whether the job is a flow of which nodes have begun. Its task is
// blocked then, and runs for its user.
func runsFlow(j *job) bool { return j.flow != nil && j.firstStarted != 0 && !isWaitingFlow(j) }

// updateUserState notes that a task, or what is known of how it ended, has changed.
func (j *job) updateUserState(i int) {
	g := &j.gangs.userView
	if len(g.byGang) == 0 {
		return
	}
	n := i / j.tasksPerIndex()
	g.count(g.byGang[n], -1)
	g.byGang[n] = j.userState(j.primaryOf(i))
	g.count(g.byGang[n], 1)
}

func (g *userView) count(s userState, by int) {
	g.counts[s.state] += by
	if s.failed {
		g.failed += by
	}
}

// updateUserStates looks at all gangs.
func (j *job) updateUserStates() {
	if len(j.gangs.userView.byGang) > 0 {
		j.ownExtras().gangs.userView = userView{}
	}
	if j.tasksPerIndex() == 1 {
		return
	}
	g := &j.ownExtras().gangs.userView
	g.byGang = make([]userState, len(j.state)/j.tasksPerIndex())
	for n := range g.byGang {
		g.byGang[n] = j.userState(n * j.tasksPerIndex())
		g.count(g.byGang[n], 1)
	}
}

// userCounts counts the tasks of a job as its user knows them. It returns how many there
// are, in which states, and how many have failed.
func (j *job) userCounts() (tasks int, counts [roost.Removed + 1]int, failed int) {
	if g := &j.gangs.userView; len(g.byGang) > 0 {
		return len(g.byGang), g.counts, g.failed
	}
	for s, n := range j.counts {
		counts[s] = int(n)
	}
	if runsFlow(j) {
		counts[roost.Running], counts[roost.Blocked] = counts[roost.Blocked], 0
	}
	return len(j.state), counts, int(j.failed)
}

// checkUserView panics when what is counted for users is wrong.
func checkUserView(j *job) {
	_, counts, failed := j.userCounts()
	again, extras := *j, *j.jobExtras
	again.jobExtras = &extras
	again.updateUserStates()
	if _, want, bad := again.userCounts(); counts != want || failed != bad {
		panic(fmt.Sprintf("queue: job %d shows %v, %d failed, and says %v, %d", j.seq, want, bad, counts, failed))
	}
}
