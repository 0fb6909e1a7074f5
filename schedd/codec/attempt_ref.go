package codec

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// AttemptRef is the wire's form of an attempt: the host of the id is the schedd's own.
func AttemptRef(a roost.AttemptID) *wire.AttemptRef {
	return &wire.AttemptRef{Job: a.Task.Job.Seq, Index: uint32(a.Task.Index), Attempt: uint32(a.Attempt)}
}

// AttemptID is the id that a reference stands for.
func AttemptID(host string, r *wire.AttemptRef) roost.AttemptID {
	if r == nil {
		return roost.AttemptID{}
	}
	job := roost.JobID{Seq: r.GetJob(), Host: host}
	return roost.AttemptID{Task: job.Task(int(r.GetIndex())), Attempt: roost.AttemptNumber(r.GetAttempt())}
}
