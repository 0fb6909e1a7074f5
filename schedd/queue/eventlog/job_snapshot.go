package eventlog

import (
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/roost-batch/roost"
)

// JobSnapshot is the record of one job on disk: all that the queue knows of it.
type JobSnapshot struct {
	Submitted JobEvent // as it is now: an alteration changes it
	States    []roost.TaskState
	Records   TaskRecords
	Unblocked bool  // it waits for nothing but machines
	Resolved  []int // dependencies of the submission that are met, by their place in it
	// when a task of it first started, and when a task last became final, unix
	// nanoseconds; 0: none
	FirstStarted, LastEnded int64
	OrderRank               uint64 // its place among others; 0: its number is
	OrderTime               int64
	OldAds                  []OldAd
	Waits                   JobWaits
	Eligible                EligibleTime
	Damage                  RecordDamage
	RunOrders               []TaskRunOrder
	RunDenied               string       // why the last request to run now was denied; empty: it was not
	LastTick                int64        // up to when instants of its schedule are decided, unix seconds
	Released                []IndexRange // secondary tasks whose machines were given back
	Update                  *JobUpdate   // nil: the job was never updated
	Scale                   *ScaleRecord // nil: its number of tasks never followed its load
	Flow                    *FlowRecord  // nil: it is no flow
	Epochs                  []GangEpoch  // of its gangs, if their tasks are saved together
}

// OldAd is the ad with which tasks began that still run, where the job was altered since.
// Tasks of an older revision have theirs, too.
type OldAd struct {
	Ad    string
	Tasks []IndexRange
}

// JobWaits is how a job stands to others, beyond what it said itself.
type JobWaits struct {
	Added                           []JobDependency
	ExpectedBefore, ExpectedSync    int // jobs that are to be submitted yet
	RunOneSet                       []uint64
	RunOneStarted, RemovedUnstarted bool
	StartTimeReached                bool // though it waits for others
}

// EligibleTime is for how long a job has waited for nothing but machines. Times are unix
// nanoseconds.
type EligibleTime struct {
	Since        int64 // since when it could run, and was not held or made to wait since; 0: it is
	WaitingSince int64 // a task of it waits since then; 0: none does
	Waited       int64 // how long it did before that, in nanoseconds
}

// RecordDamage is how much of a job's past is not believed.
type RecordDamage struct {
	// the highest number that an attempt of the job may have had that is not on record;
	// 0: all are
	MaxUnrecorded  roost.AttemptNumber
	AttemptMayLive bool // such an attempt may live: nobody has released the job since
}

// RunOrder is what an operator wants to run now. The tasks of one request share it.
type RunOrder struct {
	By    string
	At    int64  // unix nanoseconds
	Where string // the machines, or any
}

// TaskRunOrder is a run order, and of which tasks it is.
type TaskRunOrder struct {
	RunOrder
	Tasks []IndexRange
}

// The fields of a snapshot. Tasks come in runs: of one state, of one note, of successes.
const (
	sAdmitted = iota + 1
	sStates
	sRecord
	sUnblocked
	sResolved
	sNode // before the successes that refer to it
	sFinished
	sBegan
	sEnded
	sOrderRank
	sOrderTime
	sOldAd          // of tasks that run: the ad with which they began, and which they are
	sAdded          // what others have said of it
	sExpectedBefore // that are to come yet; so the next
	sExpectedSync
	sRunOne
	sRunOneStarted
	sRemovedUnstarted
	sDue // its start time has come, though it waits for others
	sEligibleSince
	sWaitingSince
	sWaited
	sMaxUnrecorded
	sAttemptMayLive
	sUrgent   // tasks that are to run now
	sDenied   // why they could not
	sReleased // secondary tasks whose machines were given back
	sLastTick
	sUpdate
	sScale
	sFlow
	sEpoch
)

