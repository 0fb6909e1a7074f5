package queue

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// pendingEffects is what the schedd is to do next, until it takes it.
type pendingEffects struct {
	*jobTable
	changedJobs   map[uint64]bool // for those who watch
	unsavedJobs   map[uint64]bool // since the last checkpoint
	finalJobs     map[uint64]bool
	vacates       []VacateAttempt
	failing       map[roost.AttemptID]string // to start again, and why; "": a check for "live" has failed
	failingOrder  []roost.AttemptID          // those of failing, in order; some may not be there any more
	changedHosts  []roost.AttemptID          // attempts whose job has given machines back
	freezes       []FreezeAttempt
	changedLimits []AttemptLimits
	resizes       []AttemptResize
	droppedImages []StoredImage           // images that no attempt goes on from any more
	stagedGangs   map[uint64]map[int]bool // by job: gangs that may have an epoch to be committed
	savingJobs    map[uint64]bool         // whose gangs are asked to save their state from time to time
	gangsLookedAt time.Time               // when it was looked which of those are to be asked
}

func newPendingEffects(jobs *jobTable) *pendingEffects {
	return &pendingEffects{jobTable: jobs, changedJobs: map[uint64]bool{}, unsavedJobs: map[uint64]bool{},
		finalJobs: map[uint64]bool{}, failing: map[roost.AttemptID]string{}, stagedGangs: map[uint64]map[int]bool{},
		savingJobs: map[uint64]bool{}}
}

// VacateAttempt asks that an active attempt be ended.
type VacateAttempt struct {
	Attempt      roost.AttemptID
	Fast         bool
	Checkpoint   bool // its work, in a checkpoint
	ReleaseClaim bool // no other attempt is to begin there
	Reason       string
}

// TakeChanged drains the jobs of which something has changed.
func (q *pendingEffects) TakeChanged() []roost.JobID {
	var ids []roost.JobID
	for _, seq := range takeAll(&q.changedJobs) {
		ids = append(ids, roost.JobID{Seq: seq, Host: q.host})
	}
	return ids
}

// TakeVacates drains the attempts that are to be ended.
func (q *pendingEffects) TakeVacates() []VacateAttempt {
	out := q.vacates
	q.vacates = nil
	return out
}

// TakeFinal drains the jobs that have become final since the last call.
func (q *pendingEffects) TakeFinal() []uint64 { return takeAll(&q.finalJobs) }

func takeAll[K cmp.Ordered](set *map[K]bool) []K {
	if len(*set) == 0 {
		return nil
	}
	keys := slices.Sorted(maps.Keys(*set))
	*set = map[K]bool{}
	return keys
}

// FreezeAttempt asks that a running attempt be frozen, or thawed.
type FreezeAttempt struct {
	Attempt roost.AttemptID
	Frozen  bool
}

// TakeFreezes drains the attempts that are to be frozen or thawed.
func (q *pendingEffects) TakeFreezes() []FreezeAttempt {
	out := q.freezes
	q.freezes = nil
	return out
}

// TakeChangedLimits drains the attempts that have other limits now.
func (q *pendingEffects) TakeChangedLimits() []AttemptLimits {
	out := q.changedLimits
	q.changedLimits = nil
	return out
}

// StoredImage is an image as it lies on a disk.
type StoredImage struct {
	Task roost.TaskID
	eventlog.CheckpointImage
}

// dropOneImage lets an image go.
func (q *pendingEffects) dropOneImage(j *job, i int, m eventlog.CheckpointImage) {
	q.droppedImages = append(q.droppedImages, StoredImage{j.id(q.host).Task(i), m})
}

// dropAllImages lets all images of a task go.
func (q *pendingEffects) dropAllImages(j *job, i int) {
	r := j.records.Own(i)
	if r == nil || r.Checkpoints == nil {
		return
	}
	for _, m := range r.Checkpoints.Images {
		q.dropOneImage(j, i, m)
	}
	q.dropStaged(j, i)
	r.Checkpoints.Images = nil
	if r.Checkpoints.OriginSequence == 0 && r.Checkpoints.UncountedWall == 0 {
		r.Checkpoints = nil // nothing of it will be asked for again
	}
}

// dropStaged lets the image of a task go that its gang has no epoch for.
func (q *pendingEffects) dropStaged(j *job, i int) {
	if m := stagedImage(j, i); m != nil {
		q.dropOneImage(j, i, *m)
		j.records.Own(i).Checkpoints.Staged = nil
	}
}

// TakeDroppedImages drains the images that no attempt will go on from any more. They can
// be deleted when what has been decided is on disk.
func (q *pendingEffects) TakeDroppedImages() []StoredImage {
	out := q.droppedImages
	q.droppedImages = nil
	return out
}

// dropImage takes an image out that cannot be used.
func (q *pendingEffects) dropImage(j *job, i int, sequence uint64) {
	r := j.records.Own(i)
	if r == nil || r.Checkpoints == nil {
		return
	}
	if savesTogether(j) {
		q.dropEpoch(j, gangOf(j, i))
		return
	}
	for k, m := range r.Checkpoints.Images {
		if m.Sequence == sequence {
			q.dropOneImage(j, i, m)
			r.Checkpoints.Images = append(append([]eventlog.CheckpointImage(nil), r.Checkpoints.Images[:k]...),
				r.Checkpoints.Images[k+1:]...)
			r.Checkpoints.RestoreFailures = 0
			return
		}
	}
}

// TakeUnsaved drains the jobs that have changed since the last checkpoint. A job that is
// not in the queue any more is among them: its snapshot is to be deleted.
func (q *pendingEffects) TakeUnsaved() []uint64 { return takeAll(&q.unsavedJobs) }
