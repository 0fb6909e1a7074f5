package queue

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// This is how checkpoints move the state: which images of a task are good, what its next
// attempt goes on from, and how much of its work that is.
//
// An image is recorded when it is on disk, and only while the attempt lives that it was
// taken of. An attempt goes on from the newest good image there is when it is assigned.
// When it ends because that image could not be restored, the image is bad: the task goes
// on from the one before, and then from nothing. That is nobody's failure, and each time
// there is one image less.

// setOrigin notes what a new attempt goes on from.
func setOrigin(r *taskRecord, from *CheckpointImage) {
	if from == nil && r.checkpoints == nil {
		return
	}
	s := r.ownCheckpoints()
	s.originSequence, s.originUsage, s.frozen, s.lastFailure, s.failures = 0, CPUUsage{}, false, "", 0
	if from != nil {
		s.originSequence, s.originUsage = from.Sequence, from.CPUUsage
	} else {
		s.uncountedWall = 0
	}
}

// applyCheckpointEvent takes in what became of a checkpoint.
func (q *Queue) applyCheckpointEvent(j *job, e JobEvent) {
	if e.Type == CheckpointBad {
		q.dropImage(j, e.Index, e.Image.Sequence)
		return
	}
	r := j.records.own(e.Index)
	if r == nil || !r.live || r.attempt != e.Attempt {
		panic(fmt.Sprintf("queue: %v of attempt %d of %v, which is not live", e.Type, e.Attempt,
			j.id(q.host).Task(e.Index)))
	}
	s := r.ownCheckpoints()
	if e.Type == CheckpointFailed {
		s.lastFailure = e.Reason
		s.failures++
		return
	}
	s.lastFailure, s.lastSequence = "", max(s.lastSequence, e.Image.Sequence)
	r.machineFailures = 0 // it gets on, however often its machines fail
	s.images = append(s.images, *e.Image)
	for len(s.images) > maxImages {
		q.dropOneImage(j, e.Index, s.images[0])
		s.images = append([]CheckpointImage(nil), s.images[1:]...)
	}
}

// isRestartExit reports whether a program ended in the way that says: saved, start me
// again.
func isRestartExit(s *jobad.CheckpointSettings, x *AttemptExit) bool {
	return s != nil && s.Self && s.ExitCode != 0 && x.Cause == CauseExited && x.Signal == 0 && x.Code == s.ExitCode
}

// A task that asks again and again to be started anew, each time within minRestartRun, is
// held after maxQuickRestarts times: it does not get on.
const (
	minRestartRun    = 5 * time.Second
	maxQuickRestarts = 50
)

// countRestart is for an attempt that wants to be started again.
func countRestart(r *taskRecord, x *AttemptExit) *taskRecord {
	s := r.ownCheckpoints()
	if s.quickRestarts++; time.Duration(x.Wall) >= minRestartRun {
		s.quickRestarts = 0
	}
	if s.quickRestarts >= maxQuickRestarts && !r.holdWanted {
		s.quickRestarts = 0
		r.holdWanted, r.holdReason = true,
			fmt.Sprintf("it ended with exit code %d, to be started again, %d times in a row within %v of its start",
				x.Code, maxQuickRestarts, minRestartRun)
	}
	return r
}

// resetWalltime lets the walltime begin anew with what is kept.
func resetWalltime(r *taskRecord) *taskRecord {
	if m := r.newestImage(); m != nil {
		r.checkpoints.uncountedWall = m.Wall
	}
	return r
}

// applySuspension has a user suspend a running task, or let it go on as far as he is
// concerned, and asks for what that means.
func (q *Queue) applySuspension(j *job, i int, on bool) {
	s := j.state[i]
	if s != roost.Running && s != roost.Suspended || j.suspendedByUser(i) == on {
		return
	}
	r := j.records.makeOwn(i)
	r.ownCheckpoints().frozen = true
	switch {
	case r.ownerReason != "":
		r.alsoByUser = on
	case on:
		q.setTaskState(j, i, roost.Suspended)
	default:
		q.setTaskState(j, i, roost.Running)
	}
	if on || !j.suspendedWithGang(i) {
		q.freezes = append(q.freezes, FreezeAttempt{q.attemptOf(j, i), on})
	}
}

// WantFrozen tells how a live attempt is to be, once somebody has suspended it; false
// when nobody ever has.
func (q *jobTable) WantFrozen(a roost.AttemptID) (FreezeAttempt, bool) {
	if !q.IsLive(a) {
		return FreezeAttempt{}, false
	}
	j := q.jobs[a.Task.Job.Seq]
	r := j.records.own(a.Task.Index)
	if r.checkpoints == nil || !r.checkpoints.frozen {
		return FreezeAttempt{}, false
	}
	return FreezeAttempt{a, j.suspendedByUser(a.Task.Index) || j.suspendedWithGang(a.Task.Index)}, true
}

// restoreImage is what the present attempt of a task goes on from, nil for nothing.
func (q *jobTable) restoreImage(a roost.AttemptID) *CheckpointImage {
	j := q.jobs[a.Task.Job.Seq]
	r := j.records.own(a.Task.Index)
	if r == nil || r.checkpoints == nil || r.attempt != a.Attempt || r.checkpoints.originSequence == 0 {
		return nil
	}
	m := r.checkpoints.findImage(r.checkpoints.originSequence)
	if m == nil {
		return nil
	}
	image := *m
	return &image
}

// minWalltime is what an attempt gets that went on from an image with nearly all of its
// walltime in it.
const minWalltime = time.Second

// addCheckpointing completes a program with what checkpoints ask for. The walltime limits
// the work of a task, that in its image included: the attempt gets what is left.
func (q programBuilder) addCheckpointing(j *job, a roost.AttemptID, p *TaskProgram) {
	var s *checkpoints
	if r := j.records.own(a.Task.Index); r != nil {
		s = r.checkpoints
	}
	next := uint64(1)
	if s != nil {
		next = s.lastSequence + 1
	}
	p.Checkpoint = j.spec.Checkpoints.PolicyFor(p.Walltime, imageKey(j.submission.Secret, a.Task.Index, a.Attempt),
		next)
	if s == nil {
		return
	}
	if p.Restore = q.restoreImage(a); p.Restore != nil {
		p.RestoreKey = imageKey(j.submission.Secret, a.Task.Index, p.Restore.Attempt)
	}
	if s.originSequence == 0 {
		return
	}
	done := time.Duration(s.originUsage.Wall - s.uncountedWall)
	if p.Walltime > 0 {
		p.Walltime = max(p.Walltime-done, minWalltime)
	}
	if p.Bounds.CPU > 0 {
		p.Bounds.CPU = max(p.Bounds.CPU-time.Duration(s.originUsage.User+s.originUsage.System), minWalltime)
	}
	if p.PredictedRuntime > 0 {
		p.PredictedRuntime = max(p.PredictedRuntime-done, minWalltime)
	}
}

// EachImage calls f with every good image.
func (q *jobTable) EachImage(f func(StoredImage)) {
	for _, j := range q.jobs {
		if !j.records.hasOwn() {
			continue
		}
		for i := range j.state {
			if r := j.records.own(i); r != nil && r.checkpoints != nil {
				for _, m := range r.checkpoints.images {
					f(StoredImage{j.id(q.host).Task(i), m})
				}
			}
		}
	}
}