// Append adds the snapshot's form on disk to b.
func (s *JobSnapshot) Append(b []byte) []byte {
	b = appendMessage(b, sAdmitted, func([]byte) []byte { return AppendEvent(nil, &s.Submitted) })
	for first := 0; first < len(s.States); {
		last := runEnd(s.States, first)
		b = appendMessage(b, sStates, func(b []byte) []byte {
			return appendNumber(appendNumber(b, 1, uint64(last-first+1)), 2, uint64(s.States[first]))
		})
		first = last + 1
	}
	b = s.Records.append(b)
	b = appendBool(b, sUnblocked, s.Unblocked)
	for _, i := range s.Resolved {
		b = appendNumber(b, sResolved, uint64(i+1))
	}
	b = appendNumber(appendNumber(b, sBegan, uint64(s.FirstStarted)), sEnded, uint64(s.LastEnded))
	b = appendNumber(appendNumber(b, sOrderRank, s.OrderRank), sOrderTime, uint64(s.OrderTime))
	for _, p := range s.OldAds {
		b = appendMessage(b, sOldAd, func(b []byte) []byte { return appendRanges(appendText(b, 1, p.Ad), 2, p.Tasks) })
	}
	b = s.Waits.append(b)
	b = appendNumber(b, sEligibleSince, uint64(s.Eligible.Since))
	b = appendNumber(b, sWaitingSince, uint64(s.Eligible.WaitingSince))
	b = appendNumber(b, sWaited, uint64(s.Eligible.Waited))
	b = appendNumber(b, sMaxUnrecorded, uint64(s.Damage.MaxUnrecorded))
	b = appendBool(b, sAttemptMayLive, s.Damage.AttemptMayLive)
	for _, o := range s.RunOrders {
		b = appendMessage(b, sUrgent, func(b []byte) []byte {
			b = appendText(appendNumber(appendText(b, 1, o.By), 2, uint64(o.At)), 3, o.Where)
			return appendRanges(b, 4, o.Tasks)
		})
	}
	b = appendText(b, sDenied, s.RunDenied)
	b = appendNumber(b, sLastTick, uint64(s.LastTick))
	for _, r := range s.Released {
		b = appendMessage(b, sReleased, func(b []byte) []byte {
			return appendNumber(appendNumber(b, 1, uint64(r.First)), 2, uint64(r.Last))
		})
	}
	if s.Update != nil {
		b = appendMessage(b, sUpdate, s.Update.append)
	}
	if s.Scale != nil {
		b = appendMessage(b, sScale, s.Scale.append)
	}
	if s.Flow != nil {
		b = appendMessage(b, sFlow, s.Flow.append)
	}
	for i := range s.Epochs {
		b = appendMessage(b, sEpoch, s.Epochs[i].append)
	}
	return b
}

func (w *JobWaits) append(b []byte) []byte {
	for _, d := range w.Added {
		b = appendMessage(b, sAdded, d.append)
	}
	b = appendNumber(appendNumber(b, sExpectedBefore, uint64(w.ExpectedBefore)), sExpectedSync, uint64(w.ExpectedSync))
	for _, other := range w.RunOneSet {
		b = appendNumber(b, sRunOne, other)
	}
	b = appendBool(appendBool(b, sRunOneStarted, w.RunOneStarted), sRemovedUnstarted, w.RemovedUnstarted)
	return appendBool(b, sDue, w.StartTimeReached)
}

// DecodeSnapshot reads what Append wrote. A snapshot that contradicts itself is an error.
func DecodeSnapshot(b []byte) (*JobSnapshot, error) {
	s := &JobSnapshot{}
	err := eachField(b, s.decodeField)
	if err == nil && (s.Submitted.Submission == nil || len(s.States) != s.taskCount()) {
		err = fmt.Errorf("%d states", len(s.States))
	}
	if err != nil {
		return nil, fmt.Errorf("snapshot of a job: %w: %w", roost.Invalid, err)
	}
	return s, nil
}

// decodeField takes in one field.
func (s *JobSnapshot) decodeField(f encodedField) (err error) {
	switch f.number {
	case sAdmitted:
		s.Submitted, err = DecodeEvent(f.bytes)
		if err == nil && (s.Submitted.Type != Submitted || s.taskCount() < 1 || s.taskCount() > roost.MaxTasks) {
			err = errors.New("it does not begin with a submission")
		}
		s.Records.Tasks = s.taskCount()
	case sStates:
		err = s.decodeStateRun(f.bytes)
	case sRecord:
		err = s.decodeRecord(f.bytes)
	case sUnblocked:
		s.Unblocked = f.value != 0
	case sResolved:
		s.Resolved = append(s.Resolved, int(f.value)-1)
	case sNode:
		s.Records.nodeNumber(string(f.bytes), "")
	case sFinished:
		err = s.Records.decodeSuccesses(f.bytes)
	case sBegan:
		s.FirstStarted = int64(f.value)
	case sEnded:
		s.LastEnded = int64(f.value)
	case sOrderRank:
		s.OrderRank = f.value
	case sOrderTime:
		s.OrderTime = int64(f.value)
	case sOldAd:
		p := OldAd{}
		err = p.decode(f.bytes, s.taskCount())
		s.OldAds = append(s.OldAds, p)
	case sEligibleSince:
		s.Eligible.Since = int64(f.value)
	case sWaitingSince:
		s.Eligible.WaitingSince = int64(f.value)
	case sWaited:
		s.Eligible.Waited = int64(f.value)
	case sMaxUnrecorded:
		s.Damage.MaxUnrecorded = roost.AttemptNumber(f.value)
	case sAttemptMayLive:
		s.Damage.AttemptMayLive = f.value != 0
	case sUrgent:
		o := TaskRunOrder{}
		err = o.decode(f.bytes, s.taskCount())
		s.RunOrders = append(s.RunOrders, o)
	case sDenied:
		s.RunDenied = string(f.bytes)
	case sLastTick:
		s.LastTick = int64(f.value)
	case sReleased:
		var r IndexRange
		r, err = decodeTasks(f.bytes, s.taskCount(), " are given back")
		s.Released = append(s.Released, r)
	case sUpdate:
		s.Update = &JobUpdate{}
		err = s.Update.decode(f.bytes)
	case sScale:
		s.Scale = &ScaleRecord{}
		err = s.Scale.decode(f.bytes)
	case sFlow:
		s.Flow = &FlowRecord{}
		err = s.Flow.decode(f.bytes)
	case sEpoch:
		err = s.decodeEpoch(f.bytes)
	default:
		err = s.Waits.decodeField(f)
	}
	return err
}

