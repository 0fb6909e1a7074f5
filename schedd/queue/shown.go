package queue

import (
	"fmt"

	"github.com/roost-batch/roost"
)

// shown is how the gangs of an array stand that are a task each to their user: what is counted of the tasks behind that says nothing to anybody.
type shown struct {
	of     []standing // by gang; empty where each task is one to its user
	counts [roost.Removed + 1]int
	failed int
}

// standing is how a task stands for its user.
type standing struct {
	state  roost.TaskState
	failed bool
}

// standing is how a task stands for its user: where it leads a gang that is one of an array's, with all of that. Its program may have ended while the others
// are still on their way.
func (j *job) standing(i int) standing {
	s := j.state[i]
	if j.stride() > 1 && s.Final() && j.gangs.open[i/j.stride()] > 0 {
		return standing{roost.Running, false}
	}
	return standing{s, s == roost.Completed && !j.book.succeeded(i)}
}

// show notes that a task, or what is known of how it ended, has changed.
func (j *job) show(i int) {
	g := &j.gangs.shown
	if len(g.of) == 0 {
		return
	}
	n := i / j.stride()
	g.count(g.of[n], -1)
	g.of[n] = j.standing(j.head(i))
	g.count(g.of[n], 1)
}

func (g *shown) count(s standing, by int) {
	g.counts[s.state] += by
	if s.failed {
		g.failed += by
	}
}

// showAll looks at all gangs.
func (j *job) showAll() {
	j.gangs.shown = shown{}
	if j.stride() == 1 {
		return
	}
	g := &j.gangs.shown
	g.of = make([]standing, len(j.state)/j.stride())
	for n := range g.of {
		g.of[n] = j.standing(n * j.stride())
		g.count(g.of[n], 1)
	}
}

// tally counts the tasks of a job as its user knows them: how many there are, in which states, and how many have failed.
func (j *job) tally() (tasks int, counts [roost.Removed + 1]int, failed int) {
	if g := &j.gangs.shown; len(g.of) > 0 {
		return len(g.of), g.counts, g.failed
	}
	return len(j.state), j.counts, j.failed
}

// Numbers is how many tasks of a job there are in here, which for an array of gangs are more than its user knows.
func (q *Queue) Numbers(seq uint64) int {
	if j := q.jobs[seq]; j != nil {
		return len(j.state)
	}
	return 0
}

// checkShown panics when what is counted for users is wrong.
func (q *Queue) checkShown(j *job) {
	_, counts, failed := j.tally()
	again := *j
	again.showAll()
	if _, want, bad := again.tally(); counts != want || failed != bad {
		panic(fmt.Sprintf("queue: job %d shows %v, %d failed, and says %v, %d", j.seq, want, bad, counts, failed))
	}
}
