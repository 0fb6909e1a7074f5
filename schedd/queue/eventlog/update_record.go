package eventlog

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/update"
)

// TaskRevision is what updates need to know of a task of a service. Times are unix
// nanoseconds.
type TaskRevision struct {
	// of the live attempt; of the next one, when there is none, or one that is to end
	Revision uint32
	Since    int64 // since when it is ready, or since when it is not
	WasReady bool  // some attempt of it was
	Planned  bool  // a planned cause has taken it down, and it was not ready since
	Stopping bool  // desired: that the live attempt ends, and one of Revision begins
	Exits    int   // attempts of Revision that ended by themselves
	// Untouched: when the tasks of its job began to go back, it was of that revision
	Untouched bool
}

func (r *TaskRevision) append(b []byte) []byte {
	b = appendNumber(b, 1, uint64(r.Revision))
	b = appendNumber(b, 2, uint64(r.Since))
	b = appendBool(b, 3, r.WasReady)
	b = appendBool(b, 4, r.Planned)
	b = appendBool(b, 5, r.Stopping)
	b = appendNumber(b, 6, uint64(r.Exits))
	return appendBool(b, 7, r.Untouched)
}

func (r *TaskRevision) decode(b []byte) error {
	return eachField(b, func(f encodedField) error {
		switch f.number {
		case 1:
			r.Revision = uint32(f.value)
		case 2:
			r.Since = int64(f.value)
		case 3:
			r.WasReady = f.value != 0
		case 4:
			r.Planned = f.value != 0
		case 5:
			r.Stopping = f.value != 0
		case 6:
			r.Exits = int(f.value)
		case 7:
			r.Untouched = f.value != 0
		}
		return nil
	})
}

// Condition is how the live attempt of a task of a service is.
func (r *TaskRecord) Condition() update.Condition {
	if r.IsEnding() || r.RemoveWanted || r.HoldWanted || r.RequeueWanted {
		return update.Leaving
	}
	switch r.Service.State {
	case roost.ServiceReady:
		return update.Ready
	case roost.ServiceUnready:
		return update.Unready
	case roost.ServiceLeaving:
		return update.Leaving
	case roost.ServiceLost:
		return update.Lost
	default:
		return update.Starting
	}
}

// IsEnding reports whether the live attempt of a task of a service ends for a planned
// cause, and another follows.
func (r *TaskRecord) IsEnding() bool {
	s := r.Service
	return s.Updated.Stopping || s.RestartOf != 0 && s.RestartOf == r.Attempt
}

// NoteState is for a task whose state as one of a service changes. Ending is IsEnding:
// what its attempt says then does not bring the task back.
func (t *TaskRevision) NoteState(from, to roost.ServiceState, at int64, ending bool) {
	if (from == roost.ServiceReady) == (to == roost.ServiceReady) {
		return
	}
	if t.Since = at; to == roost.ServiceReady && !ending {
		t.Planned, t.WasReady = false, true
	}
}

// NoteExit is for an attempt of a service that has ended; nil where it was lost. One that
// ends by itself counts against the revision that it is of. From then on the task is down
// for that, and for no planned cause.
func (t *TaskRevision) NoteExit(x *AttemptExit, ending bool) {
	if x == nil || ending {
		t.Stopping = false
		return
	}
	switch x.Cause {
	case CauseExited, CauseWalltime, CauseMemory, CauseGPUMemory,
		CauseDisk, CauseCPUTime, CauseVirtualMemory, CausePrologue,
		CauseLaunch:
		t.Exits++
		t.Planned = false
	}
}

// JobUpdate is the newest update of a job, and the revision to which it can go back.
type JobUpdate struct {
	update.Update
	Last  uint32 // the highest number that a revision of the job has had
	OldAd string // of revision From; empty: there is none
	Surge int    // tasks that there are beyond those of the job
}

func (u *JobUpdate) append(b []byte) []byte {
	b = appendUpdate(b, &u.Update)
	b = appendNumber(b, 20, uint64(u.Last))
	return appendNumber(appendText(b, 21, u.OldAd), 22, uint64(u.Surge))
}

func (u *JobUpdate) decode(b []byte) error {
	if err := decodeUpdate(b, &u.Update); err != nil {
		return err
	}
	return eachField(b, func(f encodedField) error {
		switch f.number {
		case 20:
			u.Last = uint32(f.value)
		case 21:
			u.OldAd = string(f.bytes)
		case 22:
			if u.Surge = int(f.value); f.value > roost.MaxTasks {
				return errors.New("more surge tasks than a job may have")
			}
		}
		return nil
	})
}

// appendUpdate adds an update's form on disk.
func appendUpdate(b []byte, u *update.Update) []byte {
	for i, v := range []uint64{uint64(u.State), uint64(u.From), uint64(u.To), uint64(u.Begun), uint64(u.Moved),
		uint64(u.ClockFrom), uint64(u.Spent), uint64(u.Pulsed), uint64(u.Forgiven), uint64(u.Disrupted)} {
		b = appendNumber(b, protowire.Number(i+1), v)
	}
	b = appendBool(appendBool(b, 11, u.Promoted), 12, u.Restart)
	for _, i := range u.Failed {
		b = appendNumber(b, 13, uint64(i)+1)
	}
	for _, r := range u.Alike {
		b = appendNumber(b, 16, uint64(r))
	}
	for _, r := range u.Tasks {
		b = appendRanges(b, 14, []IndexRange{{First: r.From, Last: r.To}})
	}
	return appendText(b, 15, u.Reason)
}

// decodeUpdate reads what appendUpdate wrote.
func decodeUpdate(b []byte, u *update.Update) error {
	err := eachField(b, func(f encodedField) error {
		switch f.number {
		case 1:
			u.State = update.State(f.value)
		case 2:
			u.From = uint32(f.value)
		case 3:
			u.To = uint32(f.value)
		case 4:
			u.Begun = int64(f.value)
		case 5:
			u.Moved = int64(f.value)
		case 6:
			u.ClockFrom = int64(f.value)
		case 7:
			u.Spent = time.Duration(f.value)
		case 8:
			u.Pulsed = int64(f.value)
		case 9:
			u.Forgiven = int(f.value)
		case 10:
			u.Disrupted = int(f.value)
		case 11:
			u.Promoted = f.value != 0
		case 12:
			u.Restart = f.value != 0
		case 13:
			if u.Failed = append(u.Failed, int(f.value)-1); f.value < 1 || f.value > roost.MaxTasks {
				return errors.New("a failed task that cannot be")
			}
		case 14:
			r, err := decodeRange(f.bytes)
			u.Tasks = append(u.Tasks, update.Range{From: r.First, To: r.Last})
			return err
		case 15:
			u.Reason = string(f.bytes)
		case 16:
			u.Alike = append(u.Alike, uint32(f.value))
		}
		return nil
	})
	if err == nil && u.State > update.Closed {
		err = fmt.Errorf("an update in %v", u.State)
	}
	return err
}