// decodeEpoch takes in what is saved of a gang.
func (s *JobSnapshot) decodeEpoch(b []byte) error {
	var g GangEpoch
	err := g.decode(b, s.taskCount())
	s.Epochs = append(s.Epochs, g)
	return err
}

func (w *JobWaits) decodeField(f encodedField) error {
	switch f.number {
	case sAdded:
		var d JobDependency
		err := d.decode(f.bytes)
		w.Added = append(w.Added, d)
		return err
	case sExpectedBefore:
		w.ExpectedBefore = int(f.value)
	case sExpectedSync:
		w.ExpectedSync = int(f.value)
	case sRunOne:
		w.RunOneSet = append(w.RunOneSet, f.value)
	case sRunOneStarted:
		w.RunOneStarted = f.value != 0
	case sRemovedUnstarted:
		w.RemovedUnstarted = f.value != 0
	case sDue:
		w.StartTimeReached = f.value != 0
	}
	return nil
}

func (p *OldAd) decode(b []byte, tasks int) error {
	return eachField(b, func(f encodedField) error {
		switch f.number {
		case 1:
			p.Ad = string(f.bytes)
		case 2:
			r, err := decodeTasks(f.bytes, tasks, "")
			p.Tasks = append(p.Tasks, r)
			return err
		}
		return nil
	})
}

func (o *TaskRunOrder) decode(b []byte, tasks int) error {
	return eachField(b, func(f encodedField) error {
		switch f.number {
		case 1:
			o.By = string(f.bytes)
		case 2:
			o.At = int64(f.value)
		case 3:
			o.Where = string(f.bytes)
		case 4:
			r, err := decodeTasks(f.bytes, tasks, " are to run now")
			o.Tasks = append(o.Tasks, r)
			return err
		}
		return nil
	})
}

// taskCount is how many the job has, 0 while it is not known.
func (s *JobSnapshot) taskCount() int {
	if s.Submitted.Submission == nil {
		return 0
	}
	return s.Submitted.Submission.Count
}

// decodeStateRun takes in a run of equal states.
func (s *JobSnapshot) decodeStateRun(b []byte) error {
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
	if err == nil && (state > uint64(roost.Removed) || n > uint64(s.taskCount()-len(s.States))) {
		err = fmt.Errorf("%d tasks in state %d", n, state)
	}
	if err == nil {
		s.States = append(s.States, slices.Repeat([]roost.TaskState{roost.TaskState(state)}, int(n))...)
	}
	return err
}

// decodeRecord takes in what is known of one task, or the note of several.
func (s *JobSnapshot) decodeRecord(b []byte) error {
	r := &TaskRecord{}
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
	if r.Attempt > 0 || r.Policy != nil {
		to = refOwn | recordRef(s.Records.writable().ownRecords.add(r))
		last = first
	} else {
		to |= recordRef(s.Records.writable().sharedRecords.add(&sharedRecord{TaskRecord: *r}))
	}
	for i := first; i <= last; i++ {
		s.Records.set(int(i), to)
	}
	return nil
}

// DecodeSubmission reads the job's own part of a snapshot, for the history.
func DecodeSubmission(snapshot []byte) (JobEvent, error) {
	num, _, n := protowire.ConsumeTag(snapshot)
	if n < 0 || num != 1 {
		return JobEvent{}, fmt.Errorf("snapshot of a job: %w", roost.Invalid)
	}
	b, m := protowire.ConsumeBytes(snapshot[n:])
	if m < 0 {
		return JobEvent{}, fmt.Errorf("snapshot of a job: %w", roost.Invalid)
	}
	return DecodeEvent(b)
}
