package startd

import (
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/owner"
	"github.com/roost-batch/roost/startd/slot"
)

// holders are the hands of the loop, for the machine's owner.
type holders struct{ *loop }

// All implements lend.Hands.
func (l holders) All() []slot.ClaimID { return slices.Collect(maps.Keys(l.hands)) }

// Present implements lend.Hands.
func (l holders) Present(id slot.ClaimID) bool { return l.hands[id] != nil }

// Hold implements lend.Hands.
func (l holders) Hold(id slot.ClaimID, why string) { l.hold(l.hands[id], why) }

func (l *loop) hold(h *hand, why string) {
	if err := h.still.want(why); err != nil {
		l.m.log.Error("a claim cannot be stopped for the machine's owner", "claim", h.id, "err", err)
	}
}

// GoOn implements lend.Hands.
func (l holders) GoOn(id slot.ClaimID) {
	h := l.hands[id]
	l.hold(h, "")
	h.box.put(wentOn{})
}

// Suspended implements lend.Hands.
func (l holders) Suspended(c *slot.Claim, why string) {
	if why != "" {
		l.m.today.interrupted(time.Now())
	}
	l.tell(c.Schedd, &wire.FromStartd{Of: &wire.FromStartd_Suspended{Suspended: &wire.Suspended{
		Attempt: reference(c.Attempt), Frozen: why != "", Reason: why,
	}}})
}

// Shrink implements lend.Hands.
func (l holders) Shrink(id slot.ClaimID) { l.hands[id].box.put(shrink{}) }

// Kill implements lend.Hands.
func (l holders) Kill(id slot.ClaimID) { go l.hands[id].still.kill() }

// Measured implements lend.Hands.
func (l holders) Measured(c *slot.Claim) (memory roost.Bytes, savable bool) {
	if u := l.m.meters.find(c.ID, c.Attempt); u != nil {
		u.mu.Lock()
		memory = roost.Bytes(u.last.GetMemory())
		u.mu.Unlock()
	}
	return memory, l.m.meters.saved(c).Can
}

// Note implements lend.Hands.
func (l holders) Note(order owner.Order) {
	switch o := order.(type) {
	case owner.Moved:
		l.m.log.Info("owner", "claim", o.ID, "from", o.From, "to", o.To, "cause", o.Cause)
	case owner.Complain:
		l.m.log.Warn("policy", "what", o.What)
	}
}

// awaitStill waits, beside the loop, until everything stands still that has to.
func (l *loop) awaitStill() {
	o := l.lent
	o.batch++
	o.pending = true
	all := make([]*holding, 0, len(o.Still()))
	for id := range o.Still() {
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
	if still := len(o.Still()); still > 0 {
		l.m.log.Info("tasks stand still for the owner of the machine", "claims", still, "took", n.took)
	}
	l.reportTo()
}
