package schedd

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/internal/failpoint"
	"github.com/roost-batch/roost/internal/mutant"
	"github.com/roost-batch/roost/internal/tasktrace"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/jobhooks"
	"github.com/roost-batch/roost/schedd/journal"
	"github.com/roost-batch/roost/schedd/queue"
)

// commitBatch is what one or more turns of the loop decided. It has facts for the log,
// and actions that may happen only when the facts are on disk. Batches are committed one
// after the other. Everything that goes to a node goes through them, so that no message
// leaves before the fact on which it depends.
type commitBatch struct {
	events    []queue.JobEvent
	turns     []int // the numbers of events after each turn that had some
	messages  []outgoingMessage
	callbacks []func()
	urgent    bool      // somebody waits for it
	dueAt     time.Time // otherwise it is written then, or with the first that somebody waits for; zero: it is empty

	hasNotices []queue.JobNotification // that somebody is to be told of its events
	userLog    []queue.UserLogEntry    // for the files of users
	hookEnds   []jobhooks.Ended        // for the end hook

	checkpoint *journal.QueueCheckpoint
	covered    int // number of events that the checkpoint includes
}

// outgoingMessage is a message for the session that was present when it was decided.
type outgoingMessage struct {
	node    string
	to      *startdSession
	message *wire.ToStartd
}

func (b *commitBatch) isEmpty() bool {
	return len(b.events) == 0 && len(b.messages) == 0 && len(b.callbacks) == 0 && b.checkpoint == nil
}

// runCommitter writes batches to the log until the channel is closed. While it waits for
// the disk, the loop gathers the next batch: the slower the disk, the larger the groups.
// Where there is no room the log waits for it; one that cannot be written for another
// reason ends the daemon, and its master starts it again from what is on disk.
func (s *Schedd) runCommitter(ctx context.Context, batches <-chan *commitBatch, w *batchWriter) error {
	defer close(w.checkpoints)
	for b := range batches {
		reported, deliverEnds := func() {}, func() {}
		if len(b.hasNotices) > 0 {
			// before the facts: what is in the log is told, though it may be told twice
			reported = s.notifier.Enqueue(b.hasNotices)
		}
		if len(b.hookEnds) > 0 {
			deliverEnds = s.hooks.EnqueueEnds(b.hookEnds) // likewise
		}
		if len(b.events) > 0 || b.checkpoint != nil {
			began := s.metrics.CommitTime.Now()
			s.logWriteSince.Store(int64(boottime.Now()))
			if err := w.writeBatch(ctx, b); err != nil {
				return fmt.Errorf("write the job log: %w", err)
			}
			s.logWriteSince.Store(0)
			s.metrics.CommitTime.ObserveSince(began)
			s.logSize.Store(int64(s.journal.Size()))
			traceEvents(b.events)
			if slices.ContainsFunc(b.events, func(e queue.JobEvent) bool { return e.Type == queue.Ended }) {
				failpoint.Point(failpoint.ScheddAfterExitRecorded)
			}
		}
		if err := s.replicated.confirmLeader(ctx, b); err != nil {
			return err
		}
		reported()
		deliverEnds()
		writeUserLog(s.userLogs, b.userLog)
		for _, m := range b.messages {
			m.to.out.Put(m.message)
		}
		for _, f := range b.callbacks {
			f()
		}
	}
	return nil
}

// confirmLeader confirms that this host still leads before messages of a batch leave
// whose events were not just committed. A leader that was deposed in a pause would
// otherwise renew leases of which its successor does not know.
//
// A pause between the confirmation and the write of a renewal does no harm, however long
// it is. The lease counts from when the renewal was decided, and not from when the node
// reads it. That was before the confirmation, at which this host led; so it was before
// any successor took up the attempt. The successor counts a whole lease from then, and
// waits for its end before it starts the task again. Other messages rest on facts that
// are in the log, which the successor knows; and a node drops them once the session of
// the successor has begun.
func (r *ReplicatedLog) confirmLeader(ctx context.Context, b *commitBatch) error {
	if r == nil || !b.needsConfirmation() {
		return nil
	}
	return r.Confirm(ctx)
}

// needsConfirmation reports whether something leaves with a batch that no event of it has
// just confirmed.
func (b *commitBatch) needsConfirmation() bool {
	if mutant.Active(mutant.LeaderUnconfirmed) {
		return false
	}
	return len(b.events) == 0 && len(b.messages)+len(b.callbacks) > 0
}

