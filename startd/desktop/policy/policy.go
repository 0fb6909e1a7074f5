package policy

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// ConditionTerm is one part of a condition, and whose it is, for the sentences in which
// it is named.
type ConditionTerm struct {
	Expr   classad.Expr
	Origin string // "policy desktop", "the node file", "the owner's file"
}

// Policy says when a machine is lent, and how those that run on it go. Of Start and
// Continue all terms must hold, of the others any. The machine is MY and the job TARGET.
// The names are those of HTCondor (manual, "Policy Configuration for Execution Points").
type Policy struct {
	Name     string          // of the preset
	Start    []ConditionTerm // a claim may be given
	Suspend  []ConditionTerm // a running task is to stand still
	Continue []ConditionTerm // one that stands still may go on
	Preempt  []ConditionTerm // a claim is to leave
	Kill     []ConditionTerm // one that leaves has had its time

	// the machine is somebody's: while nothing is heard of its guard, it is taken to be
	// in use
	NeedsGuard      bool
	StartDelay      time.Duration // without input, as far as the preset asks for it: MY.StartAfter
	ShortStartDelay time.Duration // the same after a touch of less than a minute
	ResumeDelay     time.Duration // MY.ResumeAfter
	VacateDelay     time.Duration // a task that has stood still for its owner's sake for so long leaves: MY.LeaveAfter
	// the same where it is in the way or waits for nothing: it has GPUs, memory is short,
	// nothing is lent at all
	ShortVacateDelay time.Duration
	GPUGrace         time.Duration // from the freeze until a task must have given its GPUs back
	MemoryTrimDelay  time.Duration // from the freeze until it gives memory back; at once when that gets short
	RetirementTime   time.Duration // a task that is to leave, and nobody waits for, may run on for so long
	VacateTime       time.Duration // how long leaving may take
	KillInterval     time.Duration // from one blow to the next
}

// MinResumeDelay is how long it must have been quiet at least until tasks go on. Signs of
// a person are looked at more than once a second, and one that comes while the last is
// passed on counts with the next.
const MinResumeDelay = 2 * time.Second

// PolicySettings are what a node file says of its policy. What is empty or 0 is as the
// preset has it.
type PolicySettings struct {
	Preset                                  string // "always" if empty
	Start, Suspend, Continue, Preempt, Kill string // ClassAd expressions, besides the preset's
	StartAfter, ResumeAfter, LeaveAfter     time.Duration
	Vacate                                  time.Duration
}

// NewPolicy is the policy that a node file describes. The error is of kind
// roost.BadConfig.
//
// The file's own expressions do not replace the preset's, they come on top: a machine
// with policy "desktop" and start = "TARGET.Walltime <= 3600" is still lent only while
// nobody is there. Preset "always" stands aside in everything, so that with it they are
// the whole policy.
func NewPolicy(s PolicySettings) (Policy, error) {
	p, ok := PresetPolicy(s.Preset)
	if !ok {
		return Policy{}, fmt.Errorf("policy %q: %w: there are %s", s.Preset, roost.BadConfig, PresetNames())
	}
	for _, own := range []struct {
		name, src string
		to        *[]ConditionTerm
	}{{"start", s.Start, &p.Start}, {"suspend", s.Suspend, &p.Suspend}, {"continue", s.Continue, &p.Continue},
		{"preempt", s.Preempt, &p.Preempt}, {"kill", s.Kill, &p.Kill}} {
		if own.src == "" {
			continue
		}
		e, err := classad.ParseExpr(own.src)
		if err != nil {
			return Policy{}, fmt.Errorf("%s: %w: %w", own.name, roost.BadConfig, err)
		}
		*own.to = append(*own.to, ConditionTerm{e, "the node file"})
		p.NeedsGuard = p.NeedsGuard || dependsOnGuard(e)
	}
	for _, d := range []struct {
		given time.Duration
		to    *time.Duration
	}{{s.StartAfter, &p.StartDelay}, {s.ResumeAfter, &p.ResumeDelay}, {s.LeaveAfter, &p.VacateDelay},
		{s.Vacate, &p.VacateTime}} {
		if d.given > 0 {
			*d.to = d.given
		}
	}
	p.ShortStartDelay = min(p.ShortStartDelay, p.StartDelay)
	if s.LeaveAfter > 0 {
		p.ShortVacateDelay = s.LeaveAfter
	}
	return p, nil
}
