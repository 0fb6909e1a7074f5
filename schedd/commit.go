package schedd

import (
	"context"
	"fmt"
	"slices"

	"github.com/roost-batch/roost/internal/fault"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/journal"
	"github.com/roost-batch/roost/schedd/queue"
)

// batch is what one or more turns of the loop decided: facts for the log, and what may happen only when they are on disk. Batches are
// committed one after the other, and all that goes to a node goes through them, so that nothing overtakes the fact it rests on.
type batch struct {
	events []queue.Event
	sends  []send
	after  []func()
	urgent bool // somebody waits for it; otherwise it may wait a moment for company

	notices []queue.Notice // that somebody is to be told of its events

	checkpoint *journal.Checkpoint // of the state after its events
}

// send is a message for the session that was present when it was decided.
type send struct {
	node    string
	to      *session
	message *wire.ToStartd
}

func (b *batch) empty() bool {
	return len(b.events) == 0 && len(b.sends) == 0 && len(b.after) == 0 && b.checkpoint == nil
}

// commit writes batches to the log until the channel is closed. While it waits for the disk, the loop gathers the next batch: the slower
// the disk, the larger the groups. Where there is no room the log waits for it; one that cannot be written for another reason ends the daemon, and its
// master starts it again from what is on disk.
func (s *Schedd) commit(ctx context.Context, batches <-chan *batch) error {
	for b := range batches {
		told := func() {}
		if len(b.notices) > 0 {
			told = s.notifier.Keep(b.notices) // before the facts: what is in the log is told, though it may be told twice
		}
		if len(b.events) > 0 || b.checkpoint != nil {
			s.writing.Store(int64(boottime()))
			if err := s.reserve.retry(ctx, func() error { return s.journal.Append(b.events, b.checkpoint) }); err != nil {
				return fmt.Errorf("write the job log: %w", err)
			}
			s.writing.Store(0)
			s.logSize.Store(int64(s.journal.Size()))
			if slices.ContainsFunc(b.events, func(e queue.Event) bool { return e.What == queue.Ended }) {
				fault.Point(fault.ScheddExitRecorded)
			}
		}
		told()
		for _, m := range b.sends {
			m.to.out.put(m.message)
		}
		for _, f := range b.after {
			f()
		}
	}
	return nil
}
