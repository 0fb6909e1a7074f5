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

// sendQueue is what waits to be sent to one schedd. The owner puts messages in and never
// waits; the schedd's stream takes all at once.
type sendQueue struct {
	mu          sync.Mutex
	messages    []*wire.ToSchedd
	bytes       int           // of what is in it
	oldestGrant time.Time     // when the oldest of the grants in it was decided; zero: there is none
	endReason   error         // the stream is to end, for this reason; nil: it is not
	ready       chan struct{} // has room for one: something waits
}

// maxQueued and maxMailBytes bound a mailbox; a message alone is taken whatever its size.
// Grants that were not answered are bounded by maxUnanswered, so only a schedd that does
// not read gets here.
const (
	maxQueued    = 4 * maxUnanswered
	maxMailBytes = 256 << 20
)

// Why a conversation ends, besides that this negotiator does not lead any more.
var (
	errStreamReplaced = fmt.Errorf("negotiate: %w: a newer conversation of the same schedd has replaced this one",
		roost.Stale)
	errQueueFull = fmt.Errorf("negotiate: %w: the schedd does not take in what it is told", roost.Exhausted)
)

func newSendQueue() *sendQueue { return &sendQueue{ready: make(chan struct{}, 1)} }

func (b *sendQueue) putMessage(m *wire.ToSchedd) {
	b.mu.Lock()
	size := proto.Size(m)
	switch n := len(b.messages); {
	case errors.Is(b.endReason, errQueueFull): // one was left out before it
	case n == 0 || n < maxQueued && b.bytes+size <= maxMailBytes:
		b.messages, b.bytes = append(b.messages, m), b.bytes+size
	default:
		b.endReason = cmp.Or(b.endReason, errQueueFull)
	}
	b.mu.Unlock()
	b.signalReady()
}

// putGrant puts in one that was decided at that time.
func (b *sendQueue) putGrant(m *wire.ToSchedd, decided time.Time) {
	b.mu.Lock()
	if b.oldestGrant.IsZero() {
		b.oldestGrant = decided
	}
	b.mu.Unlock()
	b.putMessage(m)
}

// endStream ends the stream when what waits has been sent. The first reason counts.
func (b *sendQueue) endStream(why error) {
	b.mu.Lock()
	b.endReason = cmp.Or(b.endReason, why)
	b.mu.Unlock()
	b.signalReady()
}

func (b *sendQueue) signalReady() {
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// takeAll returns all that waits, and when the oldest of the grants in it was decided.
func (b *sendQueue) takeAll() (messages []*wire.ToSchedd, since time.Time, ended error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	messages, since = b.messages, b.oldestGrant
	b.messages, b.bytes, b.oldestGrant = nil, 0, time.Time{}
	return messages, since, b.endReason
}
