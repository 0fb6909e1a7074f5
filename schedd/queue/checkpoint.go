package queue

import (
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
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
	s.OriginEpoch = 0
	if from != nil {
		s.OriginSequence, s.OriginUsage, s.OriginEpoch = from.Sequence, from.CPUUsage, from.Epoch
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
	switch e.Type {
	case eventlog.CheckpointBad:
		q.dropImage(j, e.Index, e.Image.Sequence)
		return
	case eventlog.GangSaved:
		q.gang().applyEpoch(j, e)
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
	if savesTogether(j) {
		q.gang().stageImage(j, e, s)
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
	if p.Checkpoint != nil && savesTogether(j) {
		p.Checkpoint.Interval = -1 // all of the gang are asked at once
	}
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
				if m := r.Checkpoints.Staged; m != nil {
					f(StoredImage{j.id(q.host).Task(i), *m})
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

// The tasks of a gang that save their own state are saved together, in epochs. In each
// the images of all tasks are of the same attempts:
//
//	staged      the image of one task is home; nothing goes on from it
//	committed   the images of all tasks are home: one event, GangSaved, makes them the
//	            epoch that the next attempts go on from, and drops the one before
//	failed      an attempt has ended without an image: what is staged is dropped, and the
//	            last committed epoch stays
//
// So of the tasks that are not final, either all have an image of the same committed
// epoch or none has one, and a half epoch is no saved work. A task that completes takes
// its image with it.

// savesTogether reports whether the tasks of a job are saved as gangs.
func savesTogether(j *job) bool {
	return j.gangs.size > 0 && !j.gangs.firstStartOnly && j.spec.SavedTogether()
}

// gangOf is the gang of a task, by its number in the job.
func gangOf(j *job, i int) int { return i / max(j.gangs.size, 1) }

// eachOfGang calls f with the tasks of a gang.
func eachOfGang(j *job, n int, f func(i int)) {
	for i := n * j.gangs.size; i < (n+1)*j.gangs.size; i++ {
		f(i)
	}
}

// stagedImage is the image of a task that its gang has yet to commit; nil for none.
func stagedImage(j *job, i int) *eventlog.CheckpointImage {
	if r := j.records.Own(i); r != nil && r.Checkpoints != nil {
		return r.Checkpoints.Staged
	}
	return nil
}

// ownEpoch is what is saved of a gang, to be written to.
func ownEpoch(j *job, n int) *eventlog.GangEpoch {
	x := j.ownExtras()
	if x.gangs.epochs == nil {
		x.gangs.epochs = map[int]*eventlog.GangEpoch{}
	}
	if x.gangs.epochs[n] == nil {
		x.gangs.epochs[n] = &eventlog.GangEpoch{Gang: n}
	}
	return x.gangs.epochs[n]
}

// stageImage takes in the image of a task of a gang. One that an earlier release recorded
// is of no epoch, and of no use.
func (q gangChanges) stageImage(j *job, e eventlog.JobEvent, s *eventlog.CheckpointRecord) {
	q.dropStaged(j, e.Index)
	image := *e.Image
	s.LastFailure, s.LastSequence = "", max(s.LastSequence, image.Sequence)
	n := gangOf(j, e.Index)
	if image.Epoch != ownEpoch(j, n).Last+1 || ownEpoch(j, n).Failed {
		q.dropOneImage(j, e.Index, image)
		return
	}
	s.Staged = &image
	q.noteStaged(j, n)
}

// noteStaged has it looked at whether an epoch of a gang is complete.
func (q gangChanges) noteStaged(j *job, n int) {
	if q.stagedGangs[j.seq] == nil {
		q.stagedGangs[j.seq] = map[int]bool{}
	}
	q.stagedGangs[j.seq][n] = true
}

// applyEpoch makes what is staged of a gang the epoch that it goes on from.
func (q gangChanges) applyEpoch(j *job, e eventlog.JobEvent) {
	n := gangOf(j, e.Index)
	g := ownEpoch(j, n)
	if !savesTogether(j) || e.Epoch != g.Last+1 {
		panic(fmt.Sprintf("queue: epoch %d of gang %d of job %d after epoch %d", e.Epoch, n, j.seq, g.Last))
	}
	*g = eventlog.GangEpoch{Gang: n, Saved: e.Epoch, Last: e.Epoch, Time: e.Time, Failed: g.Failed}
	eachOfGang(j, n, func(i int) {
		r := j.records.Own(i)
		if r == nil || r.Checkpoints == nil {
			return
		}
		s := r.Checkpoints
		for _, m := range s.Images {
			q.dropOneImage(j, i, m)
		}
		if s.Images = nil; s.Staged != nil {
			g.Tasks, g.Size, g.From = g.Tasks+1, g.Size+s.Staged.Size, s.OriginBefore(e.Epoch)
			g.Work = max(g.Work, s.Staged.Wall)
			s.Images, s.Staged, s.RestoreFailures = []eventlog.CheckpointImage{*s.Staged}, nil, 0
			r.MachineFailures = 0 // it gets on, however often its machines fail
		}
	})
}

// beginEpoch notes that a task of a gang begins an attempt. With the first of them the
// gang may save an epoch again.
func (q gangChanges) beginEpoch(j *job, i int) {
	if !savesTogether(j) {
		return
	}
	n, live := gangOf(j, i), 0
	eachOfGang(j, n, func(k int) {
		if r := j.records.Own(k); k != i && r != nil && r.Live {
			live++
		}
	})
	if live > 0 {
		return
	}
	if g := j.gangs.epochs[n]; g != nil {
		g.Failed = false
	}
	delete(j.gangs.askedAt, n)
	eachOfGang(j, n, func(k int) { q.dropStaged(j, k) })
	q.savingJobs[j.seq] = true
}

// noteEndForEpoch drops the epoch of a gang that one of its attempts leaves without an
// image. One that is to begin from nothing takes the others with it.
func (q gangChanges) noteEndForEpoch(j *job, e eventlog.JobEvent, fromNothing bool) {
	if !savesTogether(j) {
		return
	}
	n := gangOf(j, e.Index)
	if fromNothing {
		q.dropEpoch(j, n)
	}
	if succeeded := e.Exit != nil && e.Exit.IsSuccess(); fromNothing || !succeeded && stagedImage(j, e.Index) == nil {
		ownEpoch(j, n).Failed = true
		eachOfGang(j, n, func(k int) { q.dropStaged(j, k) })
	} else if succeeded { // it may be the one that the others waited for
		q.noteStaged(j, n)
	}
}

// joinEpoch takes in that a task of a gang is to run again. The epoch of the gang is
// dropped if the task has no part in it.
func (q gangChanges) joinEpoch(j *job, i int) {
	if !savesTogether(j) {
		return
	}
	g := j.gangs.epochs[gangOf(j, i)]
	if m := j.records.Get(i).NewestImage(); g != nil && g.Saved > 0 && (m == nil || m.Epoch != g.Saved) {
		q.dropEpoch(j, gangOf(j, i))
	}
}

// dropEpoch lets all images of a gang go: its next attempts begin from nothing.
func (q *pendingEffects) dropEpoch(j *job, n int) {
	ownEpoch(j, n).Saved = 0
	eachOfGang(j, n, func(i int) {
		q.dropStaged(j, i)
		if r := j.records.Own(i); r != nil && r.Checkpoints != nil {
			for _, m := range r.Checkpoints.Images {
				q.dropOneImage(j, i, m)
			}
			r.Checkpoints.Images, r.Checkpoints.RestoreFailures = nil, 0
		}
	})
}

// alterEpochs begins anew where a job has been altered so that its tasks are saved in
// another way.
func (q gangChanges) alterEpochs(j *job, before bool) {
	if before == savesTogether(j) {
		return
	}
	for n := range j.gangs.idleTasks {
		q.dropEpoch(j, n)
	}
	j.gangs.epochs = nil
}

// savedEpochs are the epochs of a job for its snapshot.
func savedEpochs(j *job) (list []eventlog.GangEpoch) {
	for _, n := range slices.Sorted(maps.Keys(j.gangs.epochs)) {
		list = append(list, *j.gangs.epochs[n])
	}
	return list
}

// restoreEpochs brings back what is saved of the gangs of a job. Images of no epoch are
// from an earlier release, and of different moments.
func (q gangChanges) restoreEpochs(j *job, saved []eventlog.GangEpoch) {
	if !savesTogether(j) {
		return
	}
	for _, g := range saved {
		if g.Gang >= len(j.gangs.idleTasks) {
			panic(fmt.Sprintf("an epoch of gang %d, of %d", g.Gang, len(j.gangs.idleTasks)))
		}
		*ownEpoch(j, g.Gang) = g
	}
	q.savingJobs[j.seq] = j.active > 0
	for i := range j.state {
		if m := j.records.Get(i).NewestImage(); m != nil && m.Epoch == 0 {
			q.dropEpoch(j, gangOf(j, i))
		}
		if stagedImage(j, i) != nil {
			q.noteStaged(j, gangOf(j, i))
		}
	}
}

// checkEpochs panics when the tasks of a gang would not go on from one committed epoch
// (G1). It also panics when that is not there (G3), or when a half epoch counts (G5).
func checkEpochs(j *job) {
	if !savesTogether(j) {
		return
	}
	for n := range j.gangs.idleTasks {
		g := j.gangs.epochs[n]
		if g == nil {
			g = &eventlog.GangEpoch{}
		}
		if g.From > 0 && g.From >= g.Last {
			panic(fmt.Sprintf("queue: gang %d of job %d saved epoch %d going on from %d", n, j.seq, g.Last, g.From))
		}
		origins := map[uint64]bool{}
		eachOfGang(j, n, func(i int) {
			r := j.records.Get(i)
			m, staged := r.NewestImage(), stagedImage(j, i)
			if m == nil && g.Saved > 0 && !j.state[i].IsFinal() || m != nil && m.Epoch != g.Saved ||
				m != nil && len(r.Checkpoints.Images) != 1 {
				panic(fmt.Sprintf("queue: gang %d of job %d goes on from epoch %d, and task %d from %+v", n, j.seq,
					g.Saved, i, m))
			}
			if staged != nil && (g.Failed || staged.Epoch != g.Last+1 || staged.Attempt != r.Attempt) {
				panic(fmt.Sprintf("queue: task %d of job %d has %+v staged, and its gang has %+v", i, j.seq, *staged,
					*g))
			}
			if r != nil && r.Live {
				origin := uint64(0)
				if r.Checkpoints != nil {
					origin = r.Checkpoints.OriginEpoch
				}
				origins[origin] = true
			}
		})
		if len(origins) > 1 {
			panic(fmt.Sprintf("queue: the tasks of gang %d of job %d run on from the epochs %v", n, j.seq, origins))
		}
	}
}
