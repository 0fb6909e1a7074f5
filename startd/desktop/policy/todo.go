package policy

import (
	"fmt"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// pollInterval is how often time-dependent expressions are evaluated by default
// (HTCondor's POLLING_INTERVAL).
const pollInterval = 5 * time.Second

// memoryPressureLimit is the pressure, in percent, above which a frozen task returns
// memory at once. minMemoryFraction is the fraction of the machine's memory below which
// the available memory is short.
const (
	memoryPressureLimit = 1.0
	minMemoryFraction   = 0.1
)

// Todo returns the effects that are due, in order, and the latest time for the next call.
// Each effect is returned once.
func (c *PolicyCore) Todo(now roost.BootTime) (effects []Effect, wake roost.BootTime) {
	c.advanceTo(now)
	c.evaluate()
	for _, t := range c.claims {
		c.claimAd(t)
		for c.stepClaim(t) {
			c.claimAd(t)
		}
		t.unevaluated = t.unevaluated && c.policy.NeedsGuard && !c.guardReported
	}
	c.updateMachineState(c.verdict.unavailableReason)
	c.nextCheck = c.nextCheckTime()
	effects, c.effects = c.effects, nil
	return effects, c.nextCheck
}

// stepClaim advances a claim by one step, and reports whether it did.
func (c *PolicyCore) stepClaim(t *claimState) bool {
	switch t.activity {
	case Idle:
		return c.stepIdle(t)
	case Busy, Retiring:
		return c.stepRunning(t)
	case Suspended:
		return c.stepSuspended(t)
	case Vacating:
		c.freezeVacating(t)
		if why, ok := c.trueTerm("kill", c.policy.Kill, t); ok || c.now-t.since >= c.policy.VacateTime {
			if !ok {
				why = fmt.Sprintf("it was told to leave %v ago", c.policy.VacateTime)
			}
			c.setActivity(t, Killing, why)
			c.killClaim(t, why)
			return true
		}
	case Killing:
		if c.now-t.lastKill >= c.policy.KillInterval {
			c.killClaim(t, fmt.Sprintf("it is still there after %v", c.now-t.since))
		}
	}
	return false
}

func (c *PolicyCore) stepIdle(t *claimState) bool {
	why, ok := c.freezeReason(t)
	if !ok {
		t.unusableSince = 0
	} else if t.unusableSince == 0 {
		t.unusableSince = c.now
	}
	if ok && c.now-t.unusableSince >= c.policy.ShortVacateDelay {
		return c.vacateClaim(t, why)
	}
	if why, ok := c.trueTerm("preempt", c.policy.Preempt, t); ok {
		return c.vacateClaim(t, why)
	}
	return false
}

func (c *PolicyCore) stepRunning(t *claimState) bool {
	why, ok := c.freezeReason(t)
	if !ok && t.unevaluated && !c.verdict.available && (c.guardReported || !c.policy.NeedsGuard) && !c.mayContinue(t) {
		// it was started on an existing claim while the machine is not available
		why, ok = c.verdict.unavailableReason, true
	}
	if ok {
		t.reason = why
		c.setActivity(t, Suspended, why)
		c.freezeClaim(t, why)
		return true
	}
	why, ok = c.trueTerm("preempt", c.policy.Preempt, t)
	switch {
	case !ok && t.activity == Retiring:
		t.retireBy = 0
		c.setActivity(t, Busy, "it may stay")
		return true
	case !ok:
		return false
	case t.retireBy == 0:
		t.retireBy, t.reason = c.now+c.policy.RetirementTime, why
	}
	if c.now >= t.retireBy {
		return c.vacateClaim(t, t.reason)
	}
	if t.activity == Busy {
		c.setActivity(t, Retiring, why)
		return true
	}
	return false
}

func (c *PolicyCore) stepSuspended(t *claimState) bool {
	if c.mayContinue(t) {
		t.frozen = false
		c.setActivity(t, Busy, "its owner lets it go on")
		c.addEffect(ResumeClaim{t.ID})
		return true
	}
	if why, ok := c.freezeReason(t); ok {
		t.reason = why
	}
	after := c.now - t.since
	if why, ok := c.trueTerm("preempt", c.policy.Preempt, t); ok {
		if strings.Contains(why, presetOrigin) {
			why = ""
		}
		return c.vacateClaim(t, t.vacateReason(after, why))
	}
	if c.verdict.stopReason != "" && min(after, c.now-c.stopSince) >= c.policy.ShortVacateDelay {
		return c.vacateClaim(t, t.vacateReason(after, c.verdict.stopReason))
	}
	if t.GPUs > 0 && !t.gpusFreed && after >= c.policy.GPUGrace {
		t.gpusFreed = true
		c.addEffect(FreeGPU{t.ID, t.reason})
	}
	short := c.isMemoryShort()
	if (short || after >= c.policy.MemoryTrimDelay) &&
		(t.memoryTrimmedAt == 0 || short && c.now-t.memoryTrimmedAt >= c.policy.MemoryTrimDelay) {
		t.memoryTrimmedAt = c.now
		c.addEffect(TrimMemory{t.ID})
	}
	return false
}

// vacateReason returns why a frozen claim is vacated.
func (t *claimState) vacateReason(d time.Duration, why string) string {
	if why == "" || why == t.reason {
		return fmt.Sprintf("%s; its task has stood still for %v", t.reason, d.Round(time.Second))
	}
	return fmt.Sprintf("%s; its task has stood still for %v; %s", t.reason, d.Round(time.Second), why)
}

// vacateDelay returns how long a claim's task may be frozen.
func (c *PolicyCore) vacateDelay(t *claimState) time.Duration {
	if t.GPUs > 0 || c.verdict.stopReason != "" || c.isMemoryShort() {
		return c.policy.ShortVacateDelay
	}
	return c.policy.VacateDelay
}

// isMemoryShort reports whether memory is short.
func (c *PolicyCore) isMemoryShort() bool {
	return c.observations.MemoryPressure > memoryPressureLimit || c.memoryShort()
}

func (c *PolicyCore) memoryShort() bool {
	total, ok := c.options.Ad.Int(roost.AttrTotalMemory)
	return ok && c.observations.MemoryAvailable > 0 &&
		float64(c.observations.MemoryAvailable) < minMemoryFraction*float64(total)*float64(roost.MiB)
}

func (c *PolicyCore) freezeClaim(t *claimState, why string) {
	t.frozen, t.frozenSince, t.gpusFreed, t.memoryTrimmedAt = true, c.now, false, 0
	c.addEffect(FreezeClaim{t.ID, why})
}

// freezeVacating freezes or resumes a task that is being vacated, as the policy requires.
// A task that was vacated while frozen stays frozen.
func (c *PolicyCore) freezeVacating(t *claimState) {
	why, ok := c.freezeReason(t)
	switch {
	case ok && t.Running && !t.frozen:
		c.freezeClaim(t, why)
	case t.frozen && !t.vacatingFrozen && c.mayContinue(t):
		t.frozen = false
		if t.Running {
			c.addEffect(ResumeClaim{t.ID})
		}
	}
}

func (c *PolicyCore) vacateClaim(t *claimState, why string) bool {
	t.reason, t.vacatingFrozen = why, t.frozen
	c.setActivity(t, Vacating, why)
	c.addEffect(VacateClaim{t.ID, why, t.frozen})
	return true
}

func (c *PolicyCore) killClaim(t *claimState, why string) {
	t.lastKill = c.now
	c.addEffect(KillClaim{t.ID, why})
}

// freezeReason returns why a task must be frozen. An expression without a truth value
// counts in favour of the owner.
func (c *PolicyCore) freezeReason(t *claimState) (why string, ok bool) {
	if c.verdict.stopReason != "" {
		return c.verdict.stopReason, true
	}
	for _, term := range c.policy.Suspend {
		v := classad.Eval(term.Expr, c.machineAd, t.Job, c.expressionEnv())
		truth, ok := v.Truth()
		switch {
		case !ok:
			return c.unmetReason("suspend", term, term.Expr, v), true
		case truth && c.verdict.ownerReason != "":
			return c.verdict.ownerReason, true
		case truth:
			if why := c.presetReason(term, term.Expr); why != "" {
				return why, true
			}
			return "suspend of " + term.Origin + ": " + term.Expr.String(), true
		}
	}
	return "", false
}

// mayContinue reports whether a frozen task may resume.
func (c *PolicyCore) mayContinue(t *claimState) bool {
	if _, ok := c.freezeReason(t); ok {
		return false
	}
	for _, term := range c.policy.Continue {
		v := classad.Eval(term.Expr, c.machineAd, t.Job, c.expressionEnv())
		if truth, ok := v.Truth(); !ok || !truth {
			if !ok {
				c.unmetReason("continue", term, term.Expr, v)
			}
			return false
		}
	}
	return true
}

// trueTerm returns the first term that holds. A term without a truth value does not hold,
// and is logged.
func (c *PolicyCore) trueTerm(setting string, terms []ConditionTerm, t *claimState) (why string, ok bool) {
	for _, term := range terms {
		v := classad.Eval(term.Expr, c.machineAd, t.Job, c.expressionEnv())
		truth, sense := v.Truth()
		if !sense {
			c.unmetReason(setting, term, term.Expr, v)
		} else if truth {
			return setting + " of " + term.Origin + ": " + term.Expr.String(), true
		}
	}
	return "", false
}

// updateMachineState derives the machine's state from its claims and its availability.
func (c *PolicyCore) updateMachineState(cause string) {
	if cause == "" {
		cause = "as its claims do"
	}
	leaving, running, frozenCount, retiring := 0, 0, 0, 0
	most := Idle
	for _, t := range c.claims {
		switch t.activity {
		case Vacating, Killing:
			leaving++
			most = max(most, t.activity)
		case Suspended:
			frozenCount++
		case Retiring:
			retiring++
		case Busy:
			running++
		}
	}
	activity := Idle
	switch {
	case running > 0:
		activity = Busy
	case retiring > 0:
		activity = Retiring
	case frozenCount > 0:
		activity = Suspended
	case leaving > 0:
		activity = most
	}
	switch all := len(c.claims); {
	case all > 0 && leaving == all:
		if c.state != Claimed && c.state != Preempting {
			c.setMachineState(Claimed, Idle, "somebody has a claim")
		}
		c.setMachineState(Preempting, most, c.claims[0].reason)
	case all > 0 && leaving > 0 && activity == most:
		c.setMachineState(Claimed, Idle, cause) // the other claims have no tasks
	case all > 0:
		c.setMachineState(Claimed, activity, cause)
	case c.verdict.available:
		c.setMachineState(Unclaimed, Idle, "nobody is here")
	default:
		c.setMachineState(OwnerState, Idle, c.verdict.unavailableReason)
	}
}

// nextCheckTime returns the time of the next check.
func (c *PolicyCore) nextCheckTime() roost.BootTime {
	if c.isSteady() {
		return Never
	}
	wake := c.now + c.options.Poll
	for _, d := range []time.Duration{min(presentAfterInput, c.policy.ResumeDelay), c.policy.ResumeDelay,
		c.startDelay()} {
		wake = c.wakeBy(wake, c.presence.lastInput+d)
		wake = c.wakeBy(wake, c.lastOwnerUse+d)
	}
	for _, t := range c.claims {
		for _, d := range []time.Duration{c.policy.GPUGrace, c.policy.MemoryTrimDelay, c.policy.ShortVacateDelay,
			c.policy.VacateDelay, c.policy.VacateTime} {
			wake = c.wakeBy(wake, t.since+d)
		}
		wake = c.wakeBy(wake, t.retireBy)
		wake = c.wakeBy(wake, t.lastKill+c.policy.KillInterval)
	}
	if !c.guardReported && c.policy.NeedsGuard {
		wake = c.wakeBy(wake, c.startedAt+guardPatience)
	}
	return wake
}

// wakeBy returns the earlier of two times, if at is in the future.
func (c *PolicyCore) wakeBy(wake, at roost.BootTime) roost.BootTime {
	if at > c.now && at < wake {
		return at
	}
	return wake
}

// isSteady reports whether no decision depends on the time. Then the policy has no
// conditions, and no task is frozen or being vacated.
func (c *PolicyCore) isSteady() bool {
	if c.policy.NeedsGuard || c.verdict.stopReason != "" || len(c.rules.NoRunHours) > 0 {
		return false
	}
	for _, t := range c.claims {
		if t.activity > Busy {
			return false
		}
	}
	for _, terms := range [][]ConditionTerm{c.policy.Start, c.policy.Suspend, c.policy.Continue, c.policy.Preempt,
		c.policy.Kill} {
		for _, term := range terms {
			if _, fixed := term.Expr.Literal(); !fixed {
				return false
			}
		}
	}
	return true
}
