package queue

import (
	"errors"
	"fmt"
	"slices"

	"github.com/roost-batch/roost"
)

// snapshotDecoder is a snapshot taken apart.
type snapshotDecoder struct {
	admitted                JobEvent
	states                  []roost.TaskState
	records                 taskRecords
	unblocked               bool // not blocked
	resolved                []int
	firstStarted, lastEnded int64
	orderRank               uint64 // 0: the job's number
	orderTime               int64
	oldAds                  []savedOldAd
	eligible                eligibleTime
	distrust                recordDamage
	orders                  []savedOrder
	denied                  string
	dependencies
}

// savedOldAd is what some tasks began with.
type savedOldAd struct {
	ad    string
	tasks []IndexRange
}

func (p *savedOldAd) decode(b []byte, tasks int) error {
	return eachField(b, func(f encodedField) error {
		switch f.number {
		case 1:
			p.ad = string(f.bytes)
		case 2:
			r, err := decodeRange(f.bytes)
			if err == nil && (r.First < 0 || r.Last < r.First || r.Last >= tasks) {
				err = fmt.Errorf("tasks %d to %d of %d", r.First, r.Last, tasks)
			}
			p.tasks = append(p.tasks, r)
			return err
		}
		return nil
	})
}

// RestoreSnapshot puts a job back that Snapshot wrote down. After an error the queue is
// of no use.
func (q *Queue) RestoreSnapshot(snapshot []byte) (err error) {
	defer func() { // what contradicts itself within the job's own ad and columns
		if r := recover(); r != nil {
			err = fmt.Errorf("snapshot of a job: %w: %v", roost.Invalid, r)
		}
	}()
	s := snapshotDecoder{}
	err = eachField(snapshot, s.decodeField)
	if err == nil && (s.admitted.Submission == nil || len(s.states) != s.taskCount()) {
		err = fmt.Errorf("%d states", len(s.states))
	}
	if err == nil && q.jobs[s.admitted.Job] != nil {
		err = fmt.Errorf("job %d is there twice", s.admitted.Job)
	}
	if err != nil {
		return fmt.Errorf("snapshot of a job: %w: %w", roost.Invalid, err)
	}
	q.restoreJob(&s)
	return nil
}

// decodeField takes in one field.
func (s *snapshotDecoder) decodeField(f encodedField) (err error) {
	switch f.number {
	case sAdmitted:
		s.admitted, err = DecodeEvent(f.bytes)
		if err == nil && (s.admitted.Type != Submitted || s.taskCount() < 1 || s.taskCount() > roost.MaxTasks) {
			err = errors.New("it does not begin with a submission")
		}
		s.records.tasks = s.taskCount()
	case sStates:
		err = s.decodeStateRun(f.bytes)
	case sRecord:
		err = s.decodeRecord(f.bytes)
	case sUnblocked:
		s.unblocked = f.value != 0
	case sResolved:
		s.resolved = append(s.resolved, int(f.value)-1)
	case sNode:
		s.records.nodeNumber(string(f.bytes), "")
	case sFinished:
		err = s.records.decodeSuccesses(f.bytes)
	case sBegan:
		s.firstStarted = int64(f.value)
	case sEnded:
		s.lastEnded = int64(f.value)
	case sOrderRank:
		s.orderRank = f.value
	case sOrderTime:
		s.orderTime = int64(f.value)
	case sOldAd:
		p := savedOldAd{}
		err = p.decode(f.bytes, s.taskCount())
		s.oldAds = append(s.oldAds, p)
	case sEligibleSince:
		s.eligible.since = int64(f.value)
	case sWaitingSince:
		s.eligible.waitingSince = int64(f.value)
	case sWaited:
		s.eligible.waited = int64(f.value)
	case sMaxUnrecorded:
		s.distrust.maxUnrecorded = roost.AttemptNumber(f.value)
	case sAttemptMayLive:
		s.distrust.attemptMayLive = f.value != 0
	case sUrgent:
		o := savedOrder{}
		err = o.decode(f.bytes, s.taskCount())
		s.orders = append(s.orders, o)
	case sDenied:
		s.denied = string(f.bytes)
	default:
		err = s.dependencies.decodeField(f)
	}
	return err
}

// taskCount is how many the job has, 0 while it is not known.
func (s *snapshotDecoder) taskCount() int {
	if s.admitted.Submission == nil {
		return 0
	}
	return s.admitted.Submission.Count
}

// decodeStateRun takes in a run of equal states.
func (s *snapshotDecoder) decodeStateRun(b []byte) error {
	var n, state uint64
	err := eachField(b, func(f encodedField) error {
		switch f.number {
		case 1:
			n = f.value
		case 2:
			state = f.value
		}
		return nil
	})
	if err == nil && (state > uint64(roost.Removed) || n > uint64(s.taskCount()-len(s.states))) {
		err = fmt.Errorf("%d tasks in state %d", n, state)
	}
	if err == nil {
		s.states = append(s.states, slices.Repeat([]roost.TaskState{roost.TaskState(state)}, int(n))...)
	}
	return err
}

