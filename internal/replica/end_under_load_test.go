package replica

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/damage"
)

// TestEndsUnderLoad ends a replica while much is being proposed. Raft does not answer
// proposals that it has accepted and not processed at its end, and Run must not wait for
// that. Each proposal is still resolved exactly once.
func TestEndsUnderLoad(t *testing.T) {
	t.Run("told to", func(t *testing.T) {
		endsUnderLoad(t, t.TempDir(), "x", func(_ *Replica, cancel func()) { cancel() })
	})
	t.Run("broken", func(t *testing.T) {
		endsUnderLoad(t, t.TempDir(), "x", func(r *Replica, _ func()) { r.fail(errKilled) })
	})
	t.Run("disk full", func(t *testing.T) {
		// it ends by itself
		endsUnderLoad(t, damage.SmallDisk(t, "", 3*segmentSize, 0o700), strings.Repeat("x", 1000),
			func(*Replica, func()) {})
	})
}

func endsUnderLoad(t *testing.T, dir, entry string, end func(*Replica, func())) {
	var asked, answered atomic.Int64
	r, err := Open(Config{Dir: dir, Name: "n1", Address: "n1:1", Log: slog.New(slog.DiscardHandler)},
		&registerMachine{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	for l := range r.Leadership() {
		if l.IsLeader {
			break
		}
	}
	var all sync.WaitGroup
	enough, room := make(chan struct{}), make(chan struct{}, maxProposed/2)
	for range 4 {
		all.Go(func() {
			for {
				select {
				case <-enough:
					return
				case room <- struct{}{}:
					asked.Add(1)
					r.Propose([]byte(entry), func(any, error) {
						answered.Add(1)
						<-room
					})
				}
			}
		})
	}
	for answered.Load() < 10_000 {
		<-time.After(time.Millisecond)
	}
	end(r, cancel)
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatalf("it does not end; %d were proposed and %d are settled", asked.Load(), answered.Load())
	}
	close(enough)
	all.Wait()
	cancel()
	for late := time.Now().Add(time.Minute); answered.Load() < asked.Load() && time.Now().Before(late); {
		<-time.After(time.Millisecond)
	}
	if answered.Load() != asked.Load() {
		t.Errorf("%d were proposed, and %d settled", asked.Load(), answered.Load())
	}
}
