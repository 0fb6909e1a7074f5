package owner

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// Willing reports whether claims may be given now, as far as that does not depend on the job, and why not.
func (c *Core) Willing() (ok bool, reason string) {
	c.weigh()
	return c.verdict.willing, c.verdict.why
}

// Accepts reports whether the machine may be given to a job now, and why not. Willing is a part of it.
func (c *Core) Accepts(job *classad.Ad) (ok bool, reason string) {
	if ok, why := c.Willing(); !ok {
		return false, why
	}
	for _, term := range c.policy.Start {
		for _, e := range classad.Conjuncts(term.Expr) {
			v := classad.Eval(e, c.my, job, c.env())
			if truth, sense := v.Truth(); !sense {
				return false, "start of " + term.From + ": " + e.String() + " is " + v.String()
			} else if !truth {
				return false, "start of " + term.From + ": " + e.String() + " is false"
			}
		}
	}
	return true, ""
}

// Describe writes into the machine's ad whose it is now. Start becomes what is left of the policy for the job to meet: an ad is read long after it was made, and
// by those who cannot know for how long nobody has touched the machine since.
func (c *Core) Describe(ad *classad.Ad) {
	c.weigh()
	names := []string{
		roost.AttrState, roost.AttrActivity, roost.AttrEnteredState, roost.AttrEnteredActivity, roost.AttrClockMin, roost.AttrClockDay,
		roost.AttrOwnerBusy, roost.AttrPaused, roost.AttrOwnerStart, roost.AttrOwnerResume, roost.AttrOwnerLeave,
	}
	if c.heard {
		names = append(names, roost.AttrKeyboardIdle, roost.AttrConsoleIdle, roost.AttrQuietTime, roost.AttrForeignCpu, roost.AttrOnBattery,
			roost.AttrMemoryPressure, roost.AttrCpuPressure, roost.AttrCpuIsBusy, roost.AttrCpuBusyTime, roost.AttrCondorLoad)
	}
	for _, name := range names {
		if e, ok := c.my.Lookup(name); ok {
			ad.Insert(name, e)
		}
	}
	if !c.verdict.willing {
		ad.SetString(roost.AttrOwnerBusyReason, c.verdict.why)
	}
	if err := ad.SetExpr(roost.AttrStart, c.start); err != nil {
		panic("start: " + c.start + ": " + err.Error()) // it was printed from an expression
	}
	for state := range c.total {
		for activity, d := range c.total[state] {
			if State(state) == c.state && Activity(activity) == c.activity {
				d += c.now - c.enteredActivity
			}
			if d > 0 {
				ad.SetInt("TotalTime"+State(state).String()+Activity(activity).String(), seconds(d))
			}
		}
	}
}
