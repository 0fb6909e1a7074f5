package journal

import (
	"github.com/roost-batch/roost/internal/appendlog"
	"github.com/roost-batch/roost/schedd/queue"
)

// Observer follows the events of a journal. It must not fail: what it does is worth less
// than the jobs.
type Observer interface {
	// OpenLog is called when the journal is opened, before the first event is replayed.
	// first is the first batch that the log has.
	OpenLog(id appendlog.ID, first uint64)
	// BeginBatch says from which batch the next replayed events are. BeforeEvent and
	// AfterEvent are called before and after the queue applies each of them.
	BeginBatch(number uint64)
	BeforeEvent(q *queue.Queue, e *queue.JobEvent)
	AfterEvent(q *queue.Queue, e *queue.JobEvent)
	// NoteAppended says that so many further events are on disk, in that batch.
	NoteAppended(events int, batch uint64)
	// NoteCheckpoint says that a checkpoint begins after the last batch.
	NoteCheckpoint()
	// SyncThrough returns when the observer needs no batch before next any more, because
	// a checkpoint is about to remove them.
	SyncThrough(next uint64)
}

// replayBatch applies the events of a batch to a queue.
func (j *Journal) replayBatch(q *queue.Queue, number uint64, batch []byte) error {
	if j.observer != nil {
		j.observer.BeginBatch(number)
	}
	return eachPiece(batch, eventSumSize, func(_, raw []byte) error {
		e, err := queue.DecodeEvent(raw)
		if err != nil {
			return err
		}
		if j.observer != nil {
			j.observer.BeforeEvent(q, &e)
		}
		q.Apply(e)
		if j.observer != nil {
			j.observer.AfterEvent(q, &e)
		}
		return nil
	})
}

// NextBatch returns the number of the next batch.
func (j *Journal) NextBatch() uint64 { return j.log.Next() }
