package policy

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// DesktopRules are the settings of the owner's file. They override every policy, and can
// only make the machine less available: of two times the longer applies, and expressions
// are additional terms of the policy's. Their only permission is for tasks to run on
// battery, which no other setting can give.
type DesktopRules struct {
	Paused        bool          // no task runs
	StartDelay    time.Duration // 0: as in the policy
	ResumeDelay   time.Duration
	VacateDelay   time.Duration
	NoRunHours    []WeeklyHours // hours in which no task runs
	RunsOnBattery bool          // tasks continue on battery
	CPU           roost.MilliCPU
	Memory        roost.Bytes // maximum for tasks; 0: as in the node file

	Start, Suspend, Continue, Preempt, Kill *classad.Expr // nil: only the policy's
}

// withRules returns the policy with the owner's rules.
func (p Policy) withRules(r DesktopRules) Policy {
	const from = "the owner's file"
	add := func(to *[]ConditionTerm, e *classad.Expr) {
		if e != nil {
			*to = append((*to)[:len(*to):len(*to)], ConditionTerm{*e, from})
			p.NeedsGuard = p.NeedsGuard || dependsOnGuard(*e)
		}
	}
	add(&p.Start, r.Start)
	add(&p.Suspend, r.Suspend)
	add(&p.Continue, r.Continue)
	add(&p.Preempt, r.Preempt)
	add(&p.Kill, r.Kill)
	if r.StartDelay > 0 {
		p.StartDelay = max(p.StartDelay, r.StartDelay)
		p.ShortStartDelay = p.StartDelay
		p.NeedsGuard = true
		p.Start = append(p.Start[:len(p.Start):len(p.Start)], newTerm("KeyboardIdle >= StartAfter", from)...)
	}
	if r.ResumeDelay > 0 {
		p.ResumeDelay = max(p.ResumeDelay, r.ResumeDelay)
		p.NeedsGuard = true
		p.Continue = append(p.Continue[:len(p.Continue):len(p.Continue)],
			newTerm("KeyboardIdle >= ResumeAfter", from)...)
	}
	if r.VacateDelay > 0 {
		p.VacateDelay, p.ShortVacateDelay = min(p.VacateDelay, r.VacateDelay), min(p.ShortVacateDelay, r.VacateDelay)
	}
	return p
}
