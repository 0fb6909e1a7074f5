package startd

import (
	"time"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/owner"
	"github.com/roost-batch/roost/startd/slot"
)

// obeyAll does what the machine's owner wants, those first who are to stand still. It reports whether there were such.
func (l *loop) obeyAll(orders []owner.Order) (stops bool) {
	for _, o := range orders {
		if f, ok := o.(owner.Freeze); ok {
			if !stops {
				l.sinceInput()
			}
			stops = true
			l.stopFor(slot.ClaimID(f.ID), l.m.ofOwner(f.Reason))
		}
	}
	for _, o := range orders {
		l.obeyOwner(o)
	}
	return stops
}

// lately is how long ago input may have been for tasks to be stopped because of it, and not of something that came after.
const lately = 2 * time.Second

// sinceInput counts the time until tasks stand still from the input that stops them, where it is that.
func (l *loop) sinceInput() {
	o := l.lent
	if o.signs == nil || o.pending {
		return
	}
	if ago := boottime() - slot.Instant(o.signs.GetInput()); ago >= 0 && ago < lately {
		o.began = time.Now().Add(-ago)
	}
}

// stopFor has a claim stand still from now on. An attempt that is only about to run goes: it has done nothing yet.
func (l *loop) stopFor(id slot.ClaimID, why string) {
	c, ok := l.core.Claim(id)
	h := l.hands[id]
	if !ok || h == nil {
		return
	}
	l.lent.still[id] = why
	l.hold(h, why)
	if c.State == slot.Busy && !c.Running {
		l.core.Expel(id, true, why)
		return
	}
	l.m.today.interrupted(time.Now())
	l.tellSuspended(c, why)
}

func (l *loop) tellSuspended(c *slot.Claim, why string) {
	l.tell(c.Schedd, &wire.FromStartd{Of: &wire.FromStartd_Suspended{Suspended: &wire.Suspended{
		Attempt: reference(c.Attempt), Frozen: why != "", Reason: why,
	}}})
}

func (l *loop) obeyOwner(order owner.Order) {
	switch o := order.(type) {
	case owner.Thaw:
		l.goOn(slot.ClaimID(o.ID))
	case owner.FreeGPU:
		l.core.Expel(slot.ClaimID(o.ID), false, "its GPU is needed: "+l.m.ofOwner(o.Reason))
	case owner.Shrink:
		if h := l.hands[slot.ClaimID(o.ID)]; h != nil {
			h.box.put(shrink{})
		}
	case owner.Leave:
		id := slot.ClaimID(o.ID)
		c, ok := l.core.Claim(id)
		asked := ok && c.State == slot.Vacating // it stands still in the time that it was given to end
		l.core.Expel(id, o.Still && asked, l.m.ofOwner(o.Reason))
	case owner.Kill:
		l.strike(slot.ClaimID(o.ID), l.m.ofOwner(o.Reason))
	case owner.Moved:
		l.m.log.Info("owner", "claim", o.ID, "from", o.From, "to", o.To, "cause", o.Cause)
	case owner.Complain:
		l.m.log.Warn("policy", "what", o.What)
	}
}

// goOn lets a claim go on, unless its lease has run out: where all of this machine stood still for long, as a virtual one may that its host has stopped,
// owners are found to be away and leases to be over in the same moment, and the next attempt may run elsewhere.
func (l *loop) goOn(id slot.ClaimID) {
	if c, ok := l.core.Claim(id); ok && boottime() >= c.Lease {
		return
	}
	delete(l.lent.still, id)
	h := l.hands[id]
	if h == nil {
		return
	}
	l.hold(h, "")
	h.box.put(wentOn{})
	if c, ok := l.core.Claim(id); ok && c.State == slot.Busy && c.Running {
		l.tellSuspended(c, "")
	}
}

// strike ends a claim at once. The second time what is left of it is killed past its starter, which may be stuck.
func (l *loop) strike(id slot.ClaimID, why string) {
	l.core.Expel(id, true, why)
	if l.lent.struck[id] {
		if h := l.hands[id]; h != nil {
			go h.still.kill()
		}
	}
	l.lent.struck[id] = true
}

// awaitStill waits, beside the loop, until everything stands still that has to.
func (l *loop) awaitStill() {
	o := l.lent
	o.batch++
	o.pending = true
	all := make([]*holding, 0, len(o.still))
	for id := range o.still {
		if h := l.hands[id]; h != nil {
			all = append(all, &h.still)
		}
	}
	batch, began := o.batch, o.began
	go func() {
		l.m.groups.hurry(true)
		left := allStand(all)
		l.m.groups.hurry(false)
		l.m.post(stood{batch, time.Since(began), left})
	}()
}

// stood takes in that a batch has come to rest. Only then has the guard's word been acted on.
func (l *loop) stood(n stood) {
	o := l.lent
	if n.left > 0 {
		l.m.log.Error("tasks do not come to rest: they wait in the kernel", "claims", n.left, "for", n.took)
	}
	if n.batch != o.batch {
		return
	}
	o.pending = false
	l.m.today.took(time.Now(), n.took)
	if o.signs != nil {
		o.acted = o.signs.GetSequence()
	}
	if len(o.still) > 0 {
		l.m.log.Info("tasks stand still for the owner of the machine", "claims", len(o.still), "took", n.took)
	}
	l.reportTo()
}
