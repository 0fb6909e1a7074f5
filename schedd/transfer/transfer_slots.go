package transfer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/slotshare"
)

// maxTransfers bounds how many attempts have files on their way at once.
const maxTransfers = 32

// transferSlots bounds how many transfers make progress at once, and shares that among
// users (package slotshare). A transfer that has to give its slot back stands still
// before its next message, and goes on when it has one again.
type transferSlots struct {
	mu        sync.Mutex
	scheduler *slotshare.Scheduler
	slots     map[slotshare.TransferID]*transferSlot
	lastID    slotshare.TransferID
	beganAt   time.Time
	timer     *time.Timer
}

// transferSlot is what one transfer has, or waits for.
type transferSlot struct {
	slots    *transferSlots
	transfer slotshare.TransferID
	granted  chan struct{} // closed while it has a slot
}

func newTransferSlots(slots int) *transferSlots {
	return &transferSlots{scheduler: slotshare.New(slots), slots: map[slotshare.TransferID]*transferSlot{},
		beganAt: time.Now()}
}

// acquire waits for a slot, which has to be released.
func (t *transferSlots) acquire(ctx context.Context, uid uint32) (*transferSlot, error) {
	t.mu.Lock()
	t.lastID++
	s := &transferSlot{slots: t, transfer: t.lastID, granted: make(chan struct{})}
	t.slots[s.transfer] = s
	t.scheduler.Add(s.transfer, strconv.FormatUint(uint64(uid), 10))
	t.applyChanges()
	t.mu.Unlock()
	if err := s.waitForSlot(ctx); err != nil {
		s.release()
		return nil, err
	}
	return s, nil
}

// waitForSlot returns when the transfer has a slot: at once, or when it has it again.
func (s *transferSlot) waitForSlot(ctx context.Context) error {
	s.slots.mu.Lock()
	runs := s.granted
	s.slots.mu.Unlock()
	select {
	case <-runs:
		return context.Cause(ctx)
	default:
	}
	select {
	case <-runs:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// release gives the slot back, or ends the wait for it. A second time it does nothing.
func (s *transferSlot) release() {
	t := s.slots
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.slots, s.transfer)
	t.scheduler.Remove(s.transfer)
	t.applyChanges()
}

// applyChanges does what follows from what has happened. The caller holds the lock.
func (t *transferSlots) applyChanges() {
	now := time.Since(t.beganAt)
	changes, again := t.scheduler.Todo(now)
	for _, c := range changes {
		if s := t.slots[c.Transfer]; c.HasSlot {
			close(s.granted)
		} else {
			s.granted = make(chan struct{})
		}
	}
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
	if again > 0 {
		t.timer = time.AfterFunc(again-now, func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.applyChanges()
		})
	}
}

// How soon a transfer is tried again: at once, then at growing distances.
const (
	minTransferRetry = 20 * time.Millisecond
	maxTransferRetry = 2 * time.Second
)

// A transfer that has a slot and waits for the other side has to get on: as long as it is
// slower than this it is begun anew, and that often.
const (
	stallTimeout  = 2 * time.Minute
	minStallBytes = 64 << 10
	maxStalls     = 3
)

// minCacheRate is how many bytes a second of a cached file a machine copies at least.
const minCacheRate = 10 << 20

// stalledError says that the other side has let a transfer stand still.
type stalledError struct{ bytes int64 }

func (e stalledError) Error() string {
	return fmt.Sprintf("%v: %v of it came through in %v", roost.Unavailable, roost.Bytes(e.bytes), stallTimeout)
}

func (e stalledError) Unwrap() error { return roost.Unavailable }

// retryUntilReachable tries again for as long as the other side cannot be reached. It
// gives up after the other side has stalled the transfer maxStalls times. A try has a
// slot; between two tries nothing is occupied.
func retryUntilReachable(ctx context.Context, try func() error) error {
	stalls := 0
	for wait := minTransferRetry; ; wait = min(2*wait, maxTransferRetry) {
		err := try()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !errors.Is(err, roost.Unavailable):
			return err
		}
		if stalled, ok := errors.AsType[stalledError](err); ok {
			if stalls++; stalls == maxStalls {
				return repeatedStallError{stalled}
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// pacedStream passes the messages of one transfer on while the transfer has a slot. It
// breaks the transfer off if the other side is too slow.
type pacedStream struct {
	ctx        context.Context
	cancel     context.CancelCauseFunc
	slot       *transferSlot
	waitTime   time.Duration // for the other side, since so much was moved
	bytesMoved int64
	progress   *transferProgress // nil: nobody follows it
}

// newPacedStream returns a pacedStream. Its context ends with ctx, or when the stream
// breaks the transfer off. The caller calls end at the end.
func newPacedStream(ctx context.Context, slot *transferSlot) (p *pacedStream, end func()) {
	p = &pacedStream{slot: slot}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	return p, func() { p.cancel(context.Canceled) }
}

// paceMessage lets one message through.
func (p *pacedStream) paceMessage(message func() (*wire.FileChunk, error)) (*wire.FileChunk, error) {
	if err := p.slot.waitForSlot(p.ctx); err != nil {
		return nil, err
	}
	began, moved := time.Now(), p.bytesMoved
	timer := time.AfterFunc(stallTimeout-p.waitTime, func() { p.cancel(stalledError{moved}) })
	chunk, err := message()
	timer.Stop()
	if err != nil {
		return nil, p.stopCause(err)
	}
	p.waitTime += time.Since(began)
	p.progress.add(int64(len(chunk.GetData())) + max(chunk.GetHole(), 0))
	if chunk.GetCached() { // the other side reads the file from its disk before it takes the next message
		p.progress.add(chunk.GetEntry().GetSize())
		p.waitTime -= time.Duration(chunk.GetEntry().GetSize()/minCacheRate) * time.Second
	}
	p.bytesMoved += int64(len(chunk.GetData())) + min(chunk.GetHole(), minStallBytes)
	if chunk.GetEntry() != nil {
		p.bytesMoved += minStallBytes / 64 // a file without data is work, too
	}
	if p.bytesMoved >= minStallBytes {
		p.waitTime, p.bytesMoved = 0, 0
	}
	return chunk, nil
}

// stopCause is the cause of an error of the stream, if it was broken off from here.
func (p *pacedStream) stopCause(err error) error {
	if stalled, ok := errors.AsType[stalledError](context.Cause(p.ctx)); ok {
		return stalled
	}
	return err
}

// receivePaced paces the receiving half of a stream.
func (p *pacedStream) receivePaced(from func() (*wire.FileChunk, error)) func() (*wire.FileChunk, error) {
	return func() (*wire.FileChunk, error) { return p.paceMessage(from) }
}

// sendPaced paces the sending half.
func (p *pacedStream) sendPaced(to func(*wire.FileChunk) error) func(*wire.FileChunk) error {
	return func(chunk *wire.FileChunk) error {
		_, err := p.paceMessage(func() (*wire.FileChunk, error) { return chunk, to(chunk) })
		return err
	}
}
