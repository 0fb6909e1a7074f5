package policy

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// Available reports whether claims may be created now, independent of the job, and why
// not.
func (c *PolicyCore) Available() (ok bool, reason string) {
	c.evaluate()
	return c.verdict.available, c.verdict.unavailableReason
}

// Accepts reports whether the machine accepts a job now, and why not. It includes
// Available.
func (c *PolicyCore) Accepts(job *classad.Ad) (ok bool, reason string) {
	if ok, why := c.Available(); !ok {
		return false, why
	}
	for _, term := range c.policy.Start {
		for _, e := range classad.Conjuncts(term.Expr) {
			v := classad.Eval(e, c.machineAd, job, c.expressionEnv())
			if truth, sense := v.Truth(); !sense {
				return false, "start of " + term.Origin + ": " + e.String() + " is " + v.String()
			} else if !truth {
				return false, "start of " + term.Origin + ": " + e.String() + " is false"
			}
		}
	}
	return true, ""
}

// Describe writes the owner's state into the machine's ad. Start becomes the part of the
// policy that the job must meet: an ad is read long after it was made, by readers who do
// not know how long the machine has been idle since.
func (c *PolicyCore) Describe(ad *classad.Ad) {
	c.evaluate()
	names := []string{
		roost.AttrState, roost.AttrActivity, roost.AttrEnteredState, roost.AttrEnteredActivity, roost.AttrClockMin,
		roost.AttrClockDay,
		roost.AttrOwnerBusy, roost.AttrPaused, roost.AttrOwnerStart, roost.AttrOwnerResume, roost.AttrOwnerLeave,
	}
	if c.guardReported {
		names = append(names, roost.AttrKeyboardIdle, roost.AttrConsoleIdle, roost.AttrQuietTime, roost.AttrForeignCpu,
			roost.AttrOnBattery,
			roost.AttrMemoryPressure, roost.AttrCpuPressure, roost.AttrCpuIsBusy, roost.AttrCpuBusyTime,
			roost.AttrCondorLoad)
	}
	for _, name := range names {
		if e, ok := c.machineAd.Lookup(name); ok {
			ad.Insert(name, e)
		}
	}
	if !c.verdict.available {
		ad.SetString(roost.AttrOwnerBusyReason, c.verdict.unavailableReason)
	}
	if err := ad.SetExpr(roost.AttrStart, c.start); err != nil {
		panic("start: " + c.start + ": " + err.Error()) // it was printed from an expression
	}
	for state := range c.total {
		for activity, d := range c.total[state] {
			if MachineState(state) == c.state && ClaimActivity(activity) == c.activity {
				d += c.now - c.enteredActivity
			}
			if d > 0 {
				ad.SetInt("TotalTime"+MachineState(state).String()+ClaimActivity(activity).String(), seconds(d))
			}
		}
	}
}
