package slot

import (
	"maps"
	"slices"

	"github.com/roost-batch/roost"
)

// deferredActivation is an activation that waits until an earlier attempt of the task has
// gone. After a sleep, a machine hears of the next attempt at the moment when it finds
// the lease of the last one expired. To decline would look like the machine's fault. The
// schedd would try again and again, until the task is held for it.
type deferredActivation struct {
	session uint64
	schedd  string
	attempt roost.AttemptID
	terms   AttemptInfo
}

// deferredStarts is the claim table as far as attempts wait for an earlier one of their
// task to go.
type deferredStarts struct{ *ClaimTable }

func (c *ClaimTable) deferredStarts() deferredStarts { return deferredStarts{c} }

// isNextAttempt reports whether an attempt is the next of a task whose present one is on
// its way out.
func (c deferredStarts) isNextAttempt(a roost.AttemptID) bool {
	on := c.tasks[a.Task]
	return on != nil && on.Attempt.Attempt < a.Attempt && (on.State == Vacating || on.State == Exited)
}

// activateDeferred starts what had to wait and need not any more. What the schedd does
// not mean any more is forgotten: its claim has gone, or its session.
func (c deferredStarts) activateDeferred() {
	for _, id := range slices.Sorted(maps.Keys(c.deferred)) {
		p := c.deferred[id]
		switch claim := c.claims[id]; {
		case claim == nil || claim.Schedd != p.schedd || !c.sessions.isCurrent(p.schedd, p.session):
			delete(c.deferred, id)
		case !c.isNextAttempt(p.attempt):
			delete(c.deferred, id)
			_ = c.Activate(c.now, p.session, p.schedd, id, p.attempt, p.terms) // the effects tell the schedd
		}
	}
}

// cancelDeferred takes back the word for a parked attempt, and tells the schedd that it
// will not run.
func (c deferredStarts) cancelDeferred(schedd string, a roost.AttemptID, reason string) bool {
	for id, p := range c.deferred {
		if p.attempt == a && p.schedd == schedd {
			delete(c.deferred, id)
			c.addEffect(RejectActivation{schedd, id, false, a, reason})
			return true
		}
	}
	return false
}
