package queue

import (
	"time"

	"github.com/roost-batch/roost"
)

// Hearing lists the attempts of a target's running tasks, into whose output a line may be written (POSIX, qmsg). That changes nothing here.
func (q *Queue) Hearing(now time.Time, who Submitter, t Target) (list []roost.AttemptID, err error) {
	running := func(s roost.TaskState) bool { return s == roost.Running || s == roost.Starting } // both are R in PBS
	if _, err := q.change(now, who, t, Event{}, running); err != nil {
		return nil, err
	}
	j := q.jobs[t.Job.Seq]
	j.whole(t).each(len(j.state), func(i int) {
		if running(j.state[i]) && !j.follows(i) {
			list = append(list, q.attemptOf(j, i))
		}
	})
	return list, nil
}
