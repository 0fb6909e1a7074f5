package accountant

import (
	"context"
	"sync"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost/internal/wire"
)

// The bounds of what is read ahead of the store. A schedd sends at most twice as many
// entries before it waits for an acknowledgement, so that the stream is not idle while
// the store commits.
const (
	maxGathered = 4000 // entries that are stored together
	maxAhead    = 8    // messages
)

// feedAhead reads messages of a schedd while the store commits the ones before. Each
// commit costs the same few writes to disk for one entry as for thousands, so entries
// that wait are stored together.
type feedAhead struct {
	messages chan *wire.FeedBatch
	failed   error // why messages has ended; read after that
	held     *wire.FeedBatch
	reading  sync.WaitGroup
}

// start reads until ctx, which is also the stream's, ends or the stream fails.
func (a *feedAhead) start(ctx context.Context, stream grpc.BidiStreamingClient[wire.FeedRequest, wire.FeedBatch]) {
	a.messages = make(chan *wire.FeedBatch, maxAhead)
	a.reading.Go(func() {
		defer close(a.messages)
		for {
			m, err := stream.Recv()
			if err != nil {
				a.failed = err
				return
			}
			select {
			case a.messages <- m:
			case <-ctx.Done():
				a.failed = ctx.Err()
				return
			}
		}
	})
}

// wait returns when nothing is read any more. The caller has ended the context of start.
func (a *feedAhead) wait() { a.reading.Wait() }

// next returns the next message. Entries of messages that have arrived and follow each
// other are in one.
func (a *feedAhead) next(ctx context.Context) (*wire.FeedBatch, error) {
	m := a.held
	a.held = nil
	if m == nil {
		var open bool
		select {
		case m, open = <-a.messages:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if !open {
			return nil, a.failed
		}
	}
	for hasEntries(m) && len(m.GetEntries()) < maxGathered {
		select {
		case after, open := <-a.messages:
			if !open {
				return m, nil // the next call returns why
			}
			if !hasEntries(after) || after.GetFirst() != m.GetFirst()+uint64(len(m.GetEntries())) ||
				len(m.GetEntries())+len(after.GetEntries()) > maxGathered {
				a.held = after
				return m, nil
			}
			m = &wire.FeedBatch{First: m.GetFirst(), Entries: append(m.GetEntries(), after.GetEntries()...),
				Complete: after.GetComplete()}
		default:
			return m, nil
		}
	}
	return m, nil
}

// hasEntries reports whether a message has entries and nothing else.
func hasEntries(m *wire.FeedBatch) bool { return len(m.GetEntries()) > 0 && !m.GetGap() }
