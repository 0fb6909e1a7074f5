package queue

import (
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/checkpoint"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// This is how checkpoints move the state: which images of a task are good, what its next
// attempt goes on from, and how much of its work that is.
//
// An image is recorded when it is on disk, and only while the attempt lives that it was
// taken of. An attempt goes on from the newest good image there is when it is assigned.
// When checkpoint.MaxRestoreFailures attempts could not be restored from that image, the
// image is bad: the task goes on from the one before, and then from nothing.
// That is nobody's failure. One failure can be the machine's, and the image is hours of
// work, so it is tried again.

// setOrigin notes what a new attempt goes on from.
func setOrigin(r *eventlog.TaskRecord, from *eventlog.CheckpointImage) {
	if from == nil && r.Checkpoints == nil {
		return
	}
	s := r.OwnCheckpoints()
	s.OriginSequence, s.OriginUsage, s.Frozen, s.LastFailure, s.Failures = 0, eventlog.CPUUsage{}, false, "", 0
	if from != nil {
		s.OriginSequence, s.OriginUsage = from.Sequence, from.CPUUsage
	} else {
		s.UncountedWall = 0
	}
}

// countRestoreFailure counts that an attempt could not be restored, and drops the image
// when that was one time too many.
func (q *Queue) countRestoreFailure(j *job, i int, s *eventlog.CheckpointRecord) {
	if s.RestoreFailures++; s.RestoreFailures >= checkpoint.MaxRestoreFailures {
		q.dropImage(j, i, s.OriginSequence)
	}
}

// applyCheckpointEvent takes in what became of a checkpoint.
func (q *Queue) applyCheckpointEvent(j *job, e eventlog.JobEvent) {
	if e.Type == eventlog.CheckpointBad {
		q.dropImage(j, e.Index, e.Image.Sequence)
		return
	}
	r := j.records.Own(e.Index)
	if r == nil || !r.Live || r.Attempt != e.Attempt {
		panic(fmt.Sprintf("queue: %v of attempt %d of %v, which is not live", e.Type, e.Attempt,
			j.id(q.host).Task(e.Index)))
	}
	s := r.OwnCheckpoints()
	if e.Type == eventlog.CheckpointFailed {
		s.LastFailure = e.Reason
		s.Failures++
		return
	}
	s.LastFailure, s.LastSequence, s.RestoreFailures = "", max(s.LastSequence, e.Image.Sequence), 0
	r.MachineFailures = 0 // it gets on, however often its machines fail
	s.Images = append(s.Images, *e.Image)
	for len(s.Images) > eventlog.MaxImages {
		q.dropOneImage(j, e.Index, s.Images[0])
		s.Images = append([]eventlog.CheckpointImage(nil), s.Images[1:]...)
	}
}

// isRestartExit reports whether a program ended in the way that says: saved, start me
// again.
func isRestartExit(s *jobad.CheckpointSettings, x *eventlog.AttemptExit) bool {
	return s != nil && s.Self && s.ExitCode != 0 && x.Cause == eventlog.CauseExited && x.Signal == 0 &&
		x.Code == s.ExitCode
}

// A task that asks again and again to be started anew, each time within minRestartRun, is
// held after maxQuickRestarts times: it does not get on.
const (
	minRestartRun    = 5 * time.Second
	maxQuickRestarts = 50
)

// countRestart is for an attempt that wants to be started again.
func countRestart(r *eventlog.TaskRecord, x *eventlog.AttemptExit) *eventlog.TaskRecord {
	s := r.OwnCheckpoints()
	if s.QuickRestarts++; time.Duration(x.Wall) >= minRestartRun {
		s.QuickRestarts = 0
	}
	if s.QuickRestarts >= maxQuickRestarts && !r.HoldWanted {
		s.QuickRestarts = 0
		r.HoldWanted, r.HoldReason = true,
			fmt.Sprintf("it ended with exit code %d, to be started again, %d times in a row within %v of its start",
				x.Code, maxQuickRestarts, minRestartRun)
	}
	return r
}

// resetWalltime lets the walltime begin anew with what is kept.
func resetWalltime(r *eventlog.TaskRecord) *eventlog.TaskRecord {
	if m := r.NewestImage(); m != nil {
		r.Checkpoints.UncountedWall = m.Wall
	}
	return r
}

// restoreImage is what the present attempt of a task goes on from, nil for nothing.
func (q *jobTable) restoreImage(a roost.AttemptID) *eventlog.CheckpointImage {
	j := q.jobs[a.Task.Job.Seq]
	r := j.records.Own(a.Task.Index)
	if r == nil || r.Checkpoints == nil || r.Attempt != a.Attempt || r.Checkpoints.OriginSequence == 0 {
		return nil
	}
	m := r.Checkpoints.FindImage(r.Checkpoints.OriginSequence)
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
	var s *eventlog.CheckpointRecord
	if r := j.records.Own(a.Task.Index); r != nil {
		s = r.Checkpoints
	}
	next := uint64(1)
	if s != nil {
		next = s.LastSequence + 1
	}
	p.Checkpoint = j.spec.Checkpoints.PolicyFor(p.Walltime, imageKey(j.texts.secret(), a.Task.Index, a.Attempt),
		next)
	if s == nil {
		return
	}
	if p.Restore = q.restoreImage(a); p.Restore != nil {
		p.RestoreKey = imageKey(j.texts.secret(), a.Task.Index, p.Restore.Attempt)
	}
	if s.OriginSequence == 0 {
		return
	}
	done := time.Duration(s.OriginUsage.Wall - s.UncountedWall)
	if p.Walltime > 0 {
		p.Walltime = max(p.Walltime-done, minWalltime)
	}
	if p.Bounds.CPU > 0 {
		p.Bounds.CPU = max(p.Bounds.CPU-time.Duration(s.OriginUsage.User+s.OriginUsage.System), minWalltime)
	}
	if p.PredictedRuntime > 0 {
		p.PredictedRuntime = max(p.PredictedRuntime-done, minWalltime)
	}
}

// EachImage calls f with every good image.
func (q *jobTable) EachImage(f func(StoredImage)) {
	for _, j := range q.jobs {
		if !j.records.HasOwn() {
			continue
		}
		for i := range j.state {
			if r := j.records.Own(i); r != nil && r.Checkpoints != nil {
				for _, m := range r.Checkpoints.Images {
					f(StoredImage{j.id(q.host).Task(i), m})
				}
			}
		}
	}
}

// Sizes of a job's secret, in bytes. One of SecretSize has a key for each attempt; one of
// sharedSize, as earlier releases made it, is the key of all.
const (
	SecretSize = 64
	sharedSize = 32
)

// imageKey derives the key of an attempt's images from its job's secret. A node that has
// run an attempt can read no image of another, unless it was to go on from it, and can
// make none. A job without a secret has no keys.
func imageKey(secret []byte, index int, a roost.AttemptNumber) []byte {
	if len(secret) <= sharedSize {
		return secret
	}
	key, err := hkdf.Key(sha256.New, secret, nil, fmt.Sprintf("Roost images of task %d, attempt %d", index, a),
		sharedSize)
	if err != nil {
		panic(fmt.Sprintf("the key of an image: %v", err)) // it is too long for HKDF, which it never is
	}
	return key
}
