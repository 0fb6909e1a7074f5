package queue

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/checkpoint"
	"github.com/roost-batch/roost/internal/mutant"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// What is decided of checkpoints, and of freezing.

// maxJobFailures bounds how many reasons an attempt may leave in the log for checkpoints
// that nobody asked for.
const maxJobFailures = 10

// HasCheckpoint reports whether a checkpoint of that number was recorded, of this or an
// earlier attempt of the task.
func (q *jobTable) HasCheckpoint(t roost.TaskID, sequence uint64) bool {
	j := q.jobs[t.Job.Seq]
	if j == nil {
		return false
	}
	r := j.records.Own(t.Index)
	return r != nil && r.Checkpoints != nil && sequence <= r.Checkpoints.LastSequence
}

// RecordCheckpoint decides that an image is good: it is on disk, or on a checkpoint
// server. One of an attempt that is not live any more gives roost.Stale, one that is no
// newer than the last gives roost.Conflict.
func (q attemptDecisions) RecordCheckpoint(now time.Time, a roost.AttemptID,
	m eventlog.CheckpointImage) (eventlog.JobEvent, error) {
	if !q.IsLive(a) {
		return eventlog.JobEvent{}, fmt.Errorf("checkpoint %d of attempt %v: %w", m.Sequence, a, roost.Stale)
	}
	if m.Sequence == 0 || q.HasCheckpoint(a.Task, m.Sequence) {
		return eventlog.JobEvent{}, fmt.Errorf("checkpoint %d of attempt %v: %w: there is a newer one", m.Sequence,
			a, roost.Conflict)
	}
	if j := q.jobs[a.Task.Job.Seq]; savesTogether(j) {
		var g eventlog.GangEpoch
		if p := j.gangs.epochs[gangOf(j, a.Task.Index)]; p != nil {
			g = *p
		}
		switch {
		case !m.SelfCheckpoint:
			return eventlog.JobEvent{}, fmt.Errorf("checkpoint %d of attempt %v: %w: the tasks of a gang save their "+
				"own state, and this is an image of processes", m.Sequence, a, roost.Invalid)
		case g.Failed:
			return eventlog.JobEvent{}, fmt.Errorf("checkpoint %d of attempt %v: %w: another task of its gang has "+
				"ended without saving its state", m.Sequence, a, roost.Conflict)
		}
		m.Epoch = g.Last + 1
	}
	e := eventAbout(now, eventlog.Checkpointed, a)
	m.Attempt = a.Attempt
	e.Image = &m
	return e, nil
}

// RecordCheckpointFailure decides that a checkpoint could not be taken, or not be kept.
// Unless somebody asked for it, the same reason is told once, and no more than
// maxJobFailures of them.
func (q attemptDecisions) RecordCheckpointFailure(now time.Time, a roost.AttemptID, reason string,
	asked bool) (eventlog.JobEvent, bool) {
	if !q.IsLive(a) {
		return eventlog.JobEvent{}, false
	}
	s := q.jobs[a.Task.Job.Seq].records.Own(a.Task.Index).Checkpoints
	if !asked && s != nil && (s.LastFailure == reason || s.Failures >= maxJobFailures) {
		return eventlog.JobEvent{}, false
	}
	e := eventAbout(now, eventlog.CheckpointFailed, a)
	e.Reason = reason
	return e, true
}

// RejectCheckpoint decides that a kept image cannot be used; false when it is not kept.
func (q attemptDecisions) RejectCheckpoint(now time.Time, t roost.TaskID, sequence uint64,
	reason string) (eventlog.JobEvent, bool) {
	j := q.jobs[t.Job.Seq]
	if j == nil {
		return eventlog.JobEvent{}, false
	}
	r := j.records.Own(t.Index)
	if r == nil || r.Checkpoints == nil || r.Checkpoints.FindImage(sequence) == nil {
		return eventlog.JobEvent{}, false
	}
	image := *r.Checkpoints.FindImage(sequence)
	return eventlog.JobEvent{
		Type: eventlog.CheckpointBad, Time: now.UnixNano(), Job: j.seq, Index: t.Index, Attempt: image.Attempt,
		Image:  &image,
		Reason: reason,
	}, true
}

