package slot

import (
	"maps"
	"slices"

	"github.com/roost-batch/roost"
)

// parked is a schedd's word that an attempt is to run, while an earlier attempt of the same task still has to go: after a sleep, a machine hears of the next
// attempt in the moment in which it finds the lease of the last one to be over. To decline would look like the machine's fault, and be said again and
// again until the task is held for it.
type parked struct {
	session uint64
	schedd  string
	attempt roost.AttemptID
	terms   Terms
}

// follows reports whether an attempt is the next of a task whose present one is on its way out.
func (c *Core) follows(a roost.AttemptID) bool {
	on := c.tasks[a.Task]
	return on != nil && on.Attempt.Attempt < a.Attempt && (on.State == Vacating || on.State == Exited)
}

// unpark starts what had to wait and need not any more. What the schedd does not mean any more is forgotten: its claim has gone, or its session.
func (c *Core) unpark() {
	for _, id := range slices.Sorted(maps.Keys(c.parked)) {
		p := c.parked[id]
		switch claim := c.claims[id]; {
		case claim == nil || claim.Schedd != p.schedd || !c.current(p.schedd, p.session):
			delete(c.parked, id)
		case !c.follows(p.attempt):
			delete(c.parked, id)
			_ = c.Activated(c.now, p.session, p.schedd, id, p.attempt, p.terms) // the effects tell the schedd
		}
	}
}

// recall takes back the word for a parked attempt, and tells the schedd that it will not run.
func (c *Core) recall(schedd string, a roost.AttemptID, reason string) bool {
	for id, p := range c.parked {
		if p.attempt == a && p.schedd == schedd {
			delete(c.parked, id)
			c.emit(Decline{schedd, id, false, a, reason})
			return true
		}
	}
	return false
}
