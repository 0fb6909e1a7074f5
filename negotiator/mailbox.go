package negotiator

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// mailbox is what waits to be sent to one schedd. The owner puts messages in and never waits; the schedd's stream takes all at once.
type mailbox struct {
	mu    sync.Mutex
	queue []*wire.ToSchedd
	bytes int           // of what is in it
	since time.Time     // when the oldest of the grants in it was decided; zero: there is none
	ended error         // the stream is to end, for this reason; nil: it is not
	ready chan struct{} // has room for one: something waits
}

// maxMail and maxMailBytes bound a mailbox; a message alone is taken whatever its size. Grants that were not answered are bounded by maxUnanswered, so only a schedd that does not read gets here.
const (
	maxMail      = 4 * maxUnanswered
	maxMailBytes = 256 << 20
)

// Why a conversation ends, besides that this negotiator does not lead any more.
var (
	errReplaced = fmt.Errorf("negotiate: %w: a newer conversation of the same schedd has replaced this one", roost.Stale)
	errOverfull = fmt.Errorf("negotiate: %w: the schedd does not take in what it is told", roost.Exhausted)
)

func newMailbox() *mailbox { return &mailbox{ready: make(chan struct{}, 1)} }

func (b *mailbox) put(m *wire.ToSchedd) {
	b.mu.Lock()
	size := proto.Size(m)
	switch n := len(b.queue); {
	case errors.Is(b.ended, errOverfull): // one was left out before it
	case n == 0 || n < maxMail && b.bytes+size <= maxMailBytes:
		b.queue, b.bytes = append(b.queue, m), b.bytes+size
	default:
		b.ended = cmp.Or(b.ended, errOverfull)
	}
	b.mu.Unlock()
	b.wake()
}

// grant puts in one that was decided at that time.
func (b *mailbox) grant(m *wire.ToSchedd, decided time.Time) {
	b.mu.Lock()
	if b.since.IsZero() {
		b.since = decided
	}
	b.mu.Unlock()
	b.put(m)
}

// end ends the stream when what waits has been sent. The first reason counts.
func (b *mailbox) end(why error) {
	b.mu.Lock()
	b.ended = cmp.Or(b.ended, why)
	b.mu.Unlock()
	b.wake()
}

func (b *mailbox) wake() {
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// take returns all that waits, and when the oldest of the grants in it was decided.
func (b *mailbox) take() (messages []*wire.ToSchedd, since time.Time, ended error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	messages, since = b.queue, b.since
	b.queue, b.bytes, b.since = nil, 0, time.Time{}
	return messages, since, b.ended
}
