package owner

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// Rules are the owner's own file. They win over every policy, and can only make the machine less lent: of two times the more careful one counts, and the
// expressions are further terms of the policy's. The one thing that they allow is work on battery power, which nobody else may.
type Rules struct {
	Paused      bool          // nothing runs
	StartAfter  time.Duration // 0: as the policy has it; so the next two
	ResumeAfter time.Duration
	LeaveAfter  time.Duration
	Hours       []Hours // when nothing runs
	OnBattery   bool    // work goes on when the machine runs on its battery
	CPU         roost.MilliCPU
	Memory      roost.Bytes // the most that is lent; 0: as the node file has it

	Start, Suspend, Continue, Preempt, Kill *classad.Expr // nil: the policy's alone
}

// with is a policy as the owner's rules make it.
func (p Policy) with(r Rules) Policy {
	const from = "the owner's file"
	add := func(to *[]Term, e *classad.Expr) {
		if e != nil {
			*to = append((*to)[:len(*to):len(*to)], Term{*e, from})
			p.Guarded = p.Guarded || asksGuard(*e)
		}
	}
	add(&p.Start, r.Start)
	add(&p.Suspend, r.Suspend)
	add(&p.Continue, r.Continue)
	add(&p.Preempt, r.Preempt)
	add(&p.Kill, r.Kill)
	if r.StartAfter > 0 {
		p.StartAfter = max(p.StartAfter, r.StartAfter)
		p.ShortAfter = p.StartAfter
		p.Guarded = true
		p.Start = append(p.Start[:len(p.Start):len(p.Start)], term("KeyboardIdle >= StartAfter", from)...)
	}
	if r.ResumeAfter > 0 {
		p.ResumeAfter = max(p.ResumeAfter, r.ResumeAfter)
		p.Guarded = true
		p.Continue = append(p.Continue[:len(p.Continue):len(p.Continue)], term("KeyboardIdle >= ResumeAfter", from)...)
	}
	if r.LeaveAfter > 0 {
		p.LeaveAfter, p.LeaveSoon = min(p.LeaveAfter, r.LeaveAfter), min(p.LeaveSoon, r.LeaveAfter)
	}
	return p
}
