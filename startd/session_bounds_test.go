package startd

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/roost-batch/roost/internal/wire"
)

// TestWordsOfASessionAreBounded checks that each session may have only a bounded part of
// the loop's inbox. Further messages, long or short, wait at the submit node, and there
// is room for the messages of others.
func TestWordsOfASessionAreBounded(t *testing.T) {
	for name, bytes := range map[string]int{"long": 1 << 20, "short": 1} {
		synctest.Test(t, func(t *testing.T) {
			m := &startdHost{inbox: make(chan any, maxInboxEvents), loopDone: make(chan struct{})}
			message := &wire.ToStartd{Of: &wire.ToStartd_Message{Message: &wire.Message{Line: make([]byte, bytes)}}}
			l := &machineLoop{host: m, sessions: map[uint64]*scheddSession{}}
			ctx, cancel := context.WithCancel(t.Context())
			go m.readMessages(ctx, func() (*wire.ToStartd, error) {
				return message, ctx.Err()
			}, newScheddSession("host1"))
			for range 100 {
				synctest.Wait()
				if n := len(m.inbox); n == 0 || n*bytes > sessionBytes || n > maxInboxEvents/4 {
					t.Fatalf("%s: %d messages wait", name, n)
				}
				l.handleEvent(<-m.inbox)
			}
			cancel()
		})
	}
}
