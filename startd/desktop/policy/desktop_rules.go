package policy

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// DesktopRules are the owner's own file. They win over every policy, and can only make
// the machine less lent: of two times the more careful one counts, and the expressions
// are further terms of the policy's. The one thing that they allow is work on battery
// power, which nobody else may.
type DesktopRules struct {
	Paused        bool          // nothing runs
	StartDelay    time.Duration // 0: as the policy has it; so the next two
	ResumeDelay   time.Duration
	VacateDelay   time.Duration
	NoRunHours    []WeeklyHours // when nothing runs
	RunsOnBattery bool          // work goes on when the machine runs on its battery
	CPU           roost.MilliCPU
	Memory        roost.Bytes // the most that is lent; 0: as the node file has it

	Start, Suspend, Continue, Preempt, Kill *classad.Expr // nil: the policy's alone
}

// withRules is a policy as the owner's rules make it.
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
