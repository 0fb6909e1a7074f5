package schedd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// A job that has ended is in the queue for two seconds more, and then in the history. Either way its failed and removed tasks can be run again for as long as
// the history knows it: it comes back into the queue, and the record in the history stays until it has ended again and is written anew.

// againVerb reports whether a verb runs what has ended again.
func againVerb(v wire.ActRequest_Verb) bool {
	return v == wire.ActRequest_RETRY || v == wire.ActRequest_RERUN
}

// pastJob is a queue with a job that has left this one for the history; nil where it has not.
func (s *Schedd) pastJob(t queue.Target) *queue.Queue {
	if _, ok := s.queue.Status(t.Job.Seq); ok || t.Job.Host != s.node.Name {
		return nil
	}
	past, _, err := s.history.Job(t.Job.Seq)
	if err != nil { // what is not there, or cannot be read, is said when it is looked for as any other
		return nil
	}
	return past
}

// returnJob decides to run failed and removed tasks again of a job that has left the queue.
func (s *Schedd) returnJob(now time.Time, who queue.Submitter, past *queue.Queue, t queue.Target, verb wire.ActRequest_Verb) ([]queue.Event, error) {
	t, err := past.Locate(t)
	if err != nil {
		return nil, err
	}
	if err := s.trusted(past, t); err != nil {
		return nil, err
	}
	if st, _ := past.Status(t.Job.Seq); st.UID == unknownUID {
		return nil, fmt.Errorf("%v: %w: its record was damaged, and what it ran is not known: submit it again", t, roost.Conflict)
	}
	events, err := s.queue.Return(now, who, past, t, s.limits())
	if err == nil {
		err = s.scriptsThere(now, past)
	}
	if verb == wire.ActRequest_RERUN {
		return rerunEnded(past, t, events, err)
	}
	return events, err
}

// rerunEnded is how qrerun answers about what has ended: that it may not be run twice, or, where nothing of it failed, that it has ended (OpenPBS).
func rerunEnded(q *queue.Queue, t queue.Target, events []queue.Event, err error) ([]queue.Event, error) {
	switch {
	case errors.Is(err, queue.ErrNoneFailed):
		return nil, fmt.Errorf("%v: %w", t, roost.Finished)
	case err == nil && !q.Rerunnable(t.Job.Seq):
		return nil, fmt.Errorf("%v: %w", t, queue.ErrNotRerunnable)
	}
	return events, err
}

// scriptsThere checks that the scripts are still here that jobs name which are to be run again, and has them stay.
func (s *Schedd) scriptsThere(now time.Time, q *queue.Queue) error {
	for _, script := range q.Scripts() {
		if err := os.Chtimes(filepath.Join(s.scriptDir(script.UID), script.Name), now, now); err != nil {
			return fmt.Errorf("%w: the script of the job is not kept any more: submit it anew", roost.NoInput)
		}
	}
	return nil
}

// wholeStory is what has happened to a job of which the log of the queue has these events: if it came back from the history, that has what was before, and
// all of it once the job has ended again.
func (s *Schedd) wholeStory(seq uint64, events []queue.Event) ([]queue.Event, error) {
	for i := len(events) - 1; i >= 0; i-- {
		if events[i].What != queue.Returned {
			continue
		}
		_, before, err := s.history.Job(seq)
		if err != nil && !errors.Is(err, roost.NotFound) { // somebody has removed it there meanwhile
			return nil, err
		}
		if slices.ContainsFunc(before, func(e queue.Event) bool { return e.What == queue.Returned && e.Time == events[i].Time }) {
			return before, nil
		}
		return append(before, events[i:]...), nil
	}
	return events, nil
}
