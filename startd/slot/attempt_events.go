package slot

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/mutant"
)

// ClaimCreated notes that a claim is written down: from now on a restart finds it. The
// schedd is told, unless it has opened another session since, whose welcome names the
// claim.
func (c *ClaimTable) ClaimCreated(id ClaimID) {
	claim := c.claims[id]
	if claim == nil || claim.State != Creating {
		return
	}
	if claim.hasPlacement {
		claim.setState(Idle)
	} else {
		claim.setState(Waiting)
	}
	if claim.endReason != "" {
		c.dropClaim(claim, claim.endReason)
		return
	}
	if c.sessions.isCurrent(claim.Schedd, claim.session) {
		c.addEffect(AcceptClaim{claim.session, claim})
	}
}

// ClaimFailed notes that there is no starter for a claim: it could not be made, or it has
// died. What ran on it is gone.
func (c *ClaimTable) ClaimFailed(now roost.BootTime, id ClaimID, reason string) {
	claim := c.claims[id]
	if claim == nil {
		return
	}
	if claim.State == Creating && c.sessions.isCurrent(claim.Schedd, claim.session) {
		c.addEffect(RejectClaim{claim.session, claim.Grant, reason})
	}
	switch {
	case claim.State == Exited: // what happened is known, and kept
		claim.endReason = reason
		c.releaseResources(claim)
		c.nodeQueues().leaveQueue(claim)
		c.nextDeadline = min(c.nextDeadline, claim.nextDeadline(c.opt.ExitRetention))
	case claim.hasQueuedAttempt():
		claim.endReason = reason
		c.nodeQueues().cancelQueued(claim, Machine, reason)
	case claim.hasLiveAttempt():
		claim.endReason = reason
		c.Ended(now, id, claim.Attempt)
	default:
		c.dropClaim(claim, reason)
	}
}

// Activate handles a schedd's command to run an attempt on a claim. On a claim that
// waits, the attempt starts when the claim has its resources. Beside an earlier attempt
// of the task that is on its way out, it starts when that one has gone. The error says
// why it does not start. It is roost.Stale when the command is old and needs no answer.
// Effects report all other errors to the schedd.
func (c *ClaimTable) Activate(now roost.BootTime, session uint64, schedd string, id ClaimID, a roost.AttemptID,
	terms AttemptInfo) error {
	if !c.sessions.isCurrent(schedd, session) {
		return fmt.Errorf("attempt %v: %w: its session has ended", a, roost.Stale)
	}
	if on := c.tasks[a.Task]; on != nil && on.Attempt == a {
		return fmt.Errorf("attempt %v: %w: it is here already", a, roost.Stale)
	}
	c.now = now
	err := c.activate(schedd, id, a, terms)
	if err != nil {
		claim := c.claims[id]
		c.addEffect(RejectActivation{schedd, id, claim == nil || claim.Schedd != schedd, a, err.Error()})
	}
	return err
}

func (c *ClaimTable) activate(schedd string, id ClaimID, a roost.AttemptID, terms AttemptInfo) error {
	claim := c.claims[id]
	switch {
	case claim == nil || claim.Schedd != schedd:
		return fmt.Errorf("claim %d: %w on this machine", id, roost.NotFound)
	case claim.endReason != "":
		return fmt.Errorf("claim %d: %w: %s", id, roost.Finished, claim.endReason)
	// a welcome names claims that are being made
	case claim.State != Idle && claim.State != Creating && (claim.State != Waiting || claim.hasQueuedAttempt()):
		return fmt.Errorf("claim %d: %w: it is %v", id, roost.Conflict, claim.State)
	case c.deferredStarts().isNextAttempt(a):
		c.deferred[id] = deferredActivation{c.sessions[schedd].id, schedd, a, terms}
		return nil
	case c.tasks[a.Task] != nil:
		return fmt.Errorf("attempt %v: %w: attempt %d of its task is here", a, roost.Conflict,
			c.tasks[a.Task].Attempt.Attempt)
	case !c.sessions[schedd].fence.advance(a):
		return fmt.Errorf("attempt %v: %w: a later one was here, or itself", a, roost.Invalid)
	}
	claim.Attempt, claim.Running, claim.stopMode, claim.AttemptInfo = a, false, notStopping, terms
	c.tasks[a.Task] = claim
	if gap := c.now - claim.exitedAt; claim.exitedAt > 0 && gap < maxGap {
		c.runtimes.gaps.add(gap)
	}
	switch {
	case claim.hasPlacement:
		claim.setState(Busy)
		c.addEffect(StartAttempt{claim, a})
	case claim.State == Creating:
		claim.setState(Waiting) // Todo starts it when its turn has come
	}
	return nil
}

// Started notes that the processes of a claim's attempt run.
func (c *ClaimTable) Started(now roost.BootTime, id ClaimID, a roost.AttemptID) {
	if claim := c.claims[id]; claim != nil && claim.hasLiveAttempt() && claim.Attempt == a && !claim.Running {
		claim.Running, claim.RunningSince = true, now
		c.reclaimer().resetUsageEstimate(claim)
		c.addEffect(ReportStarted{claim, a})
	}
}

