package api

import (
	"context"

	"github.com/roost-batch/roost/internal/identity/peer"
)

// isDaemonUser reports whether a caller is root or the daemon's own user on this machine.
// Rights that the cell's administrator gives do not count.
func isDaemonUser(ctx context.Context) bool {
	p, ok := peer.FromContext(ctx)
	return ok && p.Local && p.Plays(peer.Schedd)
}
