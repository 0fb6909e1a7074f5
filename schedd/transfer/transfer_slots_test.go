package transfer

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// TestPacedStream: a transfer whose other side is slow goes on, and one whose other side
// hardly moves is broken off.
func TestPacedStream(t *testing.T) {
	for _, tt := range []struct {
		name   string
		chunk  *wire.FileChunk
		every  time.Duration
		stalls bool
	}{
		{"large pieces in time", &wire.FileChunk{Data: make([]byte, minStallBytes)}, stallTimeout - time.Second, false},
		{"large pieces too late", &wire.FileChunk{Data: make([]byte, minStallBytes)}, stallTimeout + time.Second, true},
		{"small pieces, and many", &wire.FileChunk{Data: make([]byte, 1<<10)}, time.Second, false},
		{"single bytes", &wire.FileChunk{Data: []byte{0}}, time.Second, true},
		{"files without data", &wire.FileChunk{Entry: &wire.FileEntry{Name: "empty"}}, time.Second, false},
		{"few files without data", &wire.FileChunk{Entry: &wire.FileEntry{Name: "empty"}}, 10 * time.Second, true},
		{"holes", &wire.FileChunk{Hole: 1 << 40}, time.Minute, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slot, err := newTransferSlots(1).acquire(t.Context(), 1001)
				if err != nil {
					t.Fatal(err)
				}
				defer slot.release()
				pace, end := newPacedStream(t.Context(), slot)
				defer end()
				recv := pace.receivePaced(func() (*wire.FileChunk, error) {
					select {
					case <-pace.ctx.Done():
						return nil, pace.ctx.Err()
					case <-time.After(tt.every):
						return tt.chunk, nil
					}
				})
				began := time.Now()
				for err == nil && time.Since(began) < time.Hour {
					_, err = recv()
				}
				if _, stalled := errors.AsType[stalledError](err); stalled != tt.stalls || !stalled && err != nil {
					t.Errorf("got %v, want a standstill: %v", err, tt.stalls)
				}
				if tt.stalls && time.Since(began) > 2*stallTimeout {
					t.Errorf("it was broken off after %v", time.Since(began))
				}
			})
		})
	}
}

// TestSlotWaitIsNoStall checks that a transfer does not count as stalled while other
// users have its slot. Thirty other users have the slot in turn. The transfer continues
// when it has the slot again.
func TestSlotWaitIsNoStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := newTransferSlots(1)
		ann, err := slots.acquire(t.Context(), 1001)
		if err != nil {
			t.Fatal(err)
		}
		pace, end := newPacedStream(t.Context(), ann)
		defer end()
		send := pace.sendPaced(func(*wire.FileChunk) error { return nil })
		others, leave := context.WithCancel(t.Context())
		for uid := range uint32(30) {
			go func() {
				if slot, err := slots.acquire(others, 2000+uid); err == nil {
					<-others.Done()
					slot.release()
				}
			}()
		}
		time.Sleep(time.Minute)
		began := time.Now()
		if err := send(&wire.FileChunk{Data: []byte("x")}); err != nil || time.Since(began) < stallTimeout {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		// A removal ends the wait at once, and nothing of it is left.
		leave()
		ann.release()
		synctest.Wait()
		if len(slots.slots) != 0 {
			t.Errorf("%d transfers are left", len(slots.slots))
		}
	})
}

// TestRemovedTransfer: a transfer that waits for the other side ends with its attempt,
// and that is no standstill.
func TestRemovedTransfer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slot, err := newTransferSlots(1).acquire(t.Context(), 1001)
		if err != nil {
			t.Fatal(err)
		}
		defer slot.release()
		ctx, cancel := context.WithCancel(t.Context())
		pace, end := newPacedStream(ctx, slot)
		defer end()
		time.AfterFunc(time.Second, cancel)
		began := time.Now()
		_, err = pace.paceMessage(func() (*wire.FileChunk, error) {
			<-pace.ctx.Done()
			return nil, pace.ctx.Err()
		})
		if !errors.Is(err, context.Canceled) || time.Since(began) != time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

// TestRetryUntilReachable checks that a transfer to a node that is away is retried
// without limit. A node that lets a transfer stall is tried three times.
func TestRetryUntilReachable(t *testing.T) {
	for _, tt := range []struct {
		name   string
		try    func(n int) error
		tries  int
		byNode bool
		want   error
	}{
		{"away for long", func(n int) error {
			if n == 100 {
				return nil
			}
			return roost.Unavailable
		}, 100, false, nil},
		{"stands still", func(n int) error {
			if n%2 == 0 {
				return roost.Unavailable
			}
			return stalledError{10}
		}, 5, true, roost.Unavailable},
		{"refused", func(int) error { return io.ErrUnexpectedEOF }, 1, false, io.ErrUnexpectedEOF},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				err := retryUntilReachable(t.Context(), func() error { tries++; return tt.try(tries) })
				if _, byNode := isNodeFault(err); !errors.Is(err, tt.want) || tries != tt.tries || byNode != tt.byNode {
					t.Errorf("got %v after %d tries, the node's fault: %v", err, tries, byNode)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		if err := retryUntilReachable(ctx, func() error {
			return roost.Unavailable
		}); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Hour {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}
