package api

import (
	"bytes"
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/codec"
	"github.com/roost-batch/roost/schedd/queue"
)

// maxLine bounds a line for the output of a job, in bytes.
const maxLine = 4 << 10

// sendOutputMessage has a line written into the output of a target's running tasks. It
// returns how many those are. Like a signal, the line goes out once.
func (act *jobActions) sendOutputMessage(now time.Time, who queue.CallerIdentity, t queue.TaskSelector,
	req *wire.ActRequest) (n uint32, err error) {
	line := req.GetMessage()
	if len(line) > maxLine || bytes.IndexByte(line, 0) >= 0 {
		return 0, fmt.Errorf("%v: %w: a message has at most %d bytes, and none of them is zero", t,
			roost.Invalid, maxLine)
	}
	to, err := act.queue.OutputMessageTargets(now, who, t)
	if err != nil {
		return 0, err
	}
	for _, a := range to {
		if act.loop.SendToLazily(act.queue.NodeOf(a), &wire.ToStartd{Of: &wire.ToStartd_Message{Message: &wire.Message{
			Attempt: codec.AttemptRef(a), Line: line, Out: req.GetOut(), Err: req.GetErr(),
		}}}) {
			n++
		}
	}
	if n == 0 {
		return 0, fmt.Errorf("%v: %w: its node does not answer", t, roost.Unavailable)
	}
	return n, nil
}
