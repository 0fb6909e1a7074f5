package metrics

import (
	"slices"
	"strings"

	"github.com/roost-batch/roost"
)

// Numbers of the values of labels that snapshots are indexed by.
const (
	BandCount  = int(roost.MonitoringBand) + 1
	StateCount = int(roost.Exiting) + 1 // of open tasks: the final states are left out
	CauseCount = len(causeNames)
)

func bandLabel() Label { return Label{Name: "band", Values: roost.BandNames()} }

func stateLabel() Label { return Label{Name: "state", Values: roost.TaskStateNames()[:StateCount]} }

// causeNames are the causes of ends by their numbers on the wire, as roost-json(7) names
// them, and last LostCause.
var causeNames = [...]string{"exited", "walltime", "removed", "vacated", "lease", "launch", "machine", "memory",
	"gpu_memory", "disk", "restore", "preempted", "cpu_time", "virtual_memory", "refused", "lost"}

// LostCause is the index of the cause of an attempt that is gone without an exit status.
const LostCause = CauseCount - 1

func causeLabel() Label { return Label{Name: "cause", Values: causeNames[:]} }

// waitReasons are the kinds of reasons why tasks wait, by the numbers that the matcher
// gives them, and last UnexplainedWait.
var waitReasons = [...]string{"other", "no_match", "policy", "owner_active", "drained", "too_small", "refused",
	"kept_apart", "reserved", "busy", "held", "limit", "gang", "unexplained"}

// The number of reasons, and the index of the last: nobody has explained the wait yet.
const (
	WaitReasonCount = len(waitReasons)
	UnexplainedWait = WaitReasonCount - 1
)

func waitReasonLabel() Label { return Label{Name: "reason", Values: waitReasons[:]} }

// WaitReason returns the index of a reason by its name in an explanation, such as "no
// match". An unknown one is the first, "other".
func WaitReason(kind string) int {
	return max(slices.Index(waitReasons[:], strings.ReplaceAll(kind, " ", "_")), 0)
}

// Amount states of cores, memory and GPUs.
const (
	HeldAmount    = iota // by claims
	FreeAmount           // a task could have it now
	DrainedAmount        // of drained machines, and held by nobody
	OwnerAmount          // of machines that their owners use, and held by nobody
	AmountStates  = iota
)

func amountLabel() Label {
	return Label{Name: "state", Values: []string{"held", "free", "drained", "owner"}}
}

// AddAmounts adds the amounts of one machine by their states. state is the attribute
// State of its ad.
func AddAmounts(to *[AmountStates]float64, state string, total, free float64) {
	free = min(max(free, 0), total)
	to[HeldAmount] += total - free
	to[AmountState(state)] += free
}

// AmountState returns the state of what nobody holds of a machine, by the attribute State
// of its ad.
func AmountState(state string) int {
	switch state {
	case "Drained":
		return DrainedAmount
	case "Owner":
		return OwnerAmount
	}
	return FreeAmount
}
