package policy

import (
	"time"

	"github.com/roost-batch/roost"
)

// GuardObservations contains the complete observations of the guard. A zero BootTime
// means never.
type GuardObservations struct {
	Input   roost.BootTime // the last input of any kind
	Console roost.BootTime // the last input at the machine's own keyboard, mouse or screen
	// why the owner needs the machine now, whatever the times of input; empty: no reason
	OwnerUseReason   string
	ForeignCPU       float64        // cores that processes other than tasks use
	ForeignSince     roost.BootTime // since when that exceeds the threshold; 0: it does not
	MemoryPressure   float64        // percent of the last 10 s in which work waited for memory
	CPUPressure      float64        // percent of the last 10 s in which work waited for CPU time
	MemoryAvailable  roost.Bytes    // bytes available without swapping; 0: unknown
	OnBattery        bool
	Hot              bool
	ExclusiveProgram bool        // an exclusive program runs
	Asleep           bool        // the machine is about to sleep, or was not observed awake since
	Pause            *PauseOrder // nil: it is not paused
	Load             float64     // the kernel's load average of one minute
}

// PauseOrder is the owner's pause of the machine.
type PauseOrder struct {
	By     string    // the user's name
	Reason string    // may be empty
	Until  time.Time // zero: no end
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

// otherOwnerUse returns the reason, other than input, for which the owner needs the
// machine.
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
