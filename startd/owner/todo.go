package owner

import (
	"fmt"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// poll is how often expressions are weighed that may change with time, unless the options say otherwise (HTCondor's POLLING_INTERVAL).
const poll = 5 * time.Second

// shortMemory is the pressure, in percent, above which a task that stands still gives memory back at once, and memoryLeft the part of the machine's below
// which what is available is little.
const (
	shortMemory = 1.0
	memoryLeft  = 0.1
)

// Todo returns what is to be done, in order, and the instant by which to ask again if nothing happens before. What it returned once it does not return again.
func (c *Core) Todo(now Instant) (orders []Order, wake Instant) {
	c.advance(now)
	c.weigh()
	for _, t := range c.tenants {
		c.dressFor(t)
		for c.step(t) {
			c.dressFor(t)
		}
		t.fresh = t.fresh && c.policy.Guarded && !c.heard
	}
	c.settle(c.verdict.why)
	c.wake = c.next()
	orders, c.orders = c.orders, nil
	return orders, c.wake
}

// step takes a claim one step on, and reports whether it did.
func (c *Core) step(t *tenant) bool {
	switch t.activity {
	case Idle:
		return c.stepIdle(t)
	case Busy, Retiring:
		return c.stepRunning(t)
	case Suspended:
		return c.stepSuspended(t)
	case Vacating:
		c.pauseLeaving(t)
		if why, ok := c.any("kill", c.policy.Kill, t); ok || c.now-t.since >= c.policy.Vacate {
			if !ok {
				why = fmt.Sprintf("it was told to leave %v ago", c.policy.Vacate)
			}
			c.become(t, Killing, why)
			c.kill(t, why)
			return true
		}
	case Killing:
		if c.now-t.struck >= c.policy.Killing {
			c.kill(t, fmt.Sprintf("it is still there after %v", c.now-t.since))
		}
	}
	return false
}

func (c *Core) stepIdle(t *tenant) bool {
	why, ok := c.standing(t)
	if !ok {
		t.barred = 0
	} else if t.barred == 0 {
		t.barred = c.now
	}
	if ok && c.now-t.barred >= c.policy.LeaveSoon {
		return c.leave(t, why)
	}
	if why, ok := c.any("preempt", c.policy.Preempt, t); ok {
		return c.leave(t, why)
	}
	return false
}

func (c *Core) stepRunning(t *tenant) bool {
	why, ok := c.standing(t)
	if !ok && t.fresh && !c.verdict.willing && (c.heard || !c.policy.Guarded) && !c.mayContinue(t) {
		why, ok = c.verdict.why, true // it was begun on an old claim while the machine is not lent
	}
	if ok {
		t.cause = why
		c.become(t, Suspended, why)
		c.freeze(t, why)
		return true
	}
	why, ok = c.any("preempt", c.policy.Preempt, t)
	switch {
	case !ok && t.activity == Retiring:
		t.retireBy = 0
		c.become(t, Busy, "it may stay")
		return true
	case !ok:
		return false
	case t.retireBy == 0:
		t.retireBy, t.cause = c.now+c.policy.Retire, why
	}
	if c.now >= t.retireBy {
		return c.leave(t, t.cause)
	}
	if t.activity == Busy {
		c.become(t, Retiring, why)
		return true
	}
	return false
}

func (c *Core) stepSuspended(t *tenant) bool {
	if c.mayContinue(t) {
		t.still = false
		c.become(t, Busy, "its owner lets it go on")
		c.emit(Thaw{t.ID})
		return true
	}
	if why, ok := c.standing(t); ok {
		t.cause = why
	}
	after := c.now - t.since
	if why, ok := c.any("preempt", c.policy.Preempt, t); ok {
		if strings.Contains(why, fromPreset) {
			why = ""
		}
		return c.leave(t, t.standsFor(after, why))
	}
	if c.verdict.stop != "" && min(after, c.now-c.stopFrom) >= c.policy.LeaveSoon {
		return c.leave(t, t.standsFor(after, c.verdict.stop))
	}
	if t.GPUs > 0 && !t.freed && after >= c.policy.GPUGrace {
		t.freed = true
		c.emit(FreeGPU{t.ID, t.cause})
	}
	short := c.tight()
	if (short || after >= c.policy.ShrinkAfter) && (t.shrunk == 0 || short && c.now-t.shrunk >= c.policy.ShrinkAfter) {
		t.shrunk = c.now
		c.emit(Shrink{t.ID})
	}
	return false
}

// standsFor says why a claim leaves that stands still.
func (t *tenant) standsFor(d time.Duration, why string) string {
	if why == "" || why == t.cause {
		return fmt.Sprintf("%s; its task has stood still for %v", t.cause, d.Round(time.Second))
	}
	return fmt.Sprintf("%s; its task has stood still for %v; %s", t.cause, d.Round(time.Second), why)
}

// leaveAfter is for how long a claim's task may stand still.
func (c *Core) leaveAfter(t *tenant) time.Duration {
	if t.GPUs > 0 || c.verdict.stop != "" || c.tight() {
		return c.policy.LeaveSoon
	}
	return c.policy.LeaveAfter
}

// tight reports whether memory is short.
func (c *Core) tight() bool { return c.signs.MemoryPressure > shortMemory || c.memoryShort() }

func (c *Core) memoryShort() bool {
	total, ok := c.opt.Ad.Int(roost.AttrTotalMemory)
	return ok && c.signs.MemoryAvailable > 0 && float64(c.signs.MemoryAvailable) < memoryLeft*float64(total)*float64(roost.MiB)
}

func (c *Core) freeze(t *tenant, why string) {
	t.still, t.stopped, t.freed, t.shrunk = true, c.now, false, 0
	c.emit(Freeze{t.ID, why})
}

// pauseLeaving lets a task that is leaving stand still as long as it must, unless it was told to leave as it stood.
func (c *Core) pauseLeaving(t *tenant) {
	why, ok := c.standing(t)
	switch {
	case ok && t.Running && !t.still:
		c.freeze(t, why)
	case t.still && !t.final && c.mayContinue(t):
		t.still = false
		if t.Running {
			c.emit(Thaw{t.ID})
		}
	}
}

func (c *Core) leave(t *tenant, why string) bool {
	t.cause, t.final = why, t.still
	c.become(t, Vacating, why)
	c.emit(Leave{t.ID, why, t.still})
	return true
}

func (c *Core) kill(t *tenant, why string) {
	t.struck = c.now
	c.emit(Kill{t.ID, why})
}

// standing says why a task is to stand still. An expression that makes no sense is on the owner's side.
func (c *Core) standing(t *tenant) (why string, ok bool) {
	if c.verdict.stop != "" {
		return c.verdict.stop, true
	}
	for _, term := range c.policy.Suspend {
		v := classad.Eval(term.Expr, c.my, t.Job, c.env())
		truth, ok := v.Truth()
		switch {
		case !ok:
			return c.unmet("suspend", term, term.Expr, v), true
		case truth && c.verdict.busy != "":
			return c.verdict.busy, true
		case truth:
			if why := c.preset(term, term.Expr); why != "" {
				return why, true
			}
			return "suspend of " + term.From + ": " + term.Expr.String(), true
		}
	}
	return "", false
}

// mayContinue reports whether a task that stands still may go on.
func (c *Core) mayContinue(t *tenant) bool {
	if _, ok := c.standing(t); ok {
		return false
	}
	for _, term := range c.policy.Continue {
		v := classad.Eval(term.Expr, c.my, t.Job, c.env())
		if truth, ok := v.Truth(); !ok || !truth {
			if !ok {
				c.unmet("continue", term, term.Expr, v)
			}
			return false
		}
	}
	return true
}

// any says which of some terms holds. One that makes no sense does not, and is complained of.
func (c *Core) any(setting string, terms []Term, t *tenant) (why string, ok bool) {
	for _, term := range terms {
		v := classad.Eval(term.Expr, c.my, t.Job, c.env())
		truth, sense := v.Truth()
		if !sense {
			c.unmet(setting, term, term.Expr, v)
		} else if truth {
			return setting + " of " + term.From + ": " + term.Expr.String(), true
		}
	}
	return "", false
}

// settle makes the machine's state that of its claims, and of what it is willing to do.
func (c *Core) settle(cause string) {
	if cause == "" {
		cause = "as its claims do"
	}
	leaving, running, still, retiring := 0, 0, 0, 0
	most := Idle
	for _, t := range c.tenants {
		switch t.activity {
		case Vacating, Killing:
			leaving++
			most = max(most, t.activity)
		case Suspended:
			still++
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
	case still > 0:
		activity = Suspended
	case leaving > 0:
		activity = most
	}
	switch all := len(c.tenants); {
	case all > 0 && leaving == all:
		if c.state != Claimed && c.state != Preempting {
			c.move(Claimed, Idle, "somebody has a claim")
		}
		c.move(Preempting, most, c.tenants[0].cause)
	case all > 0 && leaving > 0 && activity == most:
		c.move(Claimed, Idle, cause) // the others have nothing to run
	case all > 0:
		c.move(Claimed, activity, cause)
	case c.verdict.willing:
		c.move(Unclaimed, Idle, "nobody is here")
	default:
		c.move(Owner, Idle, c.verdict.why)
	}
}

// next is when to ask again.
func (c *Core) next() Instant {
	if c.still() {
		return Never
	}
	wake := c.now + c.opt.Poll
	for _, d := range []time.Duration{min(present, c.policy.ResumeAfter), c.policy.ResumeAfter, c.startAfter()} {
		wake = c.sooner(wake, c.person.last+d)
		wake = c.sooner(wake, c.noisy+d)
	}
	for _, t := range c.tenants {
		for _, d := range []time.Duration{c.policy.GPUGrace, c.policy.ShrinkAfter, c.policy.LeaveSoon, c.policy.LeaveAfter, c.policy.Vacate} {
			wake = c.sooner(wake, t.since+d)
		}
		wake = c.sooner(wake, t.retireBy)
		wake = c.sooner(wake, t.struck+c.policy.Killing)
	}
	if !c.heard && c.policy.Guarded {
		wake = c.sooner(wake, c.began+patience)
	}
	return wake
}

// sooner is the earlier of two instants, if at is still to come.
func (c *Core) sooner(wake, at Instant) Instant {
	if at > c.now && at < wake {
		return at
	}
	return wake
}

// still reports whether nothing here changes with time: the policy stands aside, and nobody is stopped or leaves.
func (c *Core) still() bool {
	if c.policy.Guarded || c.verdict.stop != "" || len(c.rules.Hours) > 0 {
		return false
	}
	for _, t := range c.tenants {
		if t.activity > Busy {
			return false
		}
	}
	for _, terms := range [][]Term{c.policy.Start, c.policy.Suspend, c.policy.Continue, c.policy.Preempt, c.policy.Kill} {
		for _, term := range terms {
			if _, fixed := term.Expr.Literal(); !fixed {
				return false
			}
		}
	}
	return true
}
