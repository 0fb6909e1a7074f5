package queue

import (
	"fmt"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// RestoreSnapshot puts a job back that Snapshot wrote down. After an error the queue is
// of no use.
func (q *Queue) RestoreSnapshot(snapshot []byte) (err error) {
	defer recoverInvalid(&err)
	s, err := eventlog.DecodeSnapshot(snapshot)
	if err != nil {
		return err
	}
	return q.RestoreJob(s)
}

// recoverInvalid makes an error of a panic, of a snapshot that contradicts itself within
// the job's own ad and columns.
func recoverInvalid(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("snapshot of a job: %w: %v", roost.Invalid, r)
	}
}

// RestoreJob puts a job back whose snapshot is decoded. After an error the queue is of no
// use.
func (q *Queue) RestoreJob(s *eventlog.JobSnapshot) (err error) {
	defer recoverInvalid(&err)
	if q.jobs[s.Submitted.Job] != nil {
		return fmt.Errorf("snapshot of a job: %w: job %d is there twice", roost.Invalid, s.Submitted.Job)
	}
	q.restoreJob(s)
	return nil
}

// restoreJob admits the job anew and brings its tasks to where they stood.
func (q *Queue) restoreJob(s *eventlog.JobSnapshot) {
	q.eventTime = s.Submitted.Time
	q.applySubmitted(s.Submitted)
	j := q.jobs[s.Submitted.Job]
	if c := j.schedule; c != nil {
		c.last = s.LastTick
	}
	if s.Unblocked {
		q.applyUnblocked(j)
	}
	if len(s.Resolved) > 0 {
		j.ownExtras().dependencies = nil
		for i, w := range j.submission.dependencies {
			if !s.Unblocked && w.Type.Blocks() && !slices.Contains(s.Resolved, i) {
				j.dependencies = append(j.dependencies, w)
			}
		}
	}
	q.dependencies().restoreDependencies(j, &s.Waits, s.Unblocked)
	j.records, j.firstStarted, j.lastEnded = s.Records, s.FirstStarted, s.LastEnded
	if s.RunDenied != "" {
		j.ownExtras().runDenied = s.RunDenied
	}
	if len(s.RunOrders) > 0 {
		j.ownExtras().restoreOrders(s.RunOrders)
	}
	j.release().restoreReleased(s.Released)
	serviceTasks{j}.restore()
	if s.Update != nil {
		j.ownExtras().update = s.Update
		q.markUpdate(j)
	}
	if s.Scale != nil {
		j.ownExtras().scaled = s.Scale
	}
	if n := taskCount(j); n < len(j.state) {
		j.ownExtras().tasksToRun = int32(n + serviceTasks{j}.surge())
	}
	if s.OrderRank != 0 {
		q.setOrderRank(j, s.OrderRank, s.OrderTime)
	}
	for _, p := range s.OldAds {
		before := &oldAd{ad: p.Ad}
		for _, r := range p.Tasks {
			for i := r.First; i <= r.Last; i++ {
				if r := j.records.Own(i); (r == nil || !r.Live) && !revisionsOf(j).retainsRevision(i) {
					panic(fmt.Sprintf("task %d has a past, and does not run", i))
				}
				q.pinOldClass(j, i, before)
			}
		}
	}
	flowChanges{q}.restore(j, s.Flow)
	q.batchReady(j, func() { q.restoreStates(j, s.States) })
	q.gang().restoreEpochs(j, s.Epochs)
	j.eligible.restore(j, s.Eligible)
	if s.Damage != (eventlog.RecordDamage{}) {
		j.ownExtras().distrust = recordDamage(s.Damage)
	}
	if j.isFinal() {
		q.finalJobs[j.seq] = true
	}
	delete(q.unsavedJobs, j.seq)
}

// restoreStates brings the tasks of a restored job to their states.
func (q *Queue) restoreStates(j *job, states []roost.TaskState) {
	for i, to := range states {
		r := j.records.Own(i)
		if live := r != nil && r.Live; live != to.IsActive() {
			panic(fmt.Sprintf("task %d is %v, and its attempt is live: %v", i, to, live))
		}
		q.restoreState(j, i, to)
		q.updateRestoreClass(j, i)
		if r != nil && r.Service != nil && r.Service.Waits {
			if to != roost.Blocked || r.Exit == nil {
				panic(fmt.Sprintf("task %d is %v, and waits for its restart", i, to))
			}
			q.addRestart(j, i, r.Service.NotBefore)
		}
		if to.IsActive() {
			j.active++
			if size, ok := q.WantedSize(q.attemptOf(j, i)); ok {
				q.resizes = append(q.resizes, size)
			}
			if r.RemoveWanted {
				q.vacates = append(q.vacates, VacateAttempt{Attempt: q.attemptOf(j, i), Fast: r.Force,
					Reason: r.Reason})
			} else if t := revisionsOf(j).taskRevision(i); t != nil && t.Stopping {
				q.vacates = append(q.vacates, VacateAttempt{Attempt: q.attemptOf(j, i), Reason: replacedReason(j)})
			} else if r.RequeueWanted {
				q.vacates = append(q.vacates, VacateAttempt{Attempt: q.attemptOf(j, i), Fast: true,
					Reason: requeuedReason})
			} else if r.HoldWanted {
				q.vacates = append(q.vacates, VacateAttempt{Attempt: q.attemptOf(j, i),
					Checkpoint: j.spec.Checkpoints != nil && j.spec.Checkpoints.OnVacate, Reason: r.HoldReason})
			} else if s := r.Service; s != nil && s.RestartOf == r.Attempt {
				q.vacates = append(q.vacates, healthVacate(q.attemptOf(j, i), s.Detail))
			} else if j.released[i] {
				q.vacates = append(q.vacates, VacateAttempt{Attempt: q.attemptOf(j, i), Reason: releasedReason})
			}
		}
		if to == roost.Completed && !j.records.HasSucceeded(i) {
			j.failed++
		}
	}
}