// unconfirmedRenewals are renewals of leases of a replicated queue that pass by a log
// which cannot be written now. They too may leave only when this host has been confirmed
// to lead after they were decided: see confirmLeader.
type unconfirmedRenewals struct {
	mu       sync.Mutex
	messages []outgoingMessage
	running  bool
}

// send sends a renewal after the next confirmation, and does not wait for it. One
// confirmation is for all that were decided before it began. Those are dropped for which
// there is none.
func (u *unconfirmedRenewals) send(ctx context.Context, confirm func(context.Context) error, m outgoingMessage) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.messages = append(u.messages, m)
	if !u.running {
		u.running = true
		go u.sendAll(ctx, confirm)
	}
}

func (u *unconfirmedRenewals) sendAll(ctx context.Context, confirm func(context.Context) error) {
	for {
		u.mu.Lock()
		all := u.messages
		u.messages, u.running = nil, len(all) > 0
		u.mu.Unlock()
		if len(all) == 0 {
			return
		}
		if confirm(ctx) != nil {
			continue
		}
		for _, m := range all {
			m.to.out.Put(m.message)
		}
	}
}

// traceEvents marks events that are on disk as stages of their tasks.
func traceEvents(events []queue.JobEvent) {
	if !tasktrace.IsEnabled() {
		return
	}
	for _, e := range events {
		tasktrace.Mark(e.Type.String(), tasktrace.Task{Job: e.Job, Index: uint32(e.Index), Attempt: uint32(e.Attempt)})
	}
}

// endTurn notes that what comes next is of another turn of the loop.
func (b *commitBatch) endTurn() {
	if n := len(b.events); n > 0 && (len(b.turns) == 0 || b.turns[len(b.turns)-1] != n) {
		b.turns = append(b.turns, n)
	}
}

// endsTurn reports whether the first n events are those of whole turns.
func (b *commitBatch) endsTurn(n int) bool {
	_, found := slices.BinarySearch(b.turns, n)
	return found
}

// deferUntil lets a batch wait for company, and no longer than until then.
func (b *commitBatch) deferUntil(at time.Time) {
	if b.dueAt.IsZero() || at.Before(b.dueAt) {
		b.dueAt = at
	}
	b.urgent = b.urgent || len(b.events) >= maxDeferredEvents
}

// batchWriter writes batches to the journal, and checkpoints beside them.
type batchWriter struct {
	journal       *journal.Journal
	reserve       *journal.DiskReserve
	checkpoints   chan *journal.QueueCheckpoint // of the committer for the checkpointer; it has room for one
	checkpointing *atomic.Bool                  // a checkpoint is decided and not yet written
}

// writeBatch writes the events of a batch to the log. A checkpoint goes to the goroutine
// that writes checkpoints. The log is cut between the events that it includes and those
// that the loop has added since.
func (w *batchWriter) writeBatch(ctx context.Context, b *commitBatch) error {
	from := 0
	if b.checkpoint != nil {
		if err := w.appendEvents(ctx, b, 0, b.covered); err != nil {
			return err
		}
		if err := w.reserve.RetryWrite(ctx, func() error {
			return w.journal.StartCheckpoint(b.checkpoint)
		}); err != nil {
			return err
		}
		w.checkpoints <- b.checkpoint // there is room: the loop takes no second one before the first is written
		from = b.covered
	}
	return w.appendEvents(ctx, b, from, len(b.events))
}

// appendEvents appends some events of a batch. Those of a replicated journal may have to
// be cut into several of its batches, where a crash in between does no harm. What waits
// for the events waits for all of them.
func (w *batchWriter) appendEvents(ctx context.Context, b *commitBatch, from, to int) error {
	for from < to {
		var n int
		if err := w.reserve.RetryWrite(ctx, func() (err error) {
			n, err = w.journal.AppendPart(b.events[from:to], func(i int) bool { return b.endsTurn(from + i) })
			return err
		}); err != nil {
			return err
		}
		from += n
	}
	return nil
}

// runCheckpointer writes checkpoints, beside the committer, until the channel is closed.
func (w *batchWriter) runCheckpointer(ctx context.Context) error {
	for c := range w.checkpoints {
		if err := w.reserve.RetryWrite(ctx, func() error { return w.journal.WriteCheckpoint(c) }); err != nil {
			return fmt.Errorf("write a checkpoint of the job log: %w", err)
		}
		w.checkpointing.Store(false)
	}
	return nil
}
