package match

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/timeline"
)

// BackfillReservation is what is held of a machine for a request that found no room: see
// [Backfill].
//
// To ask for a plan again costs much more than to know that it would be the same. So who
// makes one plan after the other of one machine may keep what the last one has held, tell
// it what has happened since, and ask only for what that leaves. The bounds below are for
// requests that have no part in what is held, on a machine of which nothing else is held.
// Whatever LeavesRoom does not rule out the plan decides.
type BackfillReservation struct {
	Request *Request
	Machine *Machine
	// unix seconds: when it is to start; now where nobody knows when that is, and it gets
	// what falls free
	From       int64
	FreeBeside roost.Resources // what is free then, beside all that is held of the machine
}

// LeavesRoom is false if something cannot run beside what is held from now on until such
// a time, even if there is room for it now.
func (h *BackfillReservation) LeavesRoom(until int64, r roost.Resources) bool {
	return until <= h.From || timeline.HasRoom(&r, &h.FreeBeside)
}

// AddFreed notes that something has fallen free before it was to, at over.
//
// Before over as much more is free, and after it all is as before. So the request may
// start earlier than From, and who would not have ended by then ends no sooner. What is
// free beside it when it starts is no more than at From, for what is free only rises; and
// at From it is what it was, or as much more.
func (h *BackfillReservation) AddFreed(over int64, r roost.Resources) {
	if over > h.From {
		h.FreeBeside = h.FreeBeside.Add(r)
	}
}

// AddDelayed notes that something will not fall free at over, but later. It is false if
// what is held has to be worked out anew, for the request may start later than at From:
// if less is free at From than before. Else all is as it was, for before From there is
// even less.
func (h *BackfillReservation) AddDelayed(over, later int64) bool {
	return over > h.From || later <= h.From
}
