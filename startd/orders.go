package startd

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
	"github.com/roost-batch/roost/startd/starter"
)

// What a hand is told, in order.
type (
	makeClaim struct{ lease time.Duration }
	start     struct {
		id      roost.AttemptID
		program *wire.Program
		hold    bool
	}
	settle struct { // what the claim holds now that has waited
		placed gpu.Saved
		cores  []int
	}
	launch struct{ id roost.AttemptID }
	// squeeze holds the claim to so much processor time; 0: it may have what there is.
	squeeze struct{ most roost.MilliCPU }
	vacate  struct {
		id     roost.AttemptID
		cause  wire.Cause
		fast   bool
		reason string
		notice time.Duration // at most, when above 0
	}
	// kick is a signal that somebody sends to all processes of the task.
	kick struct {
		id     roost.AttemptID
		signal unix.Signal
	}
	// limit is what the task is held to from now on; 0: nothing.
	limit struct {
		id            roost.AttemptID
		walltime, cpu time.Duration
	}
	// inscribe is a line that somebody writes into the output of the task.
	inscribe struct {
		id       roost.AttemptID
		line     string // with its end
		out, err bool
	}
	renew  struct{ deadline slot.Instant }
	forget struct{ id roost.AttemptID }
	// dismiss removes everything; leave ends the starter and keeps what a later startd needs.
	dismiss struct{}
	leave   struct{}
	said    struct{ event starter.Event }
	// overdue says that the starter has had time enough to end an attempt whose lease is over.
	overdue struct{ id roost.AttemptID }
	// wentOn says that the owner of the machine lets the claim go on; shrink, that its task is to give back what memory it can do without.
	wentOn struct{}
	shrink struct{}
)
