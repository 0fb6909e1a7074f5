package startd

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
	"github.com/roost-batch/roost/startd/starterclient"
)

// What a hand is told, in order.
type (
	createClaimCmd  struct{ lease time.Duration }
	startAttemptCmd struct {
		id         roost.AttemptID
		program    *wire.Program
		awaitInput bool
	}
	placementCmd struct { // what the claim holds now that has waited
		placement gpu.SavedPlacement
		cores     []int
	}
	inputReadyCmd struct{ attemptID roost.AttemptID }
	// throttleCmd holds the claim to so much processor time; 0: it may have what there
	// is.
	throttleCmd struct{ cpuMax roost.MilliCPU }
	vacateCmd   struct {
		id     roost.AttemptID
		cause  wire.Cause
		fast   bool
		reason string
		notice time.Duration // at most, when above 0
	}
	// signalCmd is a signal that somebody sends to all processes of the task.
	signalCmd struct {
		id     roost.AttemptID
		signal unix.Signal
	}
	// setLimitsCmd is what the task is held to from now on; 0: nothing.
	setLimitsCmd struct {
		id                roost.AttemptID
		walltime, cpuTime time.Duration
	}
	// hostFilesCmd is what the files say from now on that tell the task which machines its
	// job has.
	hostFilesCmd struct {
		id          roost.AttemptID
		nodes, gpus []string // lines
	}
	// outputMessageCmd is a line that somebody writes into the output of the task.
	outputMessageCmd struct {
		id       roost.AttemptID
		line     string // with its end
		out, err bool
	}
	renewLeaseCmd     struct{ deadline slot.BootTime }
	discardAttemptCmd struct{ id roost.AttemptID }
	// removeClaimCmd removes everything; leave ends the starter and keeps what a later
	// startd needs.
	removeClaimCmd struct{}
	detachCmd      struct{}
	starterEvent   struct{ event starterclient.Event }
	// leaseOverdue says that the starter has had time enough to end an attempt whose
	// lease is over.
	leaseOverdue struct{ id roost.AttemptID }
	// ownerResumed says that the owner of the machine lets the claim go on; shrink, that
	// its task is to give back what memory it can do without.
	ownerResumed  struct{}
	trimMemoryCmd struct{}
)
