package slot

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/plant"
)

// Made notes that a claim is written down: from now on a restart finds it. The schedd is told, unless it has opened another session since, whose
// welcome names the claim.
func (c *Core) Made(id ClaimID) {
	claim := c.claims[id]
	if claim == nil || claim.State != Making {
		return
	}
	if claim.holds {
		claim.become(Idle)
	} else {
		claim.become(Waiting)
	}
	if claim.ending != "" {
		c.drop(claim, claim.ending)
		return
	}
	if c.current(claim.Schedd, claim.session) {
		c.emit(Answer{claim.session, claim})
	}
}

// Unmade notes that there is no starter for a claim: it could not be made, or it has died. What ran on it is gone.
func (c *Core) Unmade(now Instant, id ClaimID, reason string) {
	claim := c.claims[id]
	if claim == nil {
		return
	}
	if claim.State == Making && c.current(claim.Schedd, claim.session) {
		c.emit(Refuse{claim.session, claim.Grant, reason})
	}
	switch {
	case claim.State == Exited: // what happened is known, and kept
		claim.ending = reason
		c.giveBack(claim)
		c.leave(claim)
		c.wake = min(c.wake, claim.due(c.opt.KeepExits))
	case claim.queued():
		claim.ending = reason
		c.withdraw(claim, Machine, reason)
	case claim.live():
		claim.ending = reason
		c.Ended(now, id, claim.Attempt)
	default:
		c.drop(claim, reason)
	}
}

// Activated takes a schedd's word that an attempt is to run on a claim; on one that waits, when it has got its resources, and beside an earlier attempt
// of the task that is on its way out, when that has gone. The error says why it does not; it is roost.Stale when the word is old and
// needs no answer. All others the effects tell the schedd.
func (c *Core) Activated(now Instant, session uint64, schedd string, id ClaimID, a roost.AttemptID, terms Terms) error {
	if !c.current(schedd, session) {
		return fmt.Errorf("attempt %v: %w: its session has ended", a, roost.Stale)
	}
	if on := c.tasks[a.Task]; on != nil && on.Attempt == a {
		return fmt.Errorf("attempt %v: %w: it is here already", a, roost.Stale)
	}
	c.now = now
	err := c.activate(schedd, id, a, terms)
	if err != nil {
		claim := c.claims[id]
		c.emit(Decline{schedd, id, claim == nil || claim.Schedd != schedd, a, err.Error()})
	}
	return err
}

func (c *Core) activate(schedd string, id ClaimID, a roost.AttemptID, terms Terms) error {
	claim := c.claims[id]
	switch {
	case claim == nil || claim.Schedd != schedd:
		return fmt.Errorf("claim %d: %w on this machine", id, roost.NotFound)
	case claim.ending != "":
		return fmt.Errorf("claim %d: %w: %s", id, roost.Finished, claim.ending)
	case claim.State != Idle && claim.State != Making && (claim.State != Waiting || claim.queued()): // a welcome names claims that are being made
		return fmt.Errorf("claim %d: %w: it is %v", id, roost.Conflict, claim.State)
	case c.follows(a):
		c.parked[id] = parked{c.sessions[schedd].id, schedd, a, terms}
		return nil
	case c.tasks[a.Task] != nil:
		return fmt.Errorf("attempt %v: %w: attempt %d of its task is here", a, roost.Conflict, c.tasks[a.Task].Attempt.Attempt)
	case !c.sessions[schedd].fence.pass(a):
		return fmt.Errorf("attempt %v: %w: a later one was here, or itself", a, roost.Invalid)
	}
	claim.Attempt, claim.Running, claim.told, claim.Terms = a, false, untold, terms
	c.tasks[a.Task] = claim
	if gap := c.now - claim.ended; claim.ended > 0 && gap < maxGap {
		c.times.gaps.add(gap)
	}
	switch {
	case claim.holds:
		claim.become(Busy)
		c.emit(Start{claim, a})
	case claim.State == Making:
		claim.become(Waiting) // Todo starts it when its turn has come
	}
	return nil
}

// Started notes that the processes of a claim's attempt run.
func (c *Core) Started(now Instant, id ClaimID, a roost.AttemptID) {
	if claim := c.claims[id]; claim != nil && claim.live() && claim.Attempt == a && !claim.Running {
		claim.Running, claim.Began = true, now
		c.unlend(claim)
		c.emit(TellStarted{claim, a})
	}
}

