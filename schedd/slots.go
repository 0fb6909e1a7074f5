package schedd

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

// transferSlots bounds how many transfers make progress at once, and shares that among users (package slotshare). A transfer that has to give its slot back
// stands still before its next message, and goes on when it has one again.
type transferSlots struct {
	mu    sync.Mutex
	share *slotshare.Scheduler
	all   map[slotshare.Transfer]*transferSlot
	last  slotshare.Transfer
	began time.Time
	timer *time.Timer
}

// transferSlot is what one transfer has, or waits for.
type transferSlot struct {
	of   *transferSlots
	id   slotshare.Transfer
	runs chan struct{} // closed while it has a slot
}

func newTransferSlots(slots int) *transferSlots {
	return &transferSlots{share: slotshare.New(slots), all: map[slotshare.Transfer]*transferSlot{}, began: time.Now()}
}

// acquire waits for a slot, which has to be released.
func (t *transferSlots) acquire(ctx context.Context, uid uint32) (*transferSlot, error) {
	t.mu.Lock()
	t.last++
	s := &transferSlot{of: t, id: t.last, runs: make(chan struct{})}
	t.all[s.id] = s
	t.share.Add(s.id, strconv.FormatUint(uint64(uid), 10))
	t.follow()
	t.mu.Unlock()
	if err := s.wait(ctx); err != nil {
		s.release()
		return nil, err
	}
	return s, nil
}

// wait returns when the transfer has a slot: at once, or when it has it again.
func (s *transferSlot) wait(ctx context.Context) error {
	s.of.mu.Lock()
	runs := s.runs
	s.of.mu.Unlock()
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
	t := s.of
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.all, s.id)
	t.share.Remove(s.id)
	t.follow()
}

// follow does what follows from what has happened. The caller holds the lock.
func (t *transferSlots) follow() {
	now := time.Since(t.began)
	changes, again := t.share.Todo(now)
	for _, c := range changes {
		if s := t.all[c.Transfer]; c.Runs {
			close(s.runs)
		} else {
			s.runs = make(chan struct{})
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
			t.follow()
		})
	}
}

// A transfer that has a slot and waits for the other side has to get on: as long as it is slower than this it is begun anew, and that often.
const (
	stallTime  = 2 * time.Minute
	stallBytes = 64 << 10
	maxStalls  = 3
)

// stalledError says that the other side has let a transfer stand still.
type stalledError struct{ moved int64 }

func (e stalledError) Error() string {
	return fmt.Sprintf("%v: %v of it came through in %v", roost.Unavailable, roost.Bytes(e.moved), stallTime)
}

func (e stalledError) Unwrap() error { return roost.Unavailable }

// untilReached tries again for as long as the other side cannot be reached, and gives up after it has let the transfer stand still several times. A try has a
// slot; between two nothing is held.
func untilReached(ctx context.Context, try func() error) error {
	stalls := 0
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
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
				return standstillError{stalled}
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// pacedStream lets the messages of one transfer through while it has a slot, and breaks it off when the other side does not keep pace.
type pacedStream struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	slot   *transferSlot
	waited time.Duration // for the other side, since so much was moved
	moved  int64
}

// newPacedStream returns one and the context that it breaks off, which ends with ctx; end is to be called at the end.
func newPacedStream(ctx context.Context, slot *transferSlot) (p *pacedStream, end func()) {
	p = &pacedStream{slot: slot}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	return p, func() { p.cancel(context.Canceled) }
}

// pass lets one message through.
func (p *pacedStream) pass(message func() (*wire.FileChunk, error)) (*wire.FileChunk, error) {
	if err := p.slot.wait(p.ctx); err != nil {
		return nil, err
	}
	began, moved := time.Now(), p.moved
	timer := time.AfterFunc(stallTime-p.waited, func() { p.cancel(stalledError{moved}) })
	chunk, err := message()
	timer.Stop()
	if err != nil {
		return nil, p.why(err)
	}
	p.waited += time.Since(began)
	p.moved += int64(len(chunk.GetData())) + min(chunk.GetHole(), stallBytes)
	if chunk.GetEntry() != nil {
		p.moved += stallBytes / 64 // a file without data is work, too
	}
	if p.moved >= stallBytes {
		p.waited, p.moved = 0, 0
	}
	return chunk, nil
}

// why is the cause of an error of the stream, if it was broken off from here.
func (p *pacedStream) why(err error) error {
	if stalled, ok := errors.AsType[stalledError](context.Cause(p.ctx)); ok {
		return stalled
	}
	return err
}

// recv paces the receiving half of a stream.
func (p *pacedStream) recv(from func() (*wire.FileChunk, error)) func() (*wire.FileChunk, error) {
	return func() (*wire.FileChunk, error) { return p.pass(from) }
}

// send paces the sending half.
func (p *pacedStream) send(to func(*wire.FileChunk) error) func(*wire.FileChunk) error {
	return func(chunk *wire.FileChunk) error {
		_, err := p.pass(func() (*wire.FileChunk, error) { return chunk, to(chunk) })
		return err
	}
}
