package api

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// A job that has ended is in the queue for two seconds more, and then in the history.
// Either way its failed and removed tasks can be run again for as long as the history
// knows it: it comes back into the queue, and the record in the history stays until it
// has ended again and is written anew.

// UnknownUID is the user of a job whose record was damaged. What is left of the record is
// not to be trusted with rights.
const UnknownUID = math.MaxUint32

// rerunsEnded reports whether a verb runs what has ended again.
func rerunsEnded(v wire.ActRequest_Verb) bool {
	return v == wire.ActRequest_RETRY || v == wire.ActRequest_RERUN
}

// historyJob is a queue with a job that has left this one for the history; nil where it
// has not.
func (v *jobView) historyJob(t queue.TaskSelector) *queue.Queue {
	if _, ok := v.queue.Status(t.Job.Seq); ok || t.Job.Host != v.node.Name {
		return nil
	}
	past, _, err := v.history.Job(t.Job.Seq)
	if err != nil { // what is not there, or cannot be read, is said when it is looked for as any other
		return nil
	}
	return past
}

// rerunEndedJob decides to run failed and removed tasks again of a job that has left the
// queue.
func (act *jobActions) rerunEndedJob(now time.Time, who queue.CallerIdentity, past *queue.Queue, t queue.TaskSelector,
	verb wire.ActRequest_Verb) ([]queue.JobEvent, error) {
	t, err := past.LocateTasks(t)
	if err != nil {
		return nil, err
	}
	if err := act.checkUncertain(past, t); err != nil {
		return nil, err
	}
	if st, _ := past.Status(t.Job.Seq); st.UID == UnknownUID {
		return nil, fmt.Errorf("%v: %w: its record was damaged, and what it ran is not known: submit it again",
			t, roost.Conflict)
	}
	events, err := act.queue.ReturnFromHistory(now, who, past, t, act.loop.SubmitLimits())
	if err == nil {
		err = act.transfers.Scripts.CheckExist(now, past)
	}
	if verb == wire.ActRequest_RERUN {
		return rerunEndedError(past, t, events, err)
	}
	return events, err
}

// rerunEndedError returns the answer of qrerun for a job or task that has ended. The
// answer says that it may not run twice. Where no part of it failed, the answer says that
// it has ended (OpenPBS).
func rerunEndedError(q *queue.Queue, t queue.TaskSelector, events []queue.JobEvent,
	err error) ([]queue.JobEvent, error) {
	switch {
	case errors.Is(err, queue.ErrNoneFailed):
		return nil, fmt.Errorf("%v: %w", t, roost.Finished)
	case err == nil && !q.IsRerunnable(t.Job.Seq):
		return nil, fmt.Errorf("%v: %w", t, queue.ErrNotRerunnable)
	}
	return events, err
}
