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

// sendQueue holds the messages that wait for one schedd. Putting a message never blocks;
// the schedd's stream takes all at once.
type sendQueue struct {
	mu          sync.Mutex
	messages    []*wire.ToSchedd
	bytes       int           // size of the messages
	oldestGrant time.Time     // when the oldest grant in it was decided; zero: none
	endReason   error         // why the stream must end; nil: it must not
	ready       chan struct{} // buffered signal that something waits
	guestOf     string        // pool of a guest, from its certificate; empty: the schedd is of this pool
}

// Bounds of a send queue; a single message is accepted whatever its size. maxUnanswered
// bounds the unanswered grants, so only a schedd that does not read reaches these.
const (
	maxQueued    = 4 * maxUnanswered
	maxMailBytes = 256 << 20
)

// Why a session ends, besides the end of leadership.
var (
	errStreamReplaced = fmt.Errorf("negotiate: %w: a newer session of the same schedd has replaced this one",
		roost.Stale)
	errQueueFull = fmt.Errorf("negotiate: %w: the schedd does not read its messages", roost.Exhausted)
)

func newSendQueue() *sendQueue { return &sendQueue{ready: make(chan struct{}, 1)} }

func (b *sendQueue) putMessage(m *wire.ToSchedd) {
	b.mu.Lock()
	size := proto.Size(m)
	switch n := len(b.messages); {
	case errors.Is(b.endReason, errQueueFull): // a message was left out before it
	case n == 0 || n < maxQueued && b.bytes+size <= maxMailBytes:
		b.messages, b.bytes = append(b.messages, m), b.bytes+size
	default:
		b.endReason = cmp.Or(b.endReason, errQueueFull)
	}
	b.mu.Unlock()
	b.signalReady()
}

// putGrant puts a grant that was decided at a time.
func (b *sendQueue) putGrant(m *wire.ToSchedd, decided time.Time) {
	b.mu.Lock()
	if b.oldestGrant.IsZero() {
		b.oldestGrant = decided
	}
	b.mu.Unlock()
	b.putMessage(m)
}

// endStream ends the stream after the waiting messages. The first reason counts.
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

// takeAll returns all waiting messages, and when the oldest grant among them was decided.
func (b *sendQueue) takeAll() (messages []*wire.ToSchedd, since time.Time, ended error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	messages, since = b.messages, b.oldestGrant
	b.messages, b.bytes, b.oldestGrant = nil, 0, time.Time{}
	return messages, since, b.endReason
}
