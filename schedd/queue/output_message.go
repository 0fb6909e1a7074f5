package queue

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// OutputMessageTargets lists the attempts of a target's running tasks, into whose output
// a line may be written (POSIX, qmsg). That changes nothing here.
func (q taskDecisions) OutputMessageTargets(now time.Time, who CallerIdentity,
	t TaskSelector) (list []roost.AttemptID, err error) {
	running := func(s roost.TaskState) bool { return s == roost.Running || s == roost.Starting } // both are R in PBS
	if _, err := q.decideChange(now, who, t, eventlog.JobEvent{}, running); err != nil {
		return nil, err
	}
	j := q.jobs[t.Job.Seq]
	j.wholeGangs(t).eachIndex(len(j.state), func(i int) {
		if running(j.state[i]) && !j.isSecondary(i) {
			list = append(list, q.attemptOf(j, i))
		}
	})
	return list, nil
}