// Ended notes that no process of a claim's attempt is left, or that it will never have one.
func (c *Core) Ended(now Instant, id ClaimID, a roost.AttemptID) {
	claim := c.claims[id]
	if claim == nil || !claim.live() || claim.Attempt != a {
		return
	}
	if claim.Running {
		c.times.ran(kind{claim.Owner, claim.Resources}, now-claim.Began)
	}
	claim.become(Exited)
	c.now, claim.Running, claim.ended = now, false, now
	switch {
	case claim.ending != "":
		c.giveBack(claim)
	case claim.holds:
		c.yield(claim)
	default:
		c.rejoin(claim)
	}
	claim.Over, claim.vacant = false, 0
	if !c.heard(claim.Schedd) {
		c.orphan(claim)
	}
	c.emit(TellExited{claim, a})
	c.wake = min(c.wake, claim.due(c.opt.KeepExits))
}

// Acknowledged takes a schedd's word that the end of an attempt is on its disk. It reports whether that was news.
func (c *Core) Acknowledged(session uint64, schedd string, a roost.AttemptID) bool {
	claim, ok := c.Find(a)
	if !ok || !c.current(schedd, session) || claim.Schedd != schedd || claim.State != Exited {
		return false
	}
	if claim.ending != "" {
		c.drop(claim, claim.ending)
		return true
	}
	if claim.holds {
		claim.become(Idle)
	} else {
		claim.become(Waiting)
	}
	delete(c.tasks, a.Task)
	claim.Attempt = roost.AttemptID{}
	c.emit(Forget{claim, a})
	c.wake = min(c.wake, claim.due(c.opt.KeepExits))
	return true
}

// VacateAsked takes a schedd's wish that an attempt ends.
func (c *Core) VacateAsked(session uint64, schedd string, a roost.AttemptID, cause Cause, fast bool, reason string) bool {
	claim, ok := c.Find(a)
	if !ok && c.current(schedd, session) {
		return c.recall(schedd, a, reason)
	}
	if !ok || !c.current(schedd, session) || claim.Schedd != schedd || !claim.live() && !claim.queued() {
		return false
	}
	if claim.queued() {
		c.withdraw(claim, cause, reason)
	} else {
		c.vacate(claim, cause, fast, reason)
	}
	return true
}

// vacate may be asked for again: only what hurries it is told.
func (c *Core) vacate(claim *Claim, cause Cause, fast bool, reason string) {
	how := gently
	if fast {
		how = atOnce
	}
	if how <= claim.told {
		return
	}
	claim.told = how
	if plant.Is(plant.EarlyRoom) {
		c.giveBack(claim)
	}
	if claim.State == Busy {
		claim.become(Vacating)
	}
	c.emit(Vacate{claim, claim.Attempt, cause, fast, reason})
}

// Released takes a schedd's word that it needs a claim no more. What runs on it is killed, and its end reported; one that has ended is forgotten.
func (c *Core) Released(session uint64, schedd string, id ClaimID) bool {
	claim := c.claims[id]
	if claim == nil || claim.Schedd != schedd || !c.current(schedd, session) {
		return false
	}
	c.finish(claim, Removed, true, "its schedd gave it back")
	return true
}

// Drained begins the end of this machine's service: claims on which nothing runs are dropped, the others vacated.
func (c *Core) Drained(reason string) {
	if c.draining != "" {
		return
	}
	c.draining = reason
	c.version++
	for _, id := range slices.Sorted(maps.Keys(c.claims)) {
		if claim := c.claims[id]; claim.State == Exited {
			c.bury(claim, reason)
		} else {
			c.finish(claim, Vacated, false, reason)
		}
	}
}

// finish ends a claim as soon as nothing runs on it.
func (c *Core) finish(claim *Claim, cause Cause, fast bool, reason string) {
	claim.ending = reason
	switch claim.State {
	case Making: // Made sees it
	case Busy, Vacating:
		c.vacate(claim, cause, fast, reason)
	default:
		if claim.queued() {
			c.withdraw(claim, cause, reason)
		} else {
			c.drop(claim, reason)
		}
	}
}

// Limited notes that an attempt has another walltime than it began with; 0: none.
func (c *Core) Limited(a roost.AttemptID, walltime time.Duration) {
	if claim, ok := c.Find(a); ok {
		claim.Walltime = walltime
	}
}
