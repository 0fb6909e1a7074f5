package negotiator

import (
	"sync"

	"github.com/roost-batch/roost/internal/wire"
)

// mailbox is what waits to be sent to one schedd. The owner puts messages in and never waits; the schedd's stream takes all at once.
type mailbox struct {
	mu    sync.Mutex
	queue []*wire.ToSchedd
	ended bool          // the stream is to end: too much waited, or a newer stream has replaced it
	ready chan struct{} // has room for one: something waits
}

// maxMail bounds a mailbox. Grants that were not answered are bounded by maxUnanswered, so only a schedd that does not read gets here.
const maxMail = 4 * maxUnanswered

func newMailbox() *mailbox { return &mailbox{ready: make(chan struct{}, 1)} }

func (b *mailbox) put(m *wire.ToSchedd) {
	b.mu.Lock()
	if len(b.queue) < maxMail {
		b.queue = append(b.queue, m)
	} else {
		b.ended = true
	}
	b.mu.Unlock()
	b.wake()
}

func (b *mailbox) end() {
	b.mu.Lock()
	b.ended = true
	b.mu.Unlock()
	b.wake()
}

func (b *mailbox) wake() {
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

func (b *mailbox) take() (messages []*wire.ToSchedd, ended bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	messages, b.queue = b.queue, nil
	return messages, b.ended
}
