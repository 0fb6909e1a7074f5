package scheddapi

import "github.com/roost-batch/roost"

// FromAttempt refers to an attempt in a conversation with its schedd.
func FromAttempt(id roost.AttemptID) *AttemptRef {
	return &AttemptRef{Job: id.Task.Job.Seq, Index: uint32(id.Task.Index), Attempt: uint32(id.Attempt)}
}

// AttemptID returns the id that the reference means in a conversation with that schedd.
func (x *AttemptRef) AttemptID(schedd string) roost.AttemptID {
	job := roost.JobID{Seq: x.GetJob(), Host: schedd}
	return roost.AttemptID{Task: job.Task(int(x.GetIndex())), Attempt: roost.AttemptNumber(x.GetAttempt())}
}
