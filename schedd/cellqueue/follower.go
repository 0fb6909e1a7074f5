package cellqueue

import (
	"time"

	"github.com/roost-batch/roost/schedd/history"
	"github.com/roost-batch/roost/schedd/journal"
	"github.com/roost-batch/roost/schedd/queue"
)

// archivePurged puts those jobs into the history that a batch takes out of the queue. The
// leader's schedd has done so too.
func (m *Member) archivePurged(batch []byte) error {
	q := m.follower.queue
	var records []history.JobRecord
	if err := journal.EachEvent(batch, func(e *queue.JobEvent) {
		if e.Type != queue.Purged {
			return
		}
		if snapshot, there := q.Snapshot(e.Job); there {
			key, _ := q.SubmitKey(e.Job)
			records = append(records, history.JobRecord{Seq: e.Job, Key: key, Ended: time.Unix(0, e.Time),
				Snapshot: snapshot})
		}
	}); err != nil || len(records) == 0 {
		return err
	}
	seqs := make([]uint64, len(records))
	for i := range records {
		seqs[i] = records[i].Seq
	}
	events, err := m.journal.Events(seqs...)
	if err != nil {
		return err
	}
	for i := range records {
		if records[i].Events, err = m.history.CompleteEvents(records[i].Seq, events[records[i].Seq]); err != nil {
			return err
		}
	}
	return m.history.Add(records)
}

// discardEffects drops what the queue asks its schedd to do: the leader's schedd does it.
func (f *follower) discardEffects() {
	f.queue.TakeChanged()
	f.queue.TakeFinal()
	f.queue.TakeDroppedImages()
	f.queue.TakeDirtyRequests()
	f.queue.TakeVacates()
	f.queue.TakeFreezes()
	f.queue.TakeChangedLimits()
	f.queue.TakeResizes()
	f.queue.TakeChangedHosts()
}
