package policy

import (
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// machineState is the current result of evaluating the policy for the machine.
type machineState struct {
	stopReason        string // why no task may run, whatever the policy says; empty: tasks may run
	ownerReason       string // why the owner needs the machine, including stopReason; empty: no reason
	available         bool   // claims may be created, independent of the job
	unavailableReason string // why the machine is not available
}

// wallClock returns the current wall clock time.
func (c *PolicyCore) wallClock() time.Time { return c.wall.Add(c.now - c.wallAt) }

// expressionEnv returns the environment for the evaluation of expressions.
func (c *PolicyCore) expressionEnv() *classad.EvalEnv { return &classad.EvalEnv{Now: c.wallClock()} }

// unixTime converts a boot time with the current wall clock. So differences to time() are
// durations of this machine, even if the clock was set meanwhile.
func (c *PolicyCore) unixTime(at roost.BootTime) int64 { return c.wallClock().Add(at - c.now).Unix() }

// stopReason returns why no task may run, whatever the policy says.
func (c *PolicyCore) stopReason() string {
	switch {
	case c.observations.Pause != nil:
		return c.observations.Pause.String()
	case c.rulesError != "":
		return "the owner's file cannot be read: " + c.rulesError
	case c.rules.Paused:
		return "paused by the owner's file"
	case c.policy.NeedsGuard && c.guardLost:
		return "its guard is not heard of"
	case c.policy.NeedsGuard && !c.guardReported && c.now-c.startedAt >= guardPatience:
		return "its guard has not been heard of yet"
	case c.observations.Asleep && c.policy.NeedsGuard:
		return "it goes to sleep"
	}
	for _, h := range c.rules.NoRunHours {
		if h.Contains(c.wallClock()) {
			return "its owner keeps the hours " + h.Text
		}
	}
	return ""
}

// evaluate evaluates the state of the machine and updates its ad for the policy.
func (c *PolicyCore) evaluate() {
	v := machineState{stopReason: c.stopReason()}
	if (v.stopReason == "") != (c.verdict.stopReason == "") {
		c.stopSince = c.now
	}
	v.ownerReason = v.stopReason
	if v.ownerReason == "" && c.guardReported && c.policy.NeedsGuard {
		if v.ownerReason = c.observations.otherOwnerUse(c.rules.RunsOnBattery); v.ownerReason == "" &&
			c.keyboardIdle() < min(presentAfterInput, c.policy.ResumeDelay) {
			v.ownerReason = "its owner is active"
		}
	}
	c.verdict = v
	c.addAttributes()
	c.evaluateStart()
}

// keyboardIdle returns how long there was no input.
func (c *PolicyCore) keyboardIdle() time.Duration {
	if c.guardLost || c.observations.OwnerUseReason != "" || c.observations.ExclusiveProgram {
		return 0
	}
	return max(c.now-c.presence.lastInput, 0)
}

// startDelay returns how long the machine must be without input to become available.
func (c *PolicyCore) startDelay() time.Duration {
	if c.presence.wasShortTouch() {
		return c.policy.ShortStartDelay
	}
	return c.policy.StartDelay
}

// addAttributes writes the current state into the ad that the policy sees. Attributes
// that only a guard can know are missing before its first report.
func (c *PolicyCore) addAttributes() {
	ad, s, wall := c.machineAd, &c.observations, c.wallClock()
	if c.guardReported {
		ad.SetInt(roost.AttrKeyboardIdle, seconds(c.keyboardIdle()))
		ad.SetInt(roost.AttrConsoleIdle, seconds(min(max(c.now-s.Console, 0), c.now)))
		ad.SetInt(roost.AttrQuietTime, seconds(c.now-c.lastOwnerUse))
		ad.SetReal(roost.AttrLoadAvg, s.Load)
		ad.SetReal(roost.AttrCondorLoad, max(s.Load-s.ForeignCPU, 0))
		ad.SetReal(roost.AttrForeignCpu, s.ForeignCPU)
		ad.SetReal(roost.AttrMemoryPressure, s.MemoryPressure)
		ad.SetReal(roost.AttrCpuPressure, s.CPUPressure)
		ad.SetBool(roost.AttrOnBattery, s.OnBattery)
		ad.SetBool(roost.AttrAsleep, s.Asleep)
		c.cpuHysteresis()
	}
	ad.SetBool(roost.AttrPaused, s.Pause != nil || c.rules.Paused)
	ad.SetBool(roost.AttrOwnerBusy, c.verdict.ownerReason != "")
	ad.SetString(roost.AttrOwnerBusyReason, c.verdict.ownerReason)
	ad.SetInt(roost.AttrOwnerStart, seconds(c.startDelay()))
	ad.SetInt(roost.AttrOwnerResume, seconds(c.policy.ResumeDelay))
	ad.SetInt(roost.AttrOwnerLeave, seconds(c.policy.VacateDelay))
	ad.SetInt(roost.AttrClockMin, int64(wall.Hour()*60+wall.Minute()))
	ad.SetInt(roost.AttrClockDay, int64(wall.Weekday()))
	c.setTask(ad, c.state.String(), c.activity.String(), c.enteredState, c.enteredActivity)
	ad.Delete(roost.AttrJobStart)
}

func (c *PolicyCore) setTask(ad *classad.Ad, state, activity string, enteredState, enteredActivity roost.BootTime) {
	ad.SetString(roost.AttrState, state)
	ad.SetString(roost.AttrActivity, activity)
	ad.SetInt(roost.AttrEnteredState, c.unixTime(enteredState))
	ad.SetInt(roost.AttrEnteredActivity, c.unixTime(enteredActivity))
	ad.SetInt(roost.AttrStateTimer, seconds(c.now-enteredState))
	ad.SetInt(roost.AttrActivityTimer, seconds(c.now-enteredActivity))
}

// claimAd changes the ad to the view of one claim.
func (c *PolicyCore) claimAd(t *claimState) {
	entered := t.claimedAt
	if t.activity >= Vacating {
		entered = t.vacateAt
	}
	c.setTask(c.machineAd, t.state().String(), t.activity.String(), entered, t.since)
	c.machineAd.SetInt(roost.AttrOwnerLeave, seconds(c.vacateDelay(t)))
	if t.Running {
		c.machineAd.SetInt(roost.AttrJobStart, c.unixTime(t.AttemptStarted))
	} else {
		c.machineAd.Delete(roost.AttrJobStart)
	}
}

// cpuHysteresis records since when other work uses the CPU. The attribute CpuBusy of the
// node file decides that, or else the guard.
func (c *PolicyCore) cpuHysteresis() {
	busy, since := c.observations.ForeignSince != 0, c.observations.ForeignSince
	if e, ok := c.options.Ad.Lookup("CpuBusy"); ok {
		busy, since = classad.Eval(e, c.machineAd, nil, c.expressionEnv()).IsTrue(), c.now
		if busy && c.cpuBusy {
			since = c.cpuBusySince
		}
	}
	c.cpuBusy, c.cpuBusySince = busy, since
	c.machineAd.SetBool(roost.AttrCpuIsBusy, busy)
	value, at := int64(0), int64(0)
	if busy {
		value, at = 1, c.unixTime(since)
	}
	c.machineAd.SetInt(roost.AttrCpuBusyValue, value)
	c.machineAd.SetInt(roost.AttrCpuBusyTime, at)
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

// evaluateStart decides whether claims may be created, and which part of Start is left
// for the job.
func (c *PolicyCore) evaluateStart() {
	v, env := &c.verdict, c.expressionEnv()
	var left []string
	mixed := false
	for _, term := range c.policy.Start {
		for _, e := range classad.Conjuncts(term.Expr) {
			if c.dependsOnJob(e) {
				left = append(left, "("+e.String()+")")
				mixed = mixed || dependsOnGuard(e)
				continue
			}
			value := classad.Eval(e, c.machineAd, nil, env)
			if truth, ok := value.Truth(); (!ok || !truth) && v.unavailableReason == "" {
				v.unavailableReason = c.unmetReason("start", term, e, value)
			}
		}
	}
	switch {
	case v.stopReason != "":
		v.unavailableReason = v.stopReason
	case c.policy.NeedsGuard && !c.guardReported:
		v.unavailableReason = "its guard has not been heard of yet"
	case v.ownerReason != "" && v.unavailableReason != "":
		v.unavailableReason = v.ownerReason
	}
	v.available = v.unavailableReason == ""
	start := strings.Join(left, " && ")
	if !v.available {
		start = "false"
	} else if start == "" {
		start = "true"
	}
	if start != c.start || v.unavailableReason != c.startReason || mixed && c.now-c.describedAt >= adRefresh {
		c.start, c.startReason, c.describedAt = start, v.unavailableReason, c.now
		c.version++
	}
}

// adRefresh is the interval of rebuilding the ad while the job's condition contains the
// idle time.
const adRefresh = time.Minute

// unmetReason returns why a term does not hold, and logs an error if it has no truth
// value.
func (c *PolicyCore) unmetReason(setting string, term ConditionTerm, e classad.Expr, value classad.Value) string {
	if _, ok := value.Truth(); ok {
		if why := c.presetReason(term, e); why != "" {
			return why
		}
		return setting + " of " + term.Origin + ": " + e.String() + " is false"
	}
	text := setting + " of " + term.Origin + ": " + e.String() + " is " + strings.ToUpper(value.String())
	if r := value.Reason(); r != "" {
		text += " (" + r + ")"
	} else if names := c.unknownNames(e); len(names) > 0 {
		text += ", as nothing is known of " + strings.Join(names, ", ")
	}
	if (c.guardReported || !c.policy.NeedsGuard) && !c.loggedErrors[text] && len(c.loggedErrors) < maxLoggedErrors {
		c.loggedErrors[text] = true
		c.addEffect(LogPolicyError{text})
	}
	return text
}

// presetReason describes the condition of a preset in words.
func (c *PolicyCore) presetReason(term ConditionTerm, e classad.Expr) string {
	if !strings.HasPrefix(term.Origin, presetOrigin) {
		return ""
	}
	_, _, about := classad.References(e)
	switch {
	case slices.Contains(about, roost.AttrClockMin):
		return "these are working hours"
	case slices.Contains(about, roost.AttrKeyboardIdle):
		return "its owner left less than " + c.startDelay().String() + " ago"
	case slices.Contains(about, roost.AttrQuietTime):
		return "it has not been quiet for " + c.policy.ResumeDelay.String()
	}
	return ""
}

// maxLoggedErrors bounds the logged errors: each is logged once.
const maxLoggedErrors = 100

// dependsOnJob reports whether an expression depends on the job. It does if it uses
// TARGET, or a name that the machine's ad does not have.
func (c *PolicyCore) dependsOnJob(e classad.Expr) bool {
	return c.hasName(e, nil, func(scope, name string) bool {
		_, known := c.machineAd.Lookup(name)
		return scope == "TARGET" || scope == "" && !known && !isGuardAttribute(name)
	})
}

// unknownNames lists the unknown names in an expression.
func (c *PolicyCore) unknownNames(e classad.Expr) []string {
	var names []string
	c.hasName(e, nil, func(scope, name string) bool {
		if _, known := c.machineAd.Lookup(name); scope != "TARGET" && !known && !slices.Contains(names, name) {
			names = append(names, name)
		}
		return false
	})
	return names
}

// hasName reports whether found holds for a name in an expression, or in the machine
// attributes to which it refers.
func (c *PolicyCore) hasName(e classad.Expr, seen []string, found func(scope, name string) bool) bool {
	my, target, unscoped := classad.References(e)
	for _, name := range target {
		if found("TARGET", name) {
			return true
		}
	}
	for i, name := range slices.Concat(my, unscoped) {
		scope := "MY"
		if i >= len(my) {
			scope = ""
		}
		if found(scope, name) {
			return true
		}
		lower := strings.ToLower(name)
		if next, ok := c.machineAd.Lookup(name); ok && !slices.Contains(seen, lower) &&
			c.hasName(next, append(seen, lower), found) {
			return true
		}
	}
	return false
}

// guardAttributes lists the attributes that only a guard can know.
var guardAttributes = []string{
	roost.AttrKeyboardIdle, roost.AttrConsoleIdle, roost.AttrQuietTime, roost.AttrCondorLoad, roost.AttrForeignCpu,
	roost.AttrMemoryPressure, roost.AttrCpuPressure,
	roost.AttrOnBattery, roost.AttrAsleep, roost.AttrCpuIsBusy, roost.AttrCpuBusyTime, roost.AttrCpuBusyValue,
	roost.AttrOwnerBusy, roost.AttrOwnerBusyReason,
}

func isGuardAttribute(name string) bool {
	return slices.ContainsFunc(guardAttributes, func(g string) bool { return strings.EqualFold(g, name) })
}

// dependsOnGuard reports whether an expression uses an attribute that only a guard can
// know.
func dependsOnGuard(e classad.Expr) bool {
	my, _, unscoped := classad.References(e)
	return slices.ContainsFunc(slices.Concat(my, unscoped), isGuardAttribute)
}
