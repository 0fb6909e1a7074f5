package api

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/codec"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/transfer"
)

// requestCheckpoints asks the nodes of a target's running tasks for checkpoints, and
// returns how many were asked for.
func (act *jobActions) requestCheckpoints(now time.Time, who queue.CallerIdentity,
	t queue.TaskSelector) (n uint32, err error) {
	attempts, err := act.queue.CheckpointTargets(now, who, t)
	if err != nil {
		return 0, err
	}
	for _, a := range attempts {
		st, _ := act.queue.TaskStatus(a.Task)
		if act.loop.SendToLazily(st.Task.Node,
			&wire.ToStartd{Of: &wire.ToStartd_Checkpoint{Checkpoint: &wire.TakeCheckpoint{Attempt: codec.AttemptRef(a),
				Reason: transfer.CheckpointRequested}}}) {
			n++
		}
	}
	if n > 0 {
		act.loop.HurryCommit()
	}
	if n == 0 {
		return 0, fmt.Errorf("%v: %w: its node does not answer", t, roost.Unavailable)
	}
	return n, nil
}
