package condor

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// StateNumber is HTCondor's JobStatus.
type StateNumber int

// The states of a job in HTCondor's numbers.
const (
	Idle               StateNumber = 1
	Running            StateNumber = 2
	Removed            StateNumber = 3
	Completed          StateNumber = 4
	Held               StateNumber = 5
	TransferringOutput StateNumber = 6
	Suspended          StateNumber = 7
)

// StateNumberOf returns the state of a task.
func StateNumberOf(s *scheddapi.JobStatus) StateNumber {
	state, err := roost.ParseTaskState(s.GetState())
	if err != nil {
		return Idle
	}
	if s.GetRemoved() && state != roost.Completed {
		return Removed // as in HTCondor also while its process still ends
	}
	switch state {
	case roost.Starting, roost.Running:
		return Running
	case roost.Exiting:
		return TransferringOutput
	case roost.Suspended:
		return Suspended
	case roost.Held:
		return Held
	case roost.Completed:
		return Completed
	case roost.Removed:
		return Removed
	}
	return Idle
}

// IsFinal reports whether a job in this state has ended.
func (n StateNumber) IsFinal() bool { return n == Completed || n == Removed }

// Letter is the state in the column ST.
func (n StateNumber) Letter() string {
	if n < Idle || n > Suspended {
		return "?"
	}
	return "IRXCH>S"[n-1 : n]
}
