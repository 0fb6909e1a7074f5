package api

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/codec"
	"github.com/roost-batch/roost/schedd/queue"
)

// holdChecks has the machines of running tasks not run their health checks for a time. It
// always has an end: what is forgotten would be unwatched for ever.
func (act *jobActions) holdChecks(now time.Time, who queue.CallerIdentity, t queue.TaskSelector,
	period time.Duration) (n uint32, err error) {
	if period < 0 || period > roost.MaxChecksHold {
		return 0, fmt.Errorf("%v: %w: health checks can be held for at most %v; 0 has them run again", t, roost.Invalid,
			roost.MaxChecksHold)
	}
	to, err := act.queue.CheckedAttempts(now, who, t)
	if err != nil {
		return 0, err
	}
	for _, a := range to {
		if act.loop.SendToLazily(act.queue.NodeOf(a), &wire.ToStartd{Of: &wire.ToStartd_HoldChecks{
			HoldChecks: &wire.HoldChecks{Attempt: codec.AttemptRef(a), ForNs: int64(period)},
		}}) {
			n++
		}
	}
	if n == 0 {
		return 0, fmt.Errorf("%v: %w: its node does not answer", t, roost.Unavailable)
	}
	return n, nil
}
