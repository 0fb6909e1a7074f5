package policy

import (
	"time"

	"github.com/roost-batch/roost"
)

// GuardObservations is what the guard sees of the machine and of its owner: a whole
// picture each time. A zero BootTime stands for never.
type GuardObservations struct {
	Input   BootTime // the last time that a person touched the machine, however
	Console BootTime // the same, of keyboard, mouse and screen only
	// why the machine is its owner's now, whatever the times of input say; empty: nothing
	// of that kind
	OwnerUseReason   string
	ForeignCPU       float64     // cores that processes other than tasks keep busy
	ForeignSince     BootTime    // since when that is above what counts as use; 0: it is not
	MemoryPressure   float64     // percent of the last 10 s in which somebody waited for memory
	CPUPressure      float64     // likewise for processor time
	MemoryAvailable  roost.Bytes // that the kernel could give without pushing anybody out; 0: not known
	OnBattery        bool
	Hot              bool
	ExclusiveProgram bool        // an exclusive program runs
	Asleep           bool        // the machine is about to sleep, or has not been seen awake since
	Pause            *PauseOrder // nil: it is not paused
	Load             float64     // the kernel's average of one minute
}

// PauseOrder is the owner's word that nothing runs.
type PauseOrder struct {
	By     string    // the user's name
	Reason string    // may be empty
	Until  time.Time // zero: for good
}

func (p *PauseOrder) String() string {
	text := "paused"
	if p.By != "" {
		text += " by " + p.By
	}
	if !p.Until.IsZero() {
		text += " until " + p.Until.Format("Mon 15:04")
	}
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	return text
}

// otherOwnerUse is what keeps the machine for its owner apart from input, as far as it
// may count.
func (s *GuardObservations) otherOwnerUse(onBattery bool) string {
	switch {
	case s.OwnerUseReason != "":
		return s.OwnerUseReason
	case s.ExclusiveProgram:
		return "a program runs that wants the machine for itself"
	case s.ForeignSince != 0:
		return "programs of its owner keep the processor busy"
	case s.OnBattery && !onBattery:
		return "it runs on its battery"
	case s.Hot:
		return "it is hot"
	}
	return ""
}
