package schedd

import (
	"context"
	"fmt"
	"time"

	"github.com/roost-batch/roost"
)

// callLoop runs f in the loop and waits for it.
func (s *Schedd) callLoop(ctx context.Context, f func(now time.Time)) error {
	done := make(chan struct{})
	if !s.postEvent(ctx, loopCall(func(now time.Time) { defer close(done); f(now) })) {
		return s.stoppingError(ctx)
	}
	select {
	case <-done:
		return nil
	case <-s.daemonContext.Done():
		return s.stoppingError(ctx)
	}
}

// stoppingError is the error for a call that the end of the daemon, or of the caller, cut
// short.
func (s *Schedd) stoppingError(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return fmt.Errorf("schedd: %w: it is stopping", roost.Unavailable)
}
