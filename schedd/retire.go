package schedd

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/history"
	"github.com/roost-batch/roost/schedd/journal"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/table"
)

// Jobs that are final stay in the queue for a moment, where asking for them is cheapest, and then move to the history: first they are written
// there, then they leave the queue. A crash in between writes them there again.

// retireAfter is how long a final job stays in the queue.
const retireAfter = 2 * time.Second

// keepSaved is how long it stays there with a checkpoint, so that its owner can have it go on: a task that its walltime ended.
const keepSaved = 24 * time.Hour

// retireMost bounds how many jobs move at once.
const retireMost = 10_000

// retire begins to move final jobs to the history.
func (s *Schedd) retire(now time.Time) {
	for _, seq := range s.queue.Done() {
		s.retiring[seq] = true
	}
	if s.moving || len(s.retiring) == 0 || now.Sub(s.retiredAt) < retireAfter {
		return
	}
	s.retiredAt = now // the log is read once for all of them
	var seqs []uint64
	for _, seq := range slices.Sorted(maps.Keys(s.retiring)) {
		st, ok := s.queue.Status(seq)
		final := st.Counts[roost.Completed]+st.Counts[roost.Removed] == st.Tasks
		switch {
		case !ok || !final: // purged, or run again
			delete(s.retiring, seq)
		case s.queue.Saved(seq) && now.Sub(time.Unix(0, st.Ended)) < keepSaved:
		case now.Sub(time.Unix(0, st.Ended)) >= retireAfter && len(seqs) < retireMost:
			seqs = append(seqs, seq)
			delete(s.retiring, seq)
		}
	}
	if len(seqs) == 0 {
		return
	}
	records := make([]history.Record, 0, len(seqs))
	for _, seq := range seqs {
		if snapshot, ok := s.queue.Snapshot(seq); ok {
			key, _ := s.queue.Key(seq)
			records = append(records, history.Record{Seq: seq, Key: key, Ended: now, Snapshot: snapshot, Row: s.pastRow(s.queue, seq)})
		}
	}
	s.moving = true
	changed := s.queue.Changes(seqs)
	s.then(func() { s.outside.bury(records, changed) }) // when all that happened to them is on disk
}

// pastRow makes the row of a job that has ended, for the history.
func (s *Schedd) pastRow(q *queue.Queue, seq uint64) *table.Row {
	st, _ := q.Status(seq)
	st.Rank, st.Since = seq, st.Submitted // there its place is that of its number
	m := s.row(&st, "")
	m.Checkpoints, m.Checkpointed = 0, 0 // they go when it leaves the queue
	return newTableRow(m, &st, "")
}

// moved has jobs leave the queue that are in the history now, unless something happened to them meanwhile.
func (s *Schedd) moved(now time.Time, records []history.Record, before map[uint64]int, err error) {
	s.moving = false
	if err != nil {
		s.log.Error("jobs cannot be moved to the history", "error", err)
	}
	for i := range records {
		seq := records[i].Seq
		if err != nil || s.queue.Changes([]uint64{seq})[seq] != before[seq] {
			s.retiring[seq] = true
			continue
		}
		if e, ok := s.queue.Purge(now, seq); ok {
			s.decide(e)
		}
	}
}

// fill adds to each record what happened to its job, and writes them.
func (s *Schedd) fill(records []history.Record) error {
	seqs := make([]uint64, len(records))
	for i := range records {
		seqs[i] = records[i].Seq
	}
	events, err := s.journal.Events(seqs...)
	if err != nil {
		return err
	}
	for i := range records {
		if records[i].Events, err = s.wholeStory(records[i].Seq, events[records[i].Seq]); err != nil {
			return err
		}
	}
	return s.history.Add(records)
}

// The log is checkpointed when it has grown by this much, and by as much again as the snapshots that a checkpoint has to write: so the cost of
// checkpoints stays in proportion to what happens.
const checkpointBytes = 4 << 20

// maybeCheckpoint adds a checkpoint to the batch if it is time for one.
func (s *Schedd) maybeCheckpoint() {
	if size := int(s.logSize.Load()); size < checkpointBytes+2*s.checkpoint || s.pending.checkpoint != nil {
		return
	}
	c := &journal.Checkpoint{Jobs: make(map[uint64][]byte), LastSeq: s.queue.LastSeq()}
	s.checkpoint = 0
	for _, seq := range s.queue.Unsaved() {
		snapshot, _ := s.queue.Snapshot(seq)
		c.Jobs[seq] = snapshot
		s.checkpoint += len(snapshot)
	}
	s.pending.checkpoint = c
	s.pending.urgent = true
	s.logSize.Store(0)
}

// limits are what a submit is held against.
func (s *Schedd) limits() queue.Limits {
	return queue.Limits{
		Secret: newSecret, MaxQueued: s.node.Schedd.MaxQueued, MaxOfUser: s.node.Schedd.MaxOfUser, Domain: s.node.FileSystemDomain, LastSeq: s.lastPastSeq,
		Key: func(key string) (ids []roost.JobID) {
			seqs, err := s.history.Key(key)
			if err != nil {
				s.log.Error("the history cannot be read", "error", err)
			}
			for _, seq := range seqs {
				ids = append(ids, roost.JobID{Seq: seq, Host: s.node.Name})
			}
			return ids
		},
		Past: func(seq uint64) (ended, succeeded, known bool) {
			past, _, err := s.history.Job(seq)
			if err != nil {
				return false, false, false
			}
			st, _ := past.Status(seq)
			return true, st.Counts[roost.Completed] == st.Tasks && st.Failed == 0, true
		},
	}
}

// newSecret makes that of the keys of a job's images.
func newSecret() []byte {
	secret := make([]byte, queue.SecretSize)
	rand.Read(secret) // it never fails: crypto/rand ends the program instead
	return secret
}

// lastPast finds the newest job of a user in the history.
func (s *Schedd) lastPast(user string) (id roost.JobID, found bool) {
	seq, found, err := s.history.Last(user)
	if err != nil {
		s.log.Error("the history cannot be read", "error", err)
	}
	return roost.JobID{Seq: seq, Host: s.node.Name}, found
}

// sweepEvery is how often old jobs are looked for.
const sweepEvery = time.Hour

// keepHistory forgets old jobs, at the start and from time to time, until ctx ends.
func (s *Schedd) keepHistory(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		if err := s.sweepHistory(time.Now()); err != nil {
			s.log.Error("old jobs cannot be forgotten", "error", err)
		}
		if err := s.sweepScripts(ctx, time.Now()); err != nil && ctx.Err() == nil {
			s.log.Error("old scripts cannot be removed", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// sweepHistory forgets jobs that are older than the schedd is to remember, and their spooled output.
func (s *Schedd) sweepHistory(now time.Time) error {
	if s.node.Schedd.KeepHistory <= 0 {
		return nil
	}
	for {
		old, err := s.history.Older(now.Add(-s.node.Schedd.KeepHistory), retireMost)
		if err != nil || len(old) == 0 {
			return err
		}
		for _, seq := range old {
			if err := os.RemoveAll(filepath.Join(s.dir(), "spool", strconv.FormatUint(seq, 10))); err != nil {
				return fmt.Errorf("spool: %w", err)
			}
		}
		if err := s.history.Forget(old...); err != nil {
			return err
		}
	}
}
