package queue

import (
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// Snapshot returns all that the queue knows of one job in its form on disk. It is false
// when the job is not in the queue.
func (q *Queue) Snapshot(seq uint64) ([]byte, bool) {
	j := q.jobs[seq]
	if j == nil {
		return nil, false
	}
	sub := j.submittedJob()
	sub.DeferredAdmission = q.deferredJobs[seq]
	s := eventlog.JobSnapshot{
		Submitted: eventlog.JobEvent{Type: eventlog.Submitted, Time: j.submitted, Job: j.seq, Submission: sub},
		States:    j.state, Records: j.records, Unblocked: !j.isBlocked() && !j.waitsByIndex(),
		FirstStarted: j.firstStarted,
		LastEnded:    j.lastEnded, OldAds: j.oldAds(), Waits: j.savedWaits(),
		Eligible: eventlog.EligibleTime(j.eligible),
		Damage:   eventlog.RecordDamage(j.distrust), RunOrders: j.savedOrders(), RunDenied: j.runDenied,
		Released: j.release().releasedRanges(), Update: j.update, Scale: j.scaled, Flow: savedFlow(j),
		Epochs: savedEpochs(j),
	}
	for i, w := range j.submission.dependencies {
		if !slices.Contains(j.dependencies, w) {
			s.Resolved = append(s.Resolved, i)
		}
	}
	if c := j.schedule; c != nil {
		s.LastTick = c.last
	}
	if j.orderRank != j.seq {
		s.OrderRank, s.OrderTime = j.orderRank, j.orderTime
	}
	return s.Append(nil), true
}

// oldAds lists what tasks began with, where the job has been altered since. Such tasks
// run, or are of an older revision.
func (j *job) oldAds() (list []eventlog.OldAd) {
	if !slices.ContainsFunc(j.classes, func(c *taskClass) bool { return c.oldAd != nil }) {
		return nil
	}
	var all []*oldAd
	tasks := map[*oldAd][]eventlog.IndexRange{}
	for i, s := range j.state {
		if p := j.class(i).oldAd; p != nil && !s.IsFinal() {
			if tasks[p] == nil {
				all = append(all, p)
			}
			tasks[p] = appendIndex(tasks[p], i)
		}
	}
	for _, p := range all {
		list = append(list, eventlog.OldAd{Ad: p.ad, Tasks: tasks[p]})
	}
	return list
}

// restoreState sets the state of a restored task, which may be any.
func (q *Queue) restoreState(j *job, i int, to roost.TaskState) {
	from := j.state[i]
	if from == to {
		return
	}
	j.state[i] = to
	j.gangs.taskMoved(i, from, to)
	j.counts[from]--
	j.counts[to]++
	q.stateTotals.move(j, from, to)
	j.updateUserState(i)
	if to.IsFinal() {
		q.countOpen(j, -1)
		j.class(i).open--
	}
	q.setReady(j, i, to == roost.Idle)
}