// RejectOrigin decides that no machine can use the image that an attempt went on from.
// The result is false when the image is not stored.
func (q attemptDecisions) RejectOrigin(now time.Time, a roost.AttemptID,
	reason string) (eventlog.JobEvent, bool) {
	if !q.IsLive(a) {
		return eventlog.JobEvent{}, false
	}
	m := q.restoreImage(a)
	if m == nil {
		return eventlog.JobEvent{}, false
	}
	return q.RejectCheckpoint(now, a.Task, m.Sequence, reason)
}

// HasImages reports whether images of a job's tasks are kept.
func (q *jobTable) HasImages(seq uint64) bool {
	j := q.jobs[seq]
	if j == nil {
		return false
	}
	return j.records.HasImages()
}

// commitEpochs decides to commit the epochs of gangs of which the images of all tasks are
// home. Asking twice is harmless.
func (q gangChanges) commitEpochs(now time.Time) (events []eventlog.JobEvent) {
	for _, seq := range slices.Sorted(maps.Keys(q.stagedGangs)) {
		j := q.jobs[seq]
		for _, n := range slices.Sorted(maps.Keys(q.stagedGangs[seq])) {
			if j == nil || !savesTogether(j) {
				continue
			}
			if staged, complete := stagedEpoch(j, n); complete {
				epoch := ownEpoch(j, n).Last + 1
				e := eventlog.JobEvent{Type: eventlog.GangSaved, Time: now.UnixNano(), Job: seq,
					Index: n * j.gangs.size, Epoch: epoch}
				e.Ranges = []eventlog.IndexRange{{First: e.Index, Last: e.Index + j.gangs.size - 1}}
				e.Reason = fmt.Sprintf("epoch %d of the gang, from %s: the files of %d tasks are home, %v, %v of work",
					epoch, epochOrigin(staged.From), staged.Tasks, roost.Bytes(staged.Size),
					time.Duration(staged.Work).Round(time.Second))
				events = append(events, e)
			}
		}
		delete(q.stagedGangs, seq)
	}
	return events
}

// epochOrigin names what the attempts of a gang went on from.
func epochOrigin(epoch uint64) string {
	if epoch == 0 {
		return "the beginning"
	}
	return fmt.Sprintf("epoch %d", epoch)
}

// stagedEpoch reports whether all tasks of a gang have an image of their present
// attempts. It returns what the epoch of these images would be.
func stagedEpoch(j *job, n int) (g eventlog.GangEpoch, complete bool) {
	if g := j.gangs.epochs[n]; g == nil || g.Failed {
		return eventlog.GangEpoch{}, false
	}
	complete = true
	eachOfGang(j, n, func(i int) {
		if m := stagedImage(j, i); m != nil {
			g.Tasks, g.Size, g.Work = g.Tasks+1, g.Size+m.Size, max(g.Work, m.Wall)
			g.From = j.records.Own(i).Checkpoints.OriginBefore(m.Epoch)
		} else if !j.state[i].IsFinal() && !mutant.Active(mutant.HalfEpochSaved) {
			complete = false
		}
	})
	return g, complete && g.Tasks > 0
}

// EndsSaved reports whether an attempt has ended with the exit code that says that its
// program has saved its state.
func EndsSaved(q *Queue, a roost.AttemptID, x *eventlog.AttemptExit) bool {
	j := q.jobs[a.Task.Job.Seq]
	return j != nil && isRestartExit(j.spec.Checkpoints, x)
}

// SavesTogether reports whether a task is saved together with the others of its gang.
func SavesTogether(q *Queue, t roost.TaskID) bool {
	j := q.jobs[t.Job.Seq]
	return j != nil && savesTogether(j)
}

// NoteLeaving takes in that a live attempt is asked to save its state, as it has to leave
// its machine. The others of its gang are asked, too.
func NoteLeaving(q *Queue, a roost.AttemptID) {
	if !q.IsLive(a) {
		return
	}
	j := q.jobs[a.Task.Job.Seq]
	if g := j.gangs.epochs[gangOf(j, a.Task.Index)]; savesTogether(j) && j.spec.Checkpoints.OnVacate &&
		(g == nil || !g.Failed) {
		q.gang().vacateRestOfGang(j, a.Task.Index, true, fmt.Sprintf(
			"task %d of its gang has to leave its machine, and they are saved together", a.Task.Index%j.gangs.size))
	}
}

// gangMTBF is the assumed mean time between failures of one machine of a gang, and
// gangSaveCost how long a gang needs to save itself and to start again.
const (
	gangMTBF     = 14 * 24 * time.Hour
	gangSaveCost = 30 * time.Second
)

