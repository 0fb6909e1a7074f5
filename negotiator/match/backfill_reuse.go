package match

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/timeline"
)

// BackfillReservation is what is reserved of a machine for a request that found no room:
// see [BackfillSettings].
//
// To make a plan again costs much more than to know that it would be the same. A caller
// that makes one plan after another for one machine may store the last reservation,
// report to it what has happened since, and plan only what LeavesRoom does not rule out.
// The bounds below are for requests without a part in the reservation, on a machine
// without other reservations.
type BackfillReservation struct {
	Request *Request
	Machine *Machine
	// unix seconds: when the request starts; now if the start is unknown and it gets what
	// becomes free
	From       int64
	FreeBeside roost.Resources // free at From, beside all reservations of the machine
}

// LeavesRoom is false if a task that runs from now to until cannot run beside the
// reservation. It does not check that there is room now.
func (h *BackfillReservation) LeavesRoom(until int64, r roost.Resources) bool {
	return until <= h.From || timeline.HasRoom(&r, &h.FreeBeside)
}

// AddFreed records that resources have become free before their expected time, over.
//
// Before over that much more is free, and after it nothing has changed. So the request
// may start earlier than From, and a task that would not have ended by then does not end
// sooner. What is free beside the request when it starts is no more than at From, because
// free resources only grow; and at From it is what it was, or that much more.
func (h *BackfillReservation) AddFreed(over int64, r roost.Resources) {
	if over > h.From {
		h.FreeBeside = h.FreeBeside.Add(r)
	}
}

// AddDelayed records that resources become free later than expected, at later and not at
// over. It is false if less is free at From than before: then the request may start
// later, and the reservation must be computed again. Otherwise nothing changes, because
// before From there is even less.
func (h *BackfillReservation) AddDelayed(over, later int64) bool {
	return over > h.From || later <= h.From
}
