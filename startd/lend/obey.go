package lend

import (
	"github.com/roost-batch/roost/startd/owner"
	"github.com/roost-batch/roost/startd/slot"
)

// obey does what the machine's owner wants, those first who are to stand still. It reports whether there were such.
func (l *Lender) obey(now slot.Instant, orders []owner.Order) (froze bool) {
	for _, o := range orders {
		if f, ok := o.(owner.Freeze); ok {
			froze = true
			l.stop(slot.ClaimID(f.ID), l.ofOwner(f.Reason))
		}
	}
	for _, o := range orders {
		l.do(now, o)
	}
	return froze
}

// stop has a claim stand still from now on. An attempt that is only about to run goes: it has done nothing yet.
func (l *Lender) stop(id slot.ClaimID, why string) {
	c, ok := l.books.Claim(id)
	if !ok || !l.hands.Present(id) {
		return
	}
	l.still[id] = why
	l.hands.Hold(id, why)
	if c.State == slot.Busy && !c.Running {
		l.books.Expel(id, true, why)
		return
	}
	l.hands.Suspended(c, why)
}

func (l *Lender) do(now slot.Instant, order owner.Order) {
	switch o := order.(type) {
	case owner.Thaw:
		l.goOn(now, slot.ClaimID(o.ID))
	case owner.FreeGPU:
		l.books.Expel(slot.ClaimID(o.ID), false, "its GPU is needed: "+l.ofOwner(o.Reason))
	case owner.Shrink:
		if id := slot.ClaimID(o.ID); l.hands.Present(id) {
			l.hands.Shrink(id)
		}
	case owner.Leave:
		id := slot.ClaimID(o.ID)
		c, ok := l.books.Claim(id)
		asked := ok && c.State == slot.Vacating // it stands still in the time that it was given to end
		l.books.Expel(id, o.Still && asked, l.ofOwner(o.Reason))
	case owner.Kill:
		l.strike(slot.ClaimID(o.ID), l.ofOwner(o.Reason))
	case owner.Moved, owner.Complain:
		l.hands.Note(o)
	}
}

// goOn lets a claim go on, unless its lease has run out: where all of this machine stood still for long, as a virtual one may that its host has stopped,
// owners are found to be away and leases to be over in the same moment, and the next attempt may run elsewhere.
func (l *Lender) goOn(now slot.Instant, id slot.ClaimID) {
	c, ok := l.books.Claim(id)
	if ok && now >= c.Lease {
		return
	}
	delete(l.still, id)
	if !l.hands.Present(id) {
		return
	}
	l.hands.GoOn(id)
	if ok && c.State == slot.Busy && c.Running {
		l.hands.Suspended(c, "")
	}
}

// strike ends a claim at once. The second time what is left of it is killed past its starter, which may be stuck.
func (l *Lender) strike(id slot.ClaimID, why string) {
	l.books.Expel(id, true, why)
	if l.struck[id] && l.hands.Present(id) {
		l.hands.Kill(id)
	}
	l.struck[id] = true
}