// GangsToSave lists the attempts of the gangs that are to save their state now. The
// interval of their jobs is over; each is listed once for each interval.
func GangsToSave(q *Queue, now time.Time) (list []roost.AttemptID) {
	if since := now.Sub(q.gangsLookedAt); since >= 0 && since < time.Second {
		return nil
	}
	q.gangsLookedAt = now
	for _, seq := range slices.Sorted(maps.Keys(q.savingJobs)) {
		j := q.jobs[seq]
		if j == nil || j.active == 0 || !savesTogether(j) || j.spec.Checkpoints.Signal == 0 {
			delete(q.savingJobs, seq)
			continue
		}
		every := j.spec.Checkpoints.PolicyFor(j.spec.Walltime, j.texts.secret(), 1)
		if every == nil || every.Interval < 0 {
			continue
		}
		interval := every.Interval
		if interval == 0 {
			interval = checkpoint.Interval(gangSaveCost, gangMTBF/time.Duration(j.gangs.size), 0, 0)
		}
		for n := range j.gangs.idleTasks {
			attempts, since := runningGang(q.jobTable, j, n)
			if since = max(since, j.gangs.askedAt[n]); len(attempts) > 0 && now.Sub(time.Unix(0, since)) >= interval {
				noteAsked(j, n, now)
				list = append(list, attempts...)
			}
		}
	}
	return list
}

// noteAsked notes that a gang is asked to save its state.
func noteAsked(j *job, n int, now time.Time) {
	x := j.ownExtras()
	if x.gangs.askedAt == nil {
		x.gangs.askedAt = map[int]int64{}
	}
	x.gangs.askedAt[n] = now.UnixNano()
}

// runningGang lists the attempts of a gang that can be saved now, and since when the last
// of them runs. All of its open tasks run then, and none was told to end.
func runningGang(q *jobTable, j *job, n int) (attempts []roost.AttemptID, since int64) {
	saveable := !j.gangs.splitCount.Has(n)
	if g := j.gangs.epochs[n]; g != nil && g.Failed {
		saveable = false
	}
	eachOfGang(j, n, func(i int) {
		switch r := j.records.Own(i); {
		case j.state[i].IsFinal():
		case j.state[i] != roost.Running || r == nil:
			saveable = false
		default:
			attempts, since = append(attempts, q.attemptOf(j, i)), max(since, r.Started)
		}
	})
	if !saveable {
		return nil, 0
	}
	return attempts, since
}

// CheckpointTargets lists the live attempts of a target of which a checkpoint may be
// asked for.
func (q taskDecisions) CheckpointTargets(now time.Time, who CallerIdentity,
	t TaskSelector) (list []roost.AttemptID, err error) {
	running := func(s roost.TaskState) bool { return s == roost.Running || s == roost.Suspended }
	if _, err := q.decideChange(now, who, t, eventlog.JobEvent{}, running); err != nil {
		return nil, err
	}
	j := q.jobs[t.Job.Seq]
	if j.spec.Checkpoints == nil || len(j.texts.secret()) == 0 {
		return nil, fmt.Errorf("%v: %w: its job says that no checkpoints are taken", t, roost.Conflict)
	}
	if savesTogether(j) {
		return q.gangTargets(now, j, t)
	}
	t.eachIndex(len(j.state), func(i int) {
		if running(j.state[i]) {
			list = append(list, q.attemptOf(j, i))
		}
	})
	return list, nil
}

// gangTargets lists the live attempts of the gangs that a target names tasks of. A gang
// is saved as a whole.
func (q taskDecisions) gangTargets(now time.Time, j *job, t TaskSelector) (list []roost.AttemptID, err error) {
	if j.spec.Checkpoints.Signal == 0 {
		return nil, fmt.Errorf("%v: %w: its job names no signal that asks its tasks to save their state; add signal = "+
			"\"USR2\" to the checkpoint block", t, roost.Conflict)
	}
	gangs := map[int]bool{}
	t.eachIndex(len(j.state), func(i int) {
		if !j.state[i].IsFinal() {
			gangs[gangOf(j, i)] = true
		}
	})
	for _, n := range slices.Sorted(maps.Keys(gangs)) {
		attempts, _ := runningGang(q.jobTable, j, n)
		if len(attempts) > 0 {
			noteAsked(j, n, now)
			list = append(list, attempts...)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%v: %w: a gang is saved while all of its tasks run; one of them starts, is suspended, "+
			"or has to leave: try again when roost show says that all run", t, roost.Conflict)
	}
	return list, nil
}