// Ended notes that no process of a claim's attempt is left, or that it will never have
// one.
func (c *ClaimTable) Ended(now roost.BootTime, id ClaimID, a roost.AttemptID) {
	claim := c.claims[id]
	if claim == nil || !claim.hasLiveAttempt() || claim.Attempt != a {
		return
	}
	c.now = now
	if allocsOf(c).holdsOpen(claim) {
		return // when those inside have ended, this is called again
	}
	if claim.Running {
		c.runtimes.addRun(taskKind{claim.Owner, claim.Resources}, now-claim.RunningSince)
	}
	claim.setState(Exited)
	c.now, claim.Running, claim.exitedAt = now, false, now
	if claim.Inside != 0 { // before the end of its alloc, if that waits for this
		c.addEffect(ReportExited{claim, a})
	}
	switch {
	case claim.endReason != "":
		c.releaseResources(claim)
	case claim.hasPlacement:
		c.nodeQueues().yieldResources(claim)
	default:
		c.nodeQueues().rejoinQueue(claim)
	}
	claim.ProcessesGone, claim.releaseAt = false, 0
	if !c.sessions.has(claim.Schedd) {
		c.leases().shortenLease(claim)
	}
	if claim.Inside == 0 {
		c.addEffect(ReportExited{claim, a})
	}
	c.nextDeadline = min(c.nextDeadline, claim.nextDeadline(c.opt.ExitRetention))
}

// Acknowledged takes a schedd's word that the end of an attempt is on its disk. It
// reports whether that was news.
func (c *ClaimTable) Acknowledged(session uint64, schedd string, a roost.AttemptID) bool {
	claim, ok := c.Find(a)
	if !ok || !c.sessions.isCurrent(schedd, session) || claim.Schedd != schedd || claim.State != Exited {
		return false
	}
	if claim.endReason != "" {
		c.dropClaim(claim, claim.endReason)
		return true
	}
	if claim.hasPlacement {
		claim.setState(Idle)
	} else {
		claim.setState(Waiting)
	}
	delete(c.tasks, a.Task)
	claim.Attempt = roost.AttemptID{}
	c.addEffect(DiscardAttempt{claim, a})
	c.nextDeadline = min(c.nextDeadline, claim.nextDeadline(c.opt.ExitRetention))
	return true
}

// RequestVacate takes a schedd's wish that an attempt ends.
func (c *ClaimTable) RequestVacate(session uint64, schedd string, a roost.AttemptID, cause EndCause, fast bool,
	reason string) bool {
	claim, ok := c.Find(a)
	if !ok && c.sessions.isCurrent(schedd, session) {
		return c.deferredStarts().cancelDeferred(schedd, a, reason)
	}
	if !ok || !c.sessions.isCurrent(schedd, session) || claim.Schedd != schedd || !claim.hasLiveAttempt() &&
		!claim.hasQueuedAttempt() {
		return false
	}
	if claim.hasQueuedAttempt() {
		c.nodeQueues().cancelQueued(claim, cause, reason)
	} else {
		c.vacateAttempt(claim, cause, fast, reason)
	}
	return true
}

// vacateAttempt may be asked for again: only what hurries it is told.
func (c *ClaimTable) vacateAttempt(claim *Claim, cause EndCause, fast bool, reason string) {
	how := graceful
	if fast {
		how = immediate
	}
	if how <= claim.stopMode {
		return
	}
	claim.stopMode = how
	if mutant.Active(mutant.RoomFreedBeforeExit) {
		c.releaseResources(claim)
	}
	if claim.State == Busy {
		claim.setState(Vacating)
	}
	order := VacateAttempt{claim, claim.Attempt, cause, fast, reason}
	if !allocsOf(c).endInsideFirst(order) {
		c.addEffect(order)
	}
}

// Release takes a schedd's word that it needs a claim no more. What runs on it is killed,
// and its end reported; one that has ended is forgotten.
func (c *ClaimTable) Release(session uint64, schedd string, id ClaimID) bool {
	claim := c.claims[id]
	if claim == nil || claim.Schedd != schedd || !c.sessions.isCurrent(schedd, session) {
		return false
	}
	c.endWhenIdle(claim, Removed, true, "its schedd gave it back")
	return true
}

// Drain begins the end of this machine's service: claims on which nothing runs are
// dropped, the others vacated.
func (c *ClaimTable) Drain(reason string) {
	if c.drainReason != "" {
		return
	}
	c.drainReason = reason
	c.version++
	for _, id := range slices.Sorted(maps.Keys(c.claims)) {
		if claim := c.claims[id]; claim == nil {
			continue // it was inside an alloc that is drained
		} else if claim.State == Exited {
			c.dropEnded(claim, reason)
		} else {
			c.endWhenIdle(claim, Vacated, false, reason)
		}
	}
}

// endWhenIdle ends a claim as soon as nothing runs on it.
func (c *ClaimTable) endWhenIdle(claim *Claim, cause EndCause, fast bool, reason string) {
	claim.endReason = reason
	switch claim.State {
	case Creating: // Made sees it
	case Busy, Vacating:
		c.vacateAttempt(claim, cause, fast, reason)
	default:
		if claim.hasQueuedAttempt() {
			c.nodeQueues().cancelQueued(claim, cause, reason)
		} else {
			c.dropClaim(claim, reason)
		}
	}
}

// SetWalltime notes that an attempt has another walltime than it began with; 0: none.
func (c *ClaimTable) SetWalltime(a roost.AttemptID, walltime time.Duration) {
	if claim, ok := c.Find(a); ok {
		claim.Walltime = walltime
	}
}
