package audit

import (
	"slices"

	"github.com/roost-batch/roost"
)

// job is what is known of one.
type job struct {
	id        roost.JobID
	key       string
	printed   bool
	left      bool
	resources roost.Resources // of each task
	tasks     []task
}

// seeJob holds jobs against P1 and P2.
func (a *Auditor) seeJob(s *Seen) {
	switch s.What {
	case Recovered:
		a.recovered(s)
		return
	case Left:
		a.left(s)
		return
	}
	if first, ok := a.keys[s.Key]; ok && first != s.Job {
		a.breach(2, ofJob(first, s.Job), "the key %s has made %v and %v", s.Key, first, s.Job)
	} else {
		a.keys[s.Key] = s.Job
	}
	j := a.jobs[s.Job]
	if j == nil {
		j = &job{id: s.Job, key: s.Key, resources: s.Resources, tasks: make([]task, max(s.Tasks, 1))}
		a.jobs[s.Job] = j
	} else if j.key != s.Key {
		a.breach(1, ofJob(s.Job), "%v was the job of the key %s, and is that of the key %s now", s.Job, j.key, s.Key)
	}
	j.printed = j.printed || s.What == Printed
}

// recovered holds what a schedd has read from its disk against what users were shown.
func (a *Auditor) recovered(s *Seen) {
	for _, j := range a.sorted() {
		if j.id.Host == s.Node && j.printed && !slices.Contains(s.Jobs, j.id) {
			a.breach(1, ofJob(j.id), "%v was shown to a user, and the schedd knows nothing of it", j.id)
		}
	}
}

// left holds against P1 that a job goes into the history when all its tasks have come to their end, and not before.
func (a *Auditor) left(s *Seen) {
	j := a.jobs[s.Job]
	if j == nil {
		return
	}
	j.left = true
	for i := range j.tasks {
		if j.tasks[i].open() {
			a.breach(1, ofTask(s.Job.Task(i)), "%v leaves the queue, and its task %d has not come to an end", s.Job, i)
			return
		}
	}
}

// sorted lists the jobs in order.
func (a *Auditor) sorted() []*job {
	all := make([]*job, 0, len(a.jobs))
	for _, j := range a.jobs {
		all = append(all, j)
	}
	slices.SortFunc(all, func(x, y *job) int { return x.id.Compare(y.id) })
	return all
}
