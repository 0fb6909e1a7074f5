package schedd

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/journal"
	"github.com/roost-batch/roost/schedd/queue"
)

// TestLargeBatch checks where a batch is cut that an entry of the replicated log cannot
// have. That is between turns, and where a checkpoint begins.
func TestLargeBatch(t *testing.T) {
	dir := t.TempDir()
	var sizes []int
	var j *journal.Journal
	j, q, err := journal.OpenReplicated(dir, "physics", nil, func(number uint64, batch []byte) error {
		n := 0
		if err := journal.EachEvent(batch, func(*queue.JobEvent) { n++ }); err != nil {
			return err
		}
		sizes = append(sizes, n)
		return j.AddBatch(number, batch)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	b := &commitBatch{checkpoint: &journal.QueueCheckpoint{Jobs: map[uint64][]byte{}, LastSeq: q.LastSeq()}, covered: 3}
	reason := strings.Repeat("x", journal.MaxReplicatedBatch*2/5) // two fit into a batch
	for range 5 {
		for range 2 {
			b.events = append(b.events, queue.JobEvent{Type: queue.Held, Job: 1, Time: 1, Reason: reason})
		}
		b.endTurn()
		b.endTurn() // a turn without events
	}
	w := &batchWriter{journal: j, reserve: journal.NewDiskReserve(dir, slog.New(slog.DiscardHandler)),
		checkpoints: make(chan *journal.QueueCheckpoint, 1), checkpointing: new(atomic.Bool)}
	if err := w.writeBatch(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if want := []int{2, 1, 1, 2, 2, 2}; !slices.Equal(sizes, want) || !slices.Equal(b.turns, []int{2, 4, 6, 8, 10}) {
		t.Errorf("batches of %d events, and not of %d; turns end after %d", sizes, want, b.turns)
	}
}

// TestUnconfirmedRenewals checks when renewals pass by a log that waits. The host must
// have been confirmed to lead after they were decided.
func TestUnconfirmedRenewals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, answers := make(chan int), make(chan error)
		calls := 0
		confirm := func(context.Context) error {
			calls++
			begun <- calls
			return <-answers
		}
		session := newSession()
		var u unconfirmedRenewals
		send := func(words ...uint64) {
			for _, word := range words {
				u.send(t.Context(), confirm, outgoingMessage{"n", session, &wire.ToStartd{
					Of: &wire.ToStartd_Renew{Renew: &wire.RenewLeases{Heard: word}}}})
			}
		}
		sent := func(want ...uint64) {
			t.Helper()
			synctest.Wait()
			var got []uint64
			for _, m := range session.out.Take() {
				got = append(got, m.GetRenew().GetHeard())
			}
			if !slices.Equal(got, want) {
				t.Errorf("sent %d, and not %d", got, want)
			}
		}
		send(1)
		<-begun
		send(2, 3) // decided after the confirmation began: they need another one
		sent()
		answers <- nil
		<-begun
		sent(1)
		answers <- roost.Unavailable // it does not lead any more
		sent()
		send(4)
		<-begun
		answers <- nil
		sent(4)
		if calls != 3 {
			t.Errorf("%d confirmations", calls)
		}
	})
}