// decodeRecord takes in what is known of one task, or the note of several.
func (s *snapshotDecoder) decodeRecord(b []byte) error {
	r := &taskRecord{}
	var first, last uint64
	err := eachField(b, func(f encodedField) error {
		switch f.number {
		case 1:
			first = f.value
		case 19:
			last = f.value
		}
		return r.decode(f)
	})
	last = max(first, last)
	if err == nil && last >= uint64(s.taskCount()) {
		err = fmt.Errorf("a record of task %d of %d", last, s.taskCount())
	}
	if err != nil {
		return err
	}
	to := refShared
	if r.attempt > 0 {
		to = refOwn | recordRef(s.records.ownRecords.add(r))
		last = first
	} else {
		to |= recordRef(s.records.sharedRecords.add(&sharedRecord{taskRecord: *r}))
	}
	for i := first; i <= last; i++ {
		s.records.set(int(i), to)
	}
	return nil
}

func (r *taskRecord) decode(f encodedField) error {
	switch f.number {
	case 2:
		r.attempt = roost.AttemptNumber(f.value)
	case 3:
		r.node = string(f.bytes)
	case 4:
		r.address = string(f.bytes)
	case 5:
		r.claim = f.value
	case 6:
		r.assigned = int64(f.value)
	case 7:
		r.started = int64(f.value)
	case 8:
		r.ended = int64(f.value)
	case 9:
		r.jobFailures = int(f.value)
	case 10:
		r.machineFailures = int(f.value)
	default:
		return r.decodeWanted(f)
	}
	return nil
}

// decodeWanted reads what was wanted of the task, and how its attempt ended.
func (r *taskRecord) decodeWanted(f encodedField) error {
	switch f.number {
	case 11:
		r.live = f.value != 0
	case 12:
		r.holdReason = string(f.bytes)
	case 13:
		r.holdWanted = f.value != 0
	case 14:
		r.requestedBy = string(f.bytes)
	case 15:
		r.removeWanted = f.value != 0
	case 16:
		r.reason = string(f.bytes)
	case 17:
		r.force = f.value != 0
	case 18:
		r.exit = &AttemptExit{}
		return r.exit.decode(f.bytes)
	case 21:
		r.placement = string(f.bytes)
	case 22:
		r.ownerReason = string(f.bytes)
	case 23:
		r.alsoByUser = f.value != 0
	case 24:
		r.requeueWanted = f.value != 0
	case 25:
		r.lastMachineFailure = int64(f.value)
	case 20:
		r.checkpoints = &checkpoints{}
		return r.checkpoints.decode(f.bytes)
	}
	return nil
}

// restoreJob admits the job anew and brings its tasks to where they stood.
func (q *Queue) restoreJob(s *snapshotDecoder) {
	q.eventTime = s.admitted.Time
	q.applySubmitted(s.admitted)
	j := q.jobs[s.admitted.Job]
	if s.unblocked {
		q.applyUnblocked(j)
	}
	if len(s.resolved) > 0 {
		j.dependencies = nil
		for i, w := range j.submission.Dependencies {
			if !s.unblocked && w.Type.blocks() && !slices.Contains(s.resolved, i) {
				j.dependencies = append(j.dependencies, w)
			}
		}
	}
	q.dependencies().restoreDependencies(j, &s.dependencies, s.unblocked)
	j.records, j.firstStarted, j.lastEnded, j.runDenied = s.records, s.firstStarted, s.lastEnded, s.denied
	j.restoreOrders(s.orders)
	if s.orderRank != 0 {
		q.setOrderRank(j, s.orderRank, s.orderTime)
	}
	for _, p := range s.oldAds {
		before := &oldAd{ad: p.ad}
		for _, r := range p.tasks {
			for i := r.First; i <= r.Last; i++ {
				if r := j.records.own(i); r == nil || !r.live {
					panic(fmt.Sprintf("task %d has a past, and does not run", i))
				}
				q.pinOldClass(j, i, before)
			}
		}
	}
	q.batchReady(j, func() { q.restoreStates(j, s.states) })
	j.eligible.restore(j, s.eligible)
	j.distrust = s.distrust
	if j.isFinal() {
		q.finalJobs[j.seq] = true
	}
	delete(q.unsavedJobs, j.seq)
}

// restoreStates brings the tasks of a restored job to their states.
func (q *Queue) restoreStates(j *job, states []roost.TaskState) {
	for i, to := range states {
		r := j.records.own(i)
		if live := r != nil && r.live; live != to.IsActive() {
			panic(fmt.Sprintf("task %d is %v, and its attempt is live: %v", i, to, live))
		}
		q.restoreState(j, i, to)
		q.updateRestoreClass(j, i)
		if to.IsActive() {
			j.active++
			if r.removeWanted {
				q.vacates = append(q.vacates, VacateAttempt{Attempt: q.attemptOf(j, i), Fast: r.force,
					Reason: r.reason})
			} else if r.requeueWanted {
				q.vacates = append(q.vacates, VacateAttempt{Attempt: q.attemptOf(j, i), Fast: true,
					Reason: requeuedReason})
			} else if r.holdWanted {
				q.vacates = append(q.vacates, VacateAttempt{Attempt: q.attemptOf(j, i),
					Checkpoint: j.spec.Checkpoints != nil && j.spec.Checkpoints.OnVacate, Reason: r.holdReason})
			}
		}
		if to == roost.Completed && !j.records.hasSucceeded(i) {
			j.failed++
		}
	}
}
