package queue

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
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
func (r *taskRecord) setOrigin(from *CheckpointImage) {
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

// dropImage takes an image out that cannot be used.
func (q *Queue) dropImage(j *job, i int, sequence uint64) {
	r := j.records.own(i)
	if r == nil || r.checkpoints == nil {
		return
	}
	for k, m := range r.checkpoints.images {
		if m.Sequence == sequence {
			q.dropOneImage(j, i, m)
			r.checkpoints.images = append(append([]CheckpointImage(nil), r.checkpoints.images[:k]...),
				r.checkpoints.images[k+1:]...)
			return
		}
	}
}

// isRestartExit reports whether a program ended in the way that says: saved, start me
// again.
func (s *checkpointSettings) isRestartExit(x *AttemptExit) bool {
	return s != nil && s.Self && s.ExitCode != 0 && x.Cause == CauseExited && x.Signal == 0 && x.Code == s.ExitCode
}

// A task that asks again and again to be started anew, each time within minRestartRun, is
// held after maxQuickRestarts times: it does not get on.
const (
	minRestartRun    = 5 * time.Second
	maxQuickRestarts = 50
)

// countRestart is for an attempt that wants to be started again.
func (r *taskRecord) countRestart(x *AttemptExit) *taskRecord {
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
func (r *taskRecord) resetWalltime() *taskRecord {
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
	r := j.ownRecord(i)
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

// FreezeAttempt asks that a running attempt be frozen, or thawed.
type FreezeAttempt struct {
	Attempt roost.AttemptID
	Frozen  bool
}

// TakeFreezes drains the attempts that are to be frozen or thawed.
func (q *Queue) TakeFreezes() []FreezeAttempt {
	out := q.freezes
	q.freezes = nil
	return out
}

// WantFrozen tells how a live attempt is to be, once somebody has suspended it; false
// when nobody ever has.
func (q *Queue) WantFrozen(a roost.AttemptID) (FreezeAttempt, bool) {
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
func (q *Queue) restoreImage(a roost.AttemptID) *CheckpointImage {
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
func (q *Queue) addCheckpointing(j *job, a roost.AttemptID, p *TaskProgram) {
	var s *checkpoints
	if r := j.records.own(a.Task.Index); r != nil {
		s = r.checkpoints
	}
	p.Checkpoint = j.spec.checkpoints.policyFor(p.Walltime, imageKey(j.submission.Secret, a.Task.Index, a.Attempt), s)
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

// updateRestoreClass puts a task among those that want a machine which can restore
// images, or back. A task that is being run stays where it was when it was assigned.
func (q *Queue) updateRestoreClass(j *job, i int) {
	r := j.records.own(i)
	restores := false
	switch {
	case r == nil || j.spec.checkpoints == nil || j.spec.checkpoints.Self: // files go anywhere
	case r.live:
		restores = r.checkpoints != nil && r.checkpoints.originSequence != 0
	default:
		restores = r.newestImage() != nil
	}
	slot := false
	if restores {
		m := r.newestImage()
		if r.live && r.checkpoints.findImage(r.checkpoints.originSequence) != nil {
			m = r.checkpoints.findImage(r.checkpoints.originSequence)
		}
		slot = m != nil && m.SlotUser
	}
	c := j.class(i)
	if c.oldAd != nil {
		if r != nil && r.live {
			return
		}
		q.assignClass(j, i, j.idleClass(i)) // it runs no more, and is what its job is now
		c = j.class(i)
	}
	if now := j.whereNow(i); c.spec.needsRestore != restores || c.spec.slotUser != slot || c.spec.now != now {
		q.assignClass(j, i, q.restoreClassOf(j, c, restores, slot, now))
	}
}

// restoreClassOf finds or makes the class that is as another, but for what it wants to
// restore, and whether and where it is to run now.
func (q *Queue) restoreClassOf(j *job, c *taskClass, restores, slot bool, now string) uint16 {
	first := c
	if c.twin != nil {
		first = c.twin
	}
	for n, other := range j.classes {
		if (other == first || other.twin == first) && other.spec.needsRestore == restores &&
			other.spec.slotUser == slot && other.spec.now == now {
			return uint16(n)
		}
	}
	p := *c.spec
	p.needsRestore, p.slotUser, p.now = restores, slot, now
	q.addClass(j, &p)
	j.classes[len(j.classes)-1].twin = first
	return uint16(len(j.classes) - 1)
}
