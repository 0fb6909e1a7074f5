package rpc

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-batch/roost"
)

// TestIntake checks that the requests of one peer, and of all, stay within their bounds.
// A peer that waits for its own calls must delay no other peer.
func TestIntake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newIntakeLimiter(100, 150)
		begin := func(who string, n int) (*callIntake, chan error) {
			h, done := in.beginCall(who), make(chan error, 1)
			go func() { done <- h.acquire(t.Context(), n) }()
			synctest.Wait()
			return h, done
		}
		waits := func(done chan error) bool {
			synctest.Wait()
			return len(done) == 0
		}
		ann1, done1 := begin("ann", 64)
		ann2, done2 := begin("ann", 64)
		if waits(done1) || !waits(done2) {
			t.Fatal("of two calls of one peer that do not fit together, want one to wait")
		}
		bob, done3 := begin("bob", 64)
		if waits(done3) {
			t.Fatal("bob waits for ann, whose second call waits for her first")
		}
		cleo, done4 := begin("cleo", 64)
		if !waits(done4) {
			t.Fatal("192 bytes are held, and 150 are the most")
		}
		bob.releaseExcess(4)
		if waits(done4) {
			t.Fatal("bob's request has 4 bytes, and cleo still waits for the rest of them")
		}
		ann1.release()
		if waits(done2) {
			t.Fatal("ann's first call has ended, and her second one waits")
		}
		for _, h := range []*callIntake{ann2, bob, cleo} {
			h.release()
		}
		if len(in.peers) != 0 || !in.total.TryAcquire(150) {
			t.Errorf("when all calls have ended, %v are counted", in.peers)
		}
	})
}

// TestIntakeOfEndedCall checks that a call that has ended holds nothing, even if it was
// given room at the same time.
func TestIntakeOfEndedCall(t *testing.T) {
	in := newIntakeLimiter(10, 10)
	h := in.beginCall("ann")
	h.release()
	if err := h.acquire(t.Context(), 10); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if !in.total.TryAcquire(10) {
		t.Error("it holds bytes")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := in.beginCall("bob").acquire(ctx, 10); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call that ends while it waits: got %v", err)
	}
	if err := ReserveIntake(t.Context(), maxMessageSize+1); !errors.Is(err, roost.Exhausted) {
		t.Errorf("a request that is announced too long: got %v", err)
	}
}
